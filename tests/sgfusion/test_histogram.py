from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfusion import histogram
from sgfusion.errors import HistogramError, InputError, LabelError
from sgfusion.histogram import UNIT, checked_edges, class_edges, label_mass, zone_histogram

INF, NAN = float("inf"), float("nan")

labels = st.floats(-20, 20) | st.integers(-20, 20).map(float) | st.sampled_from([INF, -INF, -0.0])
sequences = st.lists(labels, min_size=1, max_size=16)
one_sample: st.SearchStrategy[object] = labels | sequences
many_samples = st.lists(one_sample, max_size=6)
some_edges = st.lists(st.integers(-10, 10), min_size=2, max_size=8, unique=True).map(sorted)


def parts_of(samples: Sequence[object], edges: Sequence[float]) -> list[int]:
    """The mass in whole parts: `UNIT` is a power of two, so this multiplication is exact."""
    parts = label_mass(samples, edges) * UNIT
    assert all(part.is_integer() for part in parts.tolist())
    return [int(part) for part in parts]


def l1(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(abs(x - y) for x, y in zip(a, b, strict=True))


# Tiny exact numbers


def test_one_label_a_sample_is_a_count() -> None:
    mass = label_mass([60.0, 75.0, 61, 130.0], [60, 70, 80, 200])
    assert mass.dtype == np.float64
    assert mass.tolist() == [2.0, 1.0, 1.0]


def test_a_sequence_spreads_one_unit_over_its_bins() -> None:
    assert label_mass([[1, 1, 1, 5]], [0, 4, 8]).tolist() == [0.75, 0.25]


def test_a_long_sample_weighs_as_much_as_a_short_one() -> None:
    assert label_mass([[1.0] * 500, 5.0, [5.0, 5.0]], [0, 4, 8]).tolist() == [1.0, 2.0]


def test_thirds_sum_to_the_unit_the_odd_part_goes_to_the_lowest_of_equals() -> None:
    assert parts_of([[0, 1, 2]], class_edges(3).tolist()) == [349526, 349525, 349525]


def test_the_odd_part_goes_to_the_bin_that_lost_most() -> None:
    assert parts_of([[0, 1, 1]], class_edges(2).tolist()) == [349525, 699051]


def test_odd_parts_go_one_each_to_the_lowest_of_many_equals() -> None:
    assert divmod(UNIT, 7) == (149796, 4)
    assert parts_of([range(7)], class_edges(7).tolist()) == [149797] * 4 + [149796] * 3
    once_or_twice = [*range(200), *range(1, 200, 2)]
    assert divmod(UNIT, 300) == (3495, 76)  # so 76 parts are left, for the first 76 of those that came twice
    parts = parts_of([once_or_twice], class_edges(200).tolist())
    assert parts == [3495, 6991] * 76 + [3495, 6990] * 24


def test_a_bin_holds_its_lower_edge_and_not_its_upper_one() -> None:
    below = np.nextafter(1.0, 0.0)
    assert label_mass([0.0, below, 1.0], [0, 1, 2]).tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    ("label", "bin_of"), [(-0.1, 0), (-1e308, 0), (-INF, 0), (-0.0, 0), (3.0, 2), (3.1, 2), (1e308, 2), (INF, 2)]
)
def test_labels_outside_the_edges_fall_into_the_end_bins(label: float, bin_of: int) -> None:
    assert label_mass([label], [0, 1, 2, 3]).tolist() == np.eye(3)[bin_of].tolist()


def test_each_class_is_its_own_bin() -> None:
    assert class_edges(3).tolist() == [-0.5, 0.5, 1.5, 2.5]
    assert label_mass(np.array([0, 2, 2, 1, 2]), class_edges(3)).tolist() == [1.0, 1.0, 3.0]
    assert label_mass([True, False, True], class_edges(2)).tolist() == [1.0, 2.0]


def test_one_bin_takes_everything() -> None:
    assert label_mass([1.0, [2.0, -INF], INF], class_edges(1)).tolist() == [3.0]


def test_no_sample_is_no_mass() -> None:
    assert label_mass([], [0, 1, 2]).tolist() == [0.0, 0.0]
    assert label_mass(np.zeros((0, 5)), [0, 1, 2]).tolist() == [0.0, 0.0]


