"""Method 1: label histograms, made private on the device."""

import inspect
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import gamma

from sgfusion import privacy
from sgfusion.errors import BudgetExceededError
from sgfusion.histogram import UNIT, class_edges, label_mass
from sgfusion.privacy import Adjacency, Ledger, measurement, noised_parts, privatize, scaled_to_one, sensitivity

EDGES = [40, 80, 120, 160, 200]  # heart rates
ALARM = 1e-9  # how often a sound mechanism may fail each of these statistical bounds


def l1(a: Sequence[object], b: Sequence[object]) -> float:
    return float(np.abs(label_mass(a, EDGES) - label_mass(b, EDGES)).sum())


def test_labels_are_counted_into_public_bins() -> None:
    """Every device counts its labels into bins whose edges are public and the same for everyone (part of
    the task; a class label is its own bin).
    """
    one, other = label_mass([61, 75, 130], EDGES), label_mass([199, 45], EDGES)
    assert (one.tolist(), other.tolist()) == ([2, 0, 1, 0], [1, 0, 0, 1])  # bin for bin comparable
    assert label_mass([0, 1, 2, 3], class_edges(4)).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(("adjacency", "delta"), [("replace", 2), ("add-remove", 1)])
def test_the_laplace_mechanism(adjacency: Adjacency, delta: int) -> None:
    """The histogram is noised on the device by the Laplace
    mechanism, `M(Y_u, ε) = Y_u + Lap(Δ/ε)`, before anything leaves it.
    """
    n, epsilon = 10_000, 0.7
    mass = np.arange(n, dtype=np.float64)
    noise = noised_parts(mass, epsilon=epsilon, adjacency=adjacency) / UNIT - mass
    sizes = np.abs(noise).sum() / (delta / epsilon)  # a sum of n standard exponentials if the noise is Lap(Δ/ε)
    assert gamma.ppf(ALARM, n) < sizes < gamma.isf(ALARM, n)
    assert abs(noise.mean()) < 6.5 * np.sqrt(2 / n) * delta / epsilon  # unbiased: Y_u + noise


@pytest.mark.parametrize("length", [1, 2, 3, 7, 500, 499])
def test_a_sample_gives_one_unit_whatever_its_length(length: int) -> None:
    """A sample whose label is a sequence (a workout's
    heart rates) spreads one unit of mass over the bins, so that replacing a sample changes the histogram
    by at most 2 in L1, whatever its length: `Δ = 2` for replace-one, `1` for add/remove-one.
    """
    rest: list[object] = [60, [90, 170, 100]]
    mixed = [40 + (37 * i) % 170 for i in range(length)]
    assert label_mass([mixed], EDGES).sum() == 1
    assert l1([*rest, mixed], rest) == 1 == sensitivity("add-remove")
    assert l1([*rest, mixed], [*rest, 150]) <= 2
    assert l1([*rest, [50] * length], [*rest, [150] * 3]) == 2 == sensitivity("replace")


def test_the_default_adjacency_is_replace_one() -> None:
    """The adjacency is
    a setting; the default is replace-one.
    """
    for function in (privatize, noised_parts, Ledger.release):
        assert inspect.signature(function).parameters["adjacency"].default == "replace"


def test_the_noise_is_opendps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise comes from a library whose sampler withstands
    floating-point attacks (OpenDP), not from `numpy.random.laplace`.
    """
    from opendp.mod import Measurement

    mechanism = measurement(1.0, "replace")
    assert mechanism.map(2 * UNIT) == 1.0
    assert all(isinstance(part, int) for part in mechanism([1, 2, 3]))  # whole parts: no float's tail to attack
    assert isinstance(mechanism, Measurement)
    monkeypatch.setattr(privacy, "measurement", lambda *_: lambda parts: [part + 5 for part in parts])
    assert noised_parts([1.0, 0.0], epsilon=1.0).tolist() == [UNIT + 5, 5]  # and nothing but it is added


def test_clipping_and_scaling_come_after_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clipping at zero and scaling to sum 1
    come after the noise (post-processing).
    """
    noised = noised_parts(np.zeros(60), epsilon=1.0)
    assert noised.min() < 0 < noised.max()  # not clipped before: else half of them would be 0 (2^-59 to fail)
    assert scaled_to_one(noised).tolist() == (np.maximum(noised, 0) / np.maximum(noised, 0).sum()).tolist()
    monkeypatch.setattr(privacy, "noised_parts", lambda *_, **__: np.array([-4, 1, 3]))
    assert privatize([1.0, 0.0, 0.0], epsilon=1.0).tolist() == [0.0, 0.25, 0.75]


def test_a_release_is_sent_again_as_it_is(tmp_path: Path) -> None:
    """A noised histogram is released once, kept, and sent again
    as it is on every reconnect: noising afresh would let an edge average the noise away.
    """
    mass = label_mass([60] * 30 + [130] * 10, EDGES)
    reconnects = [Ledger(tmp_path / "ledger", budget=1.0).release("hr", mass, epsilon=0.1) for _ in range(50)]
    assert len({tuple(release.tolist()) for release in reconnects}) == 1

    n = 2000  # afresh: the mean of n noisings is n^-1/2 as far off, so the edge would see the counts themselves
    afresh = np.mean([noised_parts(mass, epsilon=0.1) / UNIT for _ in range(n)], axis=0)
    scale = 2 / 0.1
    assert np.abs(afresh - mass).max() < 6.5 * np.sqrt(2 / n) * scale < scale / 4


def test_each_release_is_entered_and_none_goes_beyond_the_budget(tmp_path: Path) -> None:
    """Each release is
    entered in a ledger on the device's disk, and a release beyond the budget is refused.
    """
    path = tmp_path / "ledger"
    ledger = Ledger(path, budget=1.0)
    released = [ledger.release(f"hr/{month}", [1.0, 2.0], epsilon=0.5).tolist() for month in range(2)]
    assert [list(entry.release) for entry in Ledger(path, budget=1.0).entries] == released
    assert path.is_file()
    with pytest.raises(BudgetExceededError):
        ledger.release("hr/2", [1.0, 2.0], epsilon=0.01)
    assert ledger.spent == 1.0


def test_the_noise_cannot_be_seeded() -> None:
    """That noise cannot be seeded, by design"""
    for function in (privatize, noised_parts, measurement, Ledger.__init__, Ledger.release):
        assert not {"seed", "rng", "random_state", "generator"} & set(inspect.signature(function).parameters)
    draws = set()
    for _ in range(3):
        np.random.seed(0)  # noqa: NPY002 (the global generator is what must not matter)
        draws.add(tuple(noised_parts([1.0] * 4, epsilon=1.0).tolist()))
    assert len(draws) == 3
