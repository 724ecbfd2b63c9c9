"""The simulator's seeded noise: the Laplace mechanism's law, repeatable, and no protection at all (method 1)."""

import inspect
import math

import numpy as np
import numpy.typing as npt
import pytest

from sgfusion.errors import PrivacyError
from sgfusion.histogram import UNIT
from sgfusion.privacy import Adjacency
from sgfusion.streams import raw_stream
from simulator import noise
from simulator.noise import seeded_noise_without_privacy, simulated_release
from tests.trees import law_is_rejected

Floats = npt.NDArray[np.float64]


def release(mass: npt.ArrayLike, epsilon: float = 1.0, adjacency: Adjacency = "replace", *place: int) -> Floats:
    seed, zone, device = place or (1, 2, 3)
    return simulated_release(mass, epsilon=epsilon, adjacency=adjacency, seed=seed, zone=zone, device=device)


# The law


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, 8.0])
def test_numbers_have_the_law_of_the_discrete_laplace(scale: float) -> None:
    """`P(k) ∝ exp(-|k| / scale)`."""
    numbers = seeded_noise_without_privacy(30_000, scale, raw_stream(4, "test"))
    assert numbers.dtype == np.int64
    reach = math.ceil(30 * scale)
    law = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    law /= law.sum()
    counts = np.bincount(np.clip(numbers, -reach, reach) + reach, minlength=len(law)).astype(np.float64)
    assert not law_is_rejected(counts, law)
    wrong = np.exp(-np.abs(np.arange(-reach, reach + 1)) / (1.15 * scale))
    assert law_is_rejected(counts, wrong / wrong.sum()), "so many numbers tell a scale 15 % larger apart"


def test_numbers_are_independent_of_each_other() -> None:
    numbers = seeded_noise_without_privacy(20_000, 1000.0, raw_stream(5, "test")).astype(np.float64)
    half = len(numbers) // 2
    for one, other in ((numbers[:-1], numbers[1:]), (numbers[:half], numbers[half:])):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.05


@pytest.mark.parametrize(("adjacency", "sensitivity"), [("replace", 2), ("add-remove", 1)])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_scale_is_that_of_the_mechanism(adjacency: Adjacency, sensitivity: int, epsilon: float) -> None:
    """`Lap(Δ/ε)`. Of two bins too full to be clipped, the released difference is that of two such numbers."""
    full = 1000.0
    apart = [
        (first - second) * 2 * full
        for first, second in (release([full, full], epsilon, adjacency, 1, 0, device) for device in range(3000))
    ]
    scale = sensitivity / epsilon
    assert np.std(apart) == pytest.approx(2 * scale, rel=0.1)  # the variance of each is 2 scale²
    assert abs(np.mean(apart)) < 5 * 2 * scale / math.sqrt(3000)
    assert np.mean(np.abs(apart)) == pytest.approx(1.5 * scale, rel=0.1)  # for a normal law it would be 1.6


def test_noise_is_of_parts_finer_than_a_sample() -> None:
    """One unit of mass has `UNIT` parts, and so has the noise."""
    numbers = seeded_noise_without_privacy(1000, 2 * UNIT / 1.0, raw_stream(1, "test"))
    assert len(np.unique(numbers)) > 990
    assert np.abs(numbers).mean() == pytest.approx(2 * UNIT, rel=0.15)


# Repeatable


def test_noise_is_a_function_of_seed_zone_and_device() -> None:
    mass = np.array([40.0, 10.0, 0.0, 7.0])
    first = release(mass, 1.0, "replace", 1, 2, 3)
    assert first.tolist() == release(mass, 1.0, "replace", 1, 2, 3).tolist()
    others = [release(mass, 1.0, "replace", *place) for place in ((2, 2, 3), (1, 3, 3), (1, 2, 4), (1, 3, 2))]
    assert len({tuple(other.tolist()) for other in (first, *others)}) == 5


def test_noise_does_not_depend_on_the_data() -> None:
    """The same device's noise on other data is the same: what makes it repeat makes it no protection."""
    one, other = release([50_000.0, 50_000.0]) * 100_000, release([50_040.0, 49_960.0]) * 100_000
    assert one[0] - one[1] == pytest.approx(other[0] - other[1] - 80, abs=0.02)
    assert abs(one[0] - one[1]) > 0.1


def test_less_epsilon_is_more_of_the_same_noise() -> None:
    mass = np.full(50, 2000.0)
    strong, weak = (release(mass, epsilon) * 100_000 - 2000 for epsilon in (0.5, 5.0))
    assert np.abs(strong - strong.mean()).mean() == pytest.approx(10 * np.abs(weak - weak.mean()).mean(), rel=0.05)


# After the noise


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 50.0])
def test_a_release_is_clipped_at_zero_and_sums_to_1(epsilon: float) -> None:
    for device in range(40):
        released = release([3.0, 0.0, 0.0, 1.0, 0.0], epsilon, "replace", 1, 0, device)
        assert released.shape == (5,)
        assert (released >= 0).all()
        assert released.sum() == pytest.approx(1)


def test_with_next_to_no_noise_a_release_is_the_histogram() -> None:
    mass = np.array([3.0, 0.0, 1.0])
    assert release(mass, 1e9) == pytest.approx(mass / 4, abs=1e-6)
    assert release(np.array([1 / 3, 2 / 3]) * 6, 1e9) == pytest.approx([1 / 3, 2 / 3], abs=1e-5)


def test_a_release_of_nothing_is_uniform_or_noise() -> None:
    for device in range(20):
        released = release([0.0, 0.0], 1.0, "replace", 1, 0, device)
        assert released.sum() == pytest.approx(1)


# Refusals


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_an_epsilon_that_is_none_is_refused_as_by_the_mechanism(epsilon: float) -> None:
    with pytest.raises(PrivacyError, match="epsilon = "):
        release([1.0], epsilon)


def test_an_adjacency_that_is_none_is_refused() -> None:
    with pytest.raises(PrivacyError, match="adjacency = 'add'"):
        release([1.0], 1.0, "add")  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [1e-9, 1e-12, 1e-15, 1e-100])
def test_an_epsilon_however_small_never_lets_the_histogram_through(epsilon: float) -> None:
    """Noise beyond 64 bits must not cancel itself out; OpenDP's saturates."""
    mass = np.array([5.0, 3.0, 0.0])
    released = [release(mass, epsilon, "replace", 1, 0, device) for device in range(20)]
    assert not any(np.allclose(row, mass / 8) for row in released)
    assert len({tuple(row.tolist()) for row in released}) > 1


def test_an_epsilon_whose_noise_has_no_finite_scale_is_refused() -> None:
    with pytest.raises(PrivacyError, match="too small: the noise would have no finite scale"):
        release([5.0, 3.0], 1e-303)


# The name says so


def test_names_and_docstring_say_that_it_protects_nobody() -> None:
    public = [name for name, _ in inspect.getmembers(noise, inspect.isfunction) if _.__module__ == noise.__name__]
    assert public == ["seeded_noise_without_privacy", "simulated_release"]
    assert "protects nobody" in (noise.__doc__ or "")