def test_a_matrix_an_array_of_labels_and_ragged_lists_are_counted_alike() -> None:
    matrix = np.array([[0.0, 1.0, 1.0], [2.0, 2.0, 2.0]], np.float32)
    by_matrix = label_mass(matrix, class_edges(3))
    assert by_matrix.tolist() == label_mass(matrix.tolist(), class_edges(3)).tolist()
    assert label_mass([*matrix, (1,), 0], class_edges(3)).tolist() == np.add(by_matrix, [1, 1, 0]).tolist()
    column = np.array([[0], [2]])
    assert label_mass(column, class_edges(3)).tolist() == label_mass(column[:, 0], class_edges(3)).tolist()


# More samples than one block


def test_more_samples_than_a_block_holds() -> None:
    samples = np.arange(histogram._COUNTS // 2 + 4000) % 2
    assert label_mass(samples, class_edges(2)).tolist() == [len(samples) / 2, len(samples) / 2]


def test_an_error_in_a_later_block_names_the_sample_of_the_whole() -> None:
    samples = np.zeros(histogram._COUNTS + 10)
    samples[histogram._COUNTS + 7] = NAN
    with pytest.raises(LabelError, match=rf"^sample {histogram._COUNTS + 7} has a NaN label"):
        label_mass(samples, [0, 1])


@given(many_samples, some_edges, st.integers(1, 25))
def test_the_size_of_the_block_changes_nothing(samples: list[object], edges: list[int], counts: int) -> None:
    whole = parts_of(samples, edges)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(histogram, "_COUNTS", counts)
        assert parts_of(samples, edges) == whole


# Properties that the privacy rests on


@given(many_samples, some_edges)
def test_every_sample_gives_exactly_its_unit(samples: list[object], edges: list[int]) -> None:
    each = [parts_of([sample], edges) for sample in samples]
    assert all(sum(parts) == UNIT and min(parts) >= 0 for parts in each)
    whole = parts_of(samples, edges)
    assert sum(whole) == len(samples) * UNIT
    assert label_mass(samples, edges).sum() == len(samples)
    assert whole == [sum(column) for column in zip(*each, strict=True)] or not each


@given(sequences, some_edges)
def test_a_share_is_within_one_part_of_its_proportion(sample: list[float], edges: list[int]) -> None:
    bin_of = [max(sum(edge <= label for edge in edges[:-1]) - 1, 0) for label in sample]
    for b, part in enumerate(parts_of([sample], edges)):
        assert abs(part - Fraction(bin_of.count(b) * UNIT, len(sample))) < 1


@given(many_samples, one_sample, st.integers(0, 6), some_edges)
def test_adding_or_removing_one_sample_changes_the_histogram_by_exactly_1(
    samples: list[object], sample: object, at: int, edges: list[int]
) -> None:
    assert l1(parts_of(samples, edges), parts_of([*samples[:at], sample, *samples[at:]], edges)) == UNIT


@given(many_samples, one_sample, one_sample, st.integers(0, 6), some_edges)
def test_replacing_one_sample_changes_the_histogram_by_at_most_2(
    samples: list[object], old: object, new: object, at: int, edges: list[int]
) -> None:
    before, after = (parts_of([*samples[:at], sample, *samples[at:]], edges) for sample in (old, new))
    assert l1(before, after) <= 2 * UNIT


def test_replacing_one_sample_can_change_the_histogram_by_2() -> None:
    assert l1(parts_of([0, [0, 0]], [0, 1, 2]), parts_of([0, [1, 1]], [0, 1, 2])) == 2 * UNIT


@given(st.data(), many_samples, some_edges)
def test_the_order_of_samples_and_of_a_samples_labels_does_not_matter(
    data: st.DataObject, samples: list[object], edges: list[int]
) -> None:
    shuffled = data.draw(st.permutations(samples))
    turned = [sample[::-1] if isinstance(sample, list) else sample for sample in shuffled]
    assert parts_of(turned, edges) == parts_of(samples, edges)


# Refusals


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([1.0, NAN], "sample 1 has a NaN label"),
        ([1.0, 2.0, [3.0, NAN, 1.0]], "sample 2 has a NaN label"),
        ([1.0, None], "sample 1 = None: not numbers"),
        ([[1.0], [], [2.0]], "sample 1 has no label"),
        (np.zeros((3, 0)), "sample 0 has no label"),
        ([1.0, "tachycardia"], "sample 1 = 'tachycardia': not numbers that make an array"),
        ([[1.0, [2.0, 3.0]]], r"sample 0 = \[1.0, \[2.0, 3.0\]\]: not numbers that make an array"),
        ([1.0, 1 + 2j], r"sample 1 = \(1\+2j\): not numbers that make an array"),
        (np.zeros((4, 3, 2)), r"sample 0 has shape \(3, 2\)"),
    ],
)
def test_labels_that_cannot_be_counted_are_named(samples: Sequence[object], message: str) -> None:
    with pytest.raises(LabelError, match=message) as refused:
        label_mass(samples, [0, 1])
    assert "tachycardia" not in refused.value.discreet


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([1.0], r"edges of shape \(1,\)"),
        ([], r"edges of shape \(0,\)"),
        ([[0, 1], [1, 2]], r"edges of shape \(2, 2\)"),
        ([0, NAN, 2], r"edges\[1\] = nan"),
        ([0, 1, INF], r"edges\[2\] = inf"),
        ([-INF, 1], r"edges\[0\] = -inf"),
        ([0, 5, 5, 6], r"edges\[1\] = 5.0 is not below edges\[2\] = 5.0"),
        ([0, 5, 4], r"edges\[1\] = 5.0 is not below edges\[2\] = 4.0"),
    ],
)
def test_edges_that_make_no_bins_are_named(edges: list[float], message: str) -> None:
    for refuse in (checked_edges, lambda edges: label_mass([1.0], edges)):
        with pytest.raises(LabelError, match=message):
            refuse(edges)


