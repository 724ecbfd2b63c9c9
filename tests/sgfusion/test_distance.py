import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from sgfusion.distance import Metric, checked_distances, zone_distances
from sgfusion.errors import DistanceError, HistogramError

Floats = NDArray[np.float64]

INF, NAN = float("inf"), float("nan")
METRICS: list[tuple[Metric, float]] = [
    ("euclidean", 2),
    ("manhattan", 2),
    ("minkowski", 1),
    ("minkowski", 1.5),
    ("minkowski", 3),
    ("minkowski", 70),
]
each_metric = pytest.mark.parametrize(("metric", "p"), METRICS)
any_metric = st.sampled_from(METRICS)

# Mass on a grid, as the kernel's own fixed-point mass is: no gap is so small that its square vanishes.
grids = arrays(np.int64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.integers(0, 1 << 20))
histogram_rows = grids.map(lambda grid: grid / (1 << 20))


# Tiny exact numbers


def test_three_four_five() -> None:
    rows = [[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]]
    assert zone_distances(rows).tolist() == [[0, 5, 10], [5, 0, 5], [10, 5, 0]]
    assert zone_distances(rows, "euclidean").tolist() == zone_distances(rows).tolist()
    assert zone_distances(rows, "manhattan").tolist() == [[0, 7, 14], [7, 0, 7], [14, 7, 0]]


def test_three_four_five_six_cubed() -> None:
    cubes = zone_distances([[0.0, 0.0, 0.0], [3.0, 4.0, 5.0]], "minkowski", 3)  # 27 + 64 + 125 = 216 = 6³
    assert cubes[0, 1] == pytest.approx(6, rel=1e-14)


def test_the_answer_is_float64_and_the_input_is_left_alone() -> None:
    rows = np.array([[1, 0], [0, 1]], np.float32)
    distances = zone_distances(list(rows))
    assert distances.dtype == np.float64
    assert distances.shape == (2, 2)
    assert rows.tolist() == [[1, 0], [0, 1]]


@each_metric
def test_one_zone_has_nobody_to_be_far_from(metric: Metric, p: float) -> None:
    assert zone_distances([[0.2, 0.8]], metric, p).tolist() == [[0.0]]


@each_metric
def test_equal_histograms_are_at_distance_exactly_0(metric: Metric, p: float) -> None:
    rows = np.random.default_rng(5).dirichlet(np.ones(40), size=20)  # no number of it is exact
    twins = zone_distances([*rows, *rows], metric, p)[:20, 20:]
    assert ((twins == 0) == np.eye(20, dtype=bool)).all()


@pytest.mark.parametrize(
    ("metric", "p", "most"), [("euclidean", 2, math.sqrt(2)), ("manhattan", 2, 2.0), ("minkowski", 3, 2 ** (1 / 3))]
)
def test_all_mass_in_one_bin_is_at_the_finite_maximum_distance(metric: Metric, p: float, most: float) -> None:
    rows = [*np.eye(3), np.full(3, 1 / 3), np.array([0.5, 0.5, 0.0])]
    distances = zone_distances(rows, metric, p)
    assert distances[:3, :3] == pytest.approx(most * (1 - np.eye(3)), rel=1e-14)
    assert distances.max() == distances[0, 1]
    assert checked_distances(distances).tolist() == distances.tolist()


def test_a_high_power_of_small_gaps_does_not_vanish() -> None:
    tiny = zone_distances([[1e-3, 1e-3], [0.0, 0.0]], "minkowski", 1000)
    assert tiny[0, 1] == pytest.approx(1e-3 * 2**1e-3, rel=1e-12)
    assert zone_distances([[1e-300], [0.0]], "minkowski", 50)[0, 1] == 1e-300


def test_a_very_high_power_is_the_largest_gap() -> None:
    assert zone_distances([[0.5, 0.25], [0.0, 0.0]], "minkowski", 1e300)[0, 1] == 0.5


# Against SciPy, and the laws of a metric


@given(histogram_rows)
def test_scipy_gives_the_same(rows: Floats) -> None:
    for ours, theirs in (
        (zone_distances(rows), pdist(rows)),
        (zone_distances(rows, "manhattan"), pdist(rows, "cityblock")),
        (zone_distances(rows, "minkowski", 1.5), pdist(rows, "minkowski", p=1.5)),
        (zone_distances(rows, "minkowski", 3), pdist(rows, "minkowski", p=3)),
    ):
        np.testing.assert_allclose(ours, squareform(theirs), rtol=1e-12)


@given(histogram_rows)
def test_minkowski_at_1_and_2_is_manhattan_and_euclidean(rows: Floats) -> None:
    np.testing.assert_allclose(zone_distances(rows, "minkowski", 1), zone_distances(rows, "manhattan"), rtol=1e-12)
    np.testing.assert_allclose(zone_distances(rows, "minkowski", 2), zone_distances(rows), rtol=1e-12)
    assert zone_distances(rows, "minkowski").tolist() == zone_distances(rows, "minkowski", 2).tolist()


@given(histogram_rows, any_metric)
def test_the_laws_of_a_metric(rows: Floats, chosen: tuple[Metric, float]) -> None:
    metric, p = chosen
    distances = checked_distances(zone_distances(rows, metric, p))  # exactly symmetric, exactly 0 on the diagonal
    for a, b, c in itertools.product(range(len(rows)), repeat=3):
        assert distances[a, c] <= (distances[a, b] + distances[b, c]) * (1 + 1e-12)
        assert (distances[a, b] == 0) == (rows[a] == rows[b]).all()


