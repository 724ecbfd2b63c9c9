import math
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import beta, binom, gamma

from sgfusion import privacy
from sgfusion.errors import MissingDependencyError, PrivacyError
from sgfusion.histogram import UNIT, class_edges, label_mass
from sgfusion.privacy import Adjacency, measurement, noised_parts, privatize, scaled_to_one, sensitivity

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mechanism = Callable[[Floats], Ints]

INF, NAN = float("inf"), float("nan")
BOTH: list[Adjacency] = ["replace", "add-remove"]
AWKWARD = [1 / 3, 0.7, 0.1, 1e-6, 1e6, 1.0, 10.0, math.pi, 3e-5, 1e-300, 1e300, math.nextafter(1.0, 2.0), 2.0 * UNIT]

# Every statistical test below raises a false alarm with a probability below 1e-6: a bound has ALARM to itself.
ALARM = 1e-9

each_adjacency = pytest.mark.parametrize("adjacency", BOTH)


# ε by OpenDP's own account


@each_adjacency
@pytest.mark.parametrize("epsilon", AWKWARD)
def test_opendp_says_that_one_sample_costs_epsilon_and_no_less(epsilon: float, adjacency: Adjacency) -> None:
    map_of = measurement(epsilon, adjacency).map
    change = sensitivity(adjacency) * UNIT
    assert epsilon * (1 - 1e-12) <= map_of(change) <= epsilon  # the guarantee, and no noise wasted on it
    assert map_of(change + 1) > epsilon
    assert map_of(change // 2) == pytest.approx(epsilon / 2)
    assert map_of(0) == 0


@given(st.floats(1e-9, 1e9), st.sampled_from(BOTH))
def test_opendp_says_so_for_any_epsilon(epsilon: float, adjacency: Adjacency) -> None:
    assert epsilon * (1 - 1e-12) <= measurement(epsilon, adjacency).map(sensitivity(adjacency) * UNIT) <= epsilon


def test_one_sample_moves_a_histogram_by_2_if_replaced_and_by_1_if_added() -> None:
    assert (sensitivity("replace"), sensitivity("add-remove")) == (2, 1)


# ε by experiment


def neighbours(adjacency: Adjacency) -> tuple[Floats, Floats]:
    """Two data sets that differ in one sample, as far apart as one sample can take them."""
    one, other = ([0, 1, 0], [0, 1, 1]) if adjacency == "replace" else ([0, 1, 0], [0, 1])
    return label_mass(one, class_edges(2)), label_mass(other, class_edges(2))


def draws(mechanism: Mechanism, mass: Floats, n: int) -> Ints:
    """`n` noised histograms. Noise is independent from bin to bin (tested below), so one call can draw them all."""
    return mechanism(np.tile(mass, n)).reshape(n, len(mass))


def events(noised: Ints, a: Floats, b: Floats) -> Iterator[int]:
    """How often a noised histogram fell into each of some regions that tell `a` from `b`."""
    beyond = np.where(a >= b, noised >= a * UNIT, noised <= a * UNIT)
    yield int(beyond.all(axis=1).sum())  # every bin on that side of `a` that is away from `b`: all of ε shows here
    for values, borders in (
        (noised[:, 0], (a[0], b[0])),
        (noised[:, 1], (a[1], b[1])),
        (noised.sum(axis=1), (a.sum(), b.sum())),
        (noised[:, 0] - noised[:, 1], (a[0] - a[1], b[0] - b[1])),
    ):
        for border in borders:
            yield int((values >= border * UNIT).sum())
            yield int((values <= border * UNIT).sum())


def proven_loss(mechanism: Mechanism, adjacency: Adjacency, n: int = 20_000) -> float:
    """An ε that the privacy loss, `max ln(P_a(event) / P_b(event))`, surely exceeds, by exact binomial bounds."""
    one, other = neighbours(adjacency)
    from_one, from_other = draws(mechanism, one, n), draws(mechanism, other, n)
    losses = []
    for a, b, from_a, from_b in ((one, other, from_one, from_other), (other, one, from_other, from_one)):
        for in_a, in_b in zip(events(from_a, a, b), events(from_b, a, b), strict=True):
            at_least = beta.ppf(ALARM, max(in_a, 1), n - in_a + 1)
            at_most = beta.isf(ALARM, in_b + 1, n - in_b) if in_b < n else 1.0
            losses.append(math.log(at_least / at_most))
    return max(losses)


@each_adjacency
def test_neighbours_are_told_apart_at_epsilon_and_hardly_less(adjacency: Adjacency) -> None:
    loss = proven_loss(lambda mass: noised_parts(mass, epsilon=1.0, adjacency=adjacency), adjacency)
    assert loss <= 1.0
    assert loss >= 0.65  # nearly tight: 0.81 or more on average, and this is 7 standard deviations below


@each_adjacency
def test_a_mechanism_calibrated_to_half_the_sensitivity_is_caught(adjacency: Adjacency) -> None:
    def under_noised(mass: Floats) -> Ints:
        return noised_parts(mass, epsilon=2.0, adjacency=adjacency)

    assert proven_loss(under_noised, adjacency) > 1.0


# The noise's law


def discrete_laplace_cdf(k: Floats, scale: float) -> Floats:
    """`P(noise <= k)` for whole `k`, where `P(noise = k)` falls off as `exp(-|k| / scale)`."""
    base = 1 + math.exp(-1 / scale)
    tail = np.exp(-np.where(k < 0, -k, k + 1) / scale) / base
    return np.where(k < 0, tail, 1 - tail)


def furthest_from_law(noise: Ints, scale: float) -> float:
    """Kolmogorov's distance between the noise and the discrete Laplace law."""
    values, counts = np.unique(noise, return_counts=True)
    upto = np.cumsum(counts) / len(noise)
    law_below, law_upto = (discrete_laplace_cdf(k.astype(np.float64), scale) for k in (values - 1, values))
    return float(max(np.abs(upto - law_upto).max(), np.abs(upto - counts / len(noise) - law_below).max()))


def allowed_distance(n: int) -> float:
    """What it exceeds with probability ALARM at most (Dvoretzky, Kiefer, Wolfowitz)."""
    return math.sqrt(math.log(2 / ALARM) / (2 * n))


@pytest.mark.parametrize(("epsilon", "adjacency"), [(1 / 3, "replace"), (1.0, "add-remove"), (1e-6, "replace")])
def test_the_noise_is_laplace_of_scale_delta_over_epsilon(epsilon: float, adjacency: Adjacency) -> None:
    n, scale = 30_000, sensitivity(adjacency) * UNIT / epsilon
    noise = noised_parts(np.full(n, 3.0), epsilon=epsilon, adjacency=adjacency) - 3 * UNIT
    assert furthest_from_law(noise, scale) < allowed_distance(n)
    total = np.abs(noise).sum() / scale  # a sum of n exponentials
    assert gamma.ppf(ALARM, n) < total < gamma.isf(ALARM, n)
    variance = (noise.astype(np.float64) ** 2).mean() / scale**2
    assert variance == pytest.approx(2, rel=0.15)  # 11 standard errors: its tail is heavier than the normal's
    assert binom.ppf(ALARM, n - 1, 0.5) < ((noise[1:] < 0) == (noise[:-1] < 0)).sum() < binom.isf(ALARM, n - 1, 0.5)


def test_noise_of_few_parts_is_the_discrete_law_not_a_rounded_one() -> None:
    n, scale = 30_000, 1.0
    noise = noised_parts(np.zeros(n), epsilon=2 * UNIT)
    assert furthest_from_law(noise, scale) < allowed_distance(n)
    alpha = math.exp(-1)
    assert (noise.astype(np.float64) ** 2).mean() == pytest.approx(2 * alpha / (1 - alpha) ** 2, rel=0.15)
    assert binom.ppf(ALARM, n, (1 - alpha) / (1 + alpha)) < (noise == 0).sum()  # 46 %; rounding would give 39 %


def test_many_small_histograms_get_the_same_noise_whatever_they_hold() -> None:
    for mass in ([0.0, 0.0], [1e6, 0.25]):
        noise = np.array([noised_parts(mass, epsilon=0.5) for _ in range(1500)]) - (np.array(mass) * UNIT).astype(int)
        assert furthest_from_law(noise.ravel(), 4.0 * UNIT) < allowed_distance(noise.size)
        alike = ((noise[:, 0] < 0) == (noise[:, 1] < 0)).sum()
        assert binom.ppf(ALARM, len(noise), 0.5) < alike < binom.isf(ALARM, len(noise), 0.5)


def test_two_calls_give_different_noise() -> None:
    mass = [1.0] * 8
    assert noised_parts(mass, epsilon=1.0).tolist() != noised_parts(mass, epsilon=1.0).tolist()
    assert privatize([1e3] * 8, epsilon=1.0).tolist() != privatize([1e3] * 8, epsilon=1.0).tolist()


# Post-processing


def test_scaled_to_one_on_tiny_numbers() -> None:
    assert scaled_to_one([1, 3]).tolist() == [0.25, 0.75]
    assert scaled_to_one([-7, 5, 0, 15]).tolist() == [0.0, 0.25, 0.0, 0.75]
    assert scaled_to_one([-1, 0, -5, 0]).tolist() == [0.25] * 4
    assert scaled_to_one([2**63 - 1, -(2**63)]).tolist() == [1.0, 0.0]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=9))