@pytest.mark.parametrize("classes", [0, -3])
def test_no_classes_are_refused(classes: int) -> None:
    with pytest.raises(LabelError, match=f"classes = {classes}:"):
        class_edges(classes)


# The zone's mean


def test_the_zone_histogram_is_the_mean_over_devices() -> None:
    assert zone_histogram([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.5, 0.5]]).tolist() == [0.5, 0.5]
    assert zone_histogram([[0.25, 0.75]]).tolist() == [0.25, 0.75]
    assert zone_histogram([[3.0, 0.0], [0.0, 1.0]]).tolist() == [1.5, 0.5]  # the mean, and not scaled to sum 1


@pytest.mark.parametrize(
    ("histograms", "message"),
    [
        ([], "no histograms: there is at least one device"),
        ([0.5, 0.5], r"device 0: its histogram has shape \(\)"),
        ([[0.5, 0.5], [0.5, NAN]], "device 1: bin 1 holds nan"),
        ([[0.5, INF]], "device 0: bin 1 holds inf"),
        ([[0.5, 0.5], [-0.25, 1.25]], "device 1: bin 0 holds a negative number,"),
    ],
)
def test_a_device_histogram_that_is_none_is_named(histograms: list[list[float]], message: str) -> None:
    with pytest.raises(HistogramError, match=message) as caught:
        zone_histogram(histograms)
    assert isinstance(caught.value, InputError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("histograms", "says"),
    [
        ([[0.5, 0.5], [1.0]], "device 1: its histogram has 1 bins, device 0's has 2"),
        (np.zeros((2, 0)), r"device 0: its histogram has shape \(0,\)"),
        ([["a"], [1.0]], r"device 0: its histogram = \['a'\]: not numbers"),
    ],
)
def test_histograms_that_make_no_mean_are_refused(histograms: list[list[float]], says: str) -> None:
    with pytest.raises(HistogramError, match=says):
        zone_histogram(histograms)


@pytest.mark.parametrize(
    ("samples", "edges", "says"),
    [
        ([1.0], ["a", "b"], r"edges = \['a', 'b'\]: not numbers"),
        ([1.0], [0.0, [1.0]], "edges = .*: not numbers"),
        ([10**400], [0.0, 1.0], "sample 0 = 1000.*: not numbers"),
        (5.0, [0.0, 1.0], "samples = 5.0: give an array or a list"),
    ],
)
def test_what_is_no_number_is_an_error_of_ours(samples: list[float], edges: list[float], says: str) -> None:
    with pytest.raises(LabelError, match=says):
        label_mass(samples, edges)


def test_edges_at_the_ends_of_what_a_float_holds() -> None:
    assert checked_edges([-1e308, 1e308]).tolist() == [-1e308, 1e308]


def test_a_class_count_is_a_whole_number() -> None:
    with pytest.raises(LabelError, match=r"classes = 2.5"):
        class_edges(2.5)  # type: ignore[arg-type]