@given(st.data(), histogram_rows, any_metric)
def test_renaming_the_zones_renames_the_distances(
    data: st.DataObject, rows: Floats, chosen: tuple[Metric, float]
) -> None:
    metric, p = chosen
    order = data.draw(st.permutations(range(len(rows))))
    expected = zone_distances(rows, metric, p)[np.ix_(order, order)]
    np.testing.assert_allclose(zone_distances(rows[order], metric, p), expected, rtol=1e-12)


# Refusals


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0.5, 0.5], [0.5, NAN]], "{}: bin 1 holds nan"),
        ([[0.5, 0.5], [INF, 0.5]], "{}: bin 0 holds inf"),
        ([[0.5, 0.5], [1.5, -0.5]], "{}: bin 1 holds a negative number,"),
        ([[0.5, 0.5], [0.2, 0.3, 0.5]], "{}: its histogram has 3 bins, {first}'s has 2"),
        ([[0.5, 0.5], [1.0]], "{}: its histogram has 1 bins, {first}'s has 2"),
        ([[0.5, 0.5], [[0.5, 0.5]]], r"{}: its histogram has shape \(1, 2\)"),
        ([[0.5, 0.5], []], r"{}: its histogram has shape \(0,\)"),
        ([[0.5, 0.5], 0.5], r"{}: its histogram has shape \(\)"),
    ],
)
def test_a_bad_histogram_is_an_error_that_names_the_zone(rows: list[list[float]], message: str) -> None:
    with pytest.raises(HistogramError, match="^" + message.format("zone 1", first="zone 0")):
        zone_distances(rows)
    with pytest.raises(HistogramError, match="^" + message.format("zone 'oslo'", first="zone 'lublin'")):
        zone_distances(rows, zones=["lublin", "oslo"])


def test_no_zone_and_a_missing_name_are_refused() -> None:
    with pytest.raises(HistogramError, match="no histograms"):
        zone_distances([])
    with pytest.raises(HistogramError, match="1 names for 2 histograms"):
        zone_distances([[1.0], [1.0]], zones=["lublin"])


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(DistanceError, match=r"metric = 'cosine': choose .*'manhattan'"):
        zone_distances([[1.0], [1.0]], "cosine")  # type: ignore[arg-type]


def test_p_may_be_said_where_it_says_nothing_new() -> None:
    rows = [[0.0, 0.0], [3.0, 4.0]]
    assert zone_distances(rows, "manhattan", 1).tolist() == zone_distances(rows, "manhattan", 2).tolist()
    assert zone_distances(rows, "manhattan", 1)[0, 1] == 7


@pytest.mark.parametrize(
    ("metric", "p"), [("euclidean", 1), ("euclidean", 3), ("euclidean", NAN), ("manhattan", 3), ("manhattan", NAN)]
)
def test_p_is_refused_with_another_metric(metric: Metric, p: float) -> None:
    with pytest.raises(DistanceError, match=rf"p = {p} belongs to metric 'minkowski', not to '{metric}'"):
        zone_distances([[1.0], [1.0]], metric, p)


@pytest.mark.parametrize("p", [0.99, 0, -1, NAN, INF])
def test_an_exponent_that_gives_no_metric_is_refused(p: float) -> None:
    with pytest.raises(DistanceError, match=rf"p = {p}: "):
        zone_distances([[1.0], [1.0]], "minkowski", p)


@pytest.mark.parametrize(
    ("distances", "message"),
    [
        ([], r"distances of shape \(0,\)"),
        (np.zeros((0, 0)), r"distances of shape \(0, 0\)"),
        ([0.0, 1.0], r"distances of shape \(2,\)"),
        ([[0.0, 1.0]], r"distances of shape \(1, 2\)"),
        ([[0.0, 1.0], [NAN, 0.0]], r"distances\[1, 0\] = nan is not finite"),
        ([[0.0, INF], [INF, 0.0]], r"distances\[0, 1\] = inf is not finite"),
        ([[0.0, -1.0], [-1.0, 0.0]], r"distances\[0, 1\] = -1.0 is negative"),
        ([[0.0, 1.0], [1.0, 0.5]], r"distances\[1, 1\] = 0.5 is on the diagonal"),
        ([[0.0, 1.0], [2.0, 0.0]], r"distances\[0, 1\] = 1.0 differs from its mirror image"),
    ],
)
def test_what_is_no_matrix_of_distances_is_refused(distances: list[list[float]], message: str) -> None:
    with pytest.raises(DistanceError, match=message):
        checked_distances(distances)


def test_a_good_matrix_comes_back_as_contiguous_float64() -> None:
    given_matrix = np.asfortranarray([[0, 2, 1], [2, 0, 3], [1, 3, 0]], np.float32)
    checked = checked_distances(given_matrix)
    assert checked.dtype == np.float64
    assert checked.flags.c_contiguous
    assert checked.tolist() == given_matrix.tolist()
    assert checked_distances([[0.0]]).tolist() == [[0.0]]


def test_gaps_whose_squares_a_float_cannot_hold() -> None:
    assert zone_distances([[0.0], [1e-200]])[0, 1] == 1e-200
    assert zone_distances([[0.0, 0.0], [3e200, 4e200]])[0, 1] == pytest.approx(5e200)


@pytest.mark.parametrize("distances", [[[0, 1], [1]], [["a"]], "none"])
def test_what_is_no_matrix_of_numbers_is_an_error_of_ours(distances: object) -> None:
    with pytest.raises(DistanceError, match=r"^distances = .*: not numbers"):
        checked_distances(distances)  # type: ignore[arg-type]