def test_what_leaves_the_device_is_a_distribution(parts: list[int]) -> None:
    scaled = scaled_to_one(parts)
    assert (scaled >= 0).all()
    assert scaled.sum() == pytest.approx(1)


def test_privatize_is_noise_then_scaling() -> None:
    nearly_exact = privatize(label_mass([0, 1, 1, 1], class_edges(2)), epsilon=1e300)
    assert nearly_exact.tolist() == [0.25, 0.75]
    assert privatize(np.zeros(5), epsilon=1e-300).sum() == pytest.approx(1)


# Refusals


@pytest.mark.parametrize("epsilon", [0.0, -1.0, NAN, INF, -INF, 1e-320])
def test_an_epsilon_that_promises_nothing_is_refused(epsilon: float) -> None:
    for refuse in (privatize, noised_parts):
        with pytest.raises(PrivacyError, match=f"epsilon = {epsilon}"):
            refuse([1.0], epsilon=epsilon)


@pytest.mark.parametrize("adjacency", ["bounded", "Replace", ""])
def test_an_unknown_adjacency_is_refused_with_the_choice(adjacency: Adjacency) -> None:
    for refuse in (lambda: privatize([1.0], epsilon=1.0, adjacency=adjacency), lambda: sensitivity(adjacency)):
        with pytest.raises(PrivacyError, match=f"adjacency = '{adjacency}': choose one of 'replace', 'add-remove'"):
            refuse()


@pytest.mark.parametrize(
    ("mass", "message"),
    [
        ([1.0, NAN], r"mass\[1\] = nan is not a finite number"),
        ([INF, 1.0], r"mass\[0\] = inf is not a finite number"),
        ([0.0, -1.0], r"mass\[1\] = -1.0 is not a finite number >= 0"),
        ([0.0, 0.0, 0.1], r"mass\[2\] = 0.1 is not a whole number of 1/1048576 parts"),
        ([1 + 0.5 / UNIT], r"mass\[0\] = 1.000000476\d+ is not a whole number"),
        ([2.0**33 + 1], r"mass\[0\] = 8589934593.0 is more than the 8589934592 samples"),
        ([1e300], r"mass\[0\] = 1e\+300 is more than"),
        ([], r"mass of shape \(0,\)"),
        ([[1.0], [2.0]], r"mass of shape \(2, 1\)"),
    ],
)
def test_mass_that_no_sample_can_have_given_is_refused(mass: list[float], message: str) -> None:
    for refuse in (privatize, noised_parts):
        with pytest.raises(PrivacyError, match=message):
            refuse(mass, epsilon=1.0)


def test_the_most_and_the_least_mass_go_through_exactly() -> None:
    assert noised_parts([2.0**33, 1 / UNIT, -0.0], epsilon=1e300).tolist() == [2**53, 1, 0]


def test_without_opendp_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(MissingDependencyError, match=r"pip install '\.\[device\]'"):
        privacy._opendp.__wrapped__()


@pytest.mark.parametrize(
    ("mass", "epsilon", "adjacency", "says"),
    [
        ([1.7e308], 1.0, "replace", r"mass\[0\] = 1.7e\+308 is more than"),
        (["a"], 1.0, "replace", r"mass = \['a'\]: not numbers"),
        ([1.0], "1", "replace", "epsilon = '1': give a finite number"),
        ([1.0], True, "replace", "epsilon = True: give a finite number"),
        ([1.0], 1.0, ["replace"], r"adjacency = \['replace'\]: choose"),
    ],
)
def test_what_is_of_the_wrong_kind_is_named(mass: object, epsilon: object, adjacency: object, says: str) -> None:
    with pytest.raises(PrivacyError, match=says):
        noised_parts(mass, epsilon=epsilon, adjacency=adjacency)  # type: ignore[arg-type]


def test_no_bins_at_all_cannot_be_scaled() -> None:
    with pytest.raises(PrivacyError, match="parts of shape"):
        scaled_to_one([])
