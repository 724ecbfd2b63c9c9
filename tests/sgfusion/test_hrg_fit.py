import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from sgfusion.dendrogram import Dendrogram
from sgfusion.distance import zone_distances
from sgfusion.errors import DistanceError, InputError, ScheduleError
from sgfusion.hrg import Schedule, fit_dendrogram, sample_chain
from sgfusion.hrg_chain import Chain, order_by_distances, renumber
from tests.trees import KINDS, Floats, Ints, all_dendrograms, all_losses, random_distances, symmetric

ROOT = Path(__file__).resolve().parents[2]


# The optimum


@pytest.mark.parametrize("instance", range(50))
def test_up_to_seven_zones_the_fit_is_the_best_of_all_trees(instance: int) -> None:
    rng = np.random.default_rng(instance)
    kind = KINDS[instance % len(KINDS)]
    distances = random_distances(rng, (7, 6, 7, 5, 7, 4, 7, 3)[instance % 8], kind)
    fit, losses = fit_dendrogram(distances, seed=instance), all_losses(distances)
    assert fit.loss == pytest.approx(losses.min(), rel=1e-12)
    if kind != "ties" and len(distances) < 7:
        assert fit.dendrogram == all_dendrograms(len(distances))[losses.argmin()]


def average_linkage_loss(distances: Floats) -> float:
    return Dendrogram.from_merges(linkage(squareform(distances), "average")[:, :2]).loss(distances)


@pytest.mark.parametrize("kind", KINDS)
def test_the_fit_is_never_above_average_linkage(kind: str) -> None:
    rng = np.random.default_rng(17)
    for zones in (8, 10, 13, 17, 24, 37, 60):
        distances = random_distances(rng, zones, kind)
        assert fit_dendrogram(distances, seed=zones, restarts=2).loss <= average_linkage_loss(distances) * (1 + 1e-12)


def test_annealing_improves_on_average_linkage_where_there_is_room() -> None:
    distances = random_distances(np.random.default_rng(18), 30)
    assert fit_dendrogram(distances, seed=0).loss < 0.97 * average_linkage_loss(distances)


def test_a_zone_with_all_its_mass_in_one_bin_does_not_blur_the_others() -> None:
    """The far zone is alone below the root, and the fine structure among the others is the best there is."""
    rng = np.random.default_rng(19)
    alike = np.append(0.25 + 1e-3 * rng.random((6, 4)), np.zeros((6, 1)), axis=1)
    distances = zone_distances(np.vstack([alike, [[0, 0, 0, 0, 1]]]))
    fit = fit_dendrogram(distances, seed=0)
    assert fit.loss == pytest.approx(all_losses(distances).min(), rel=1e-12)
    assert 0b0111111 in fit.dendrogram.clades
    # Nor where there are too many trees to look at them all, and the far zone were to set the temperature.
    distances = random_distances(rng, 20, "far")
    below = np.sort(fit_dendrogram(distances, seed=0).dendrogram.node_distances(distances))[:-1].sum()
    assert below < 1.01 * fit_dendrogram(distances[:-1, :-1], seed=0).loss


# What the outcome may not depend on


@pytest.mark.parametrize("kind", ["uniform", "histograms", "clusters", "far"])
@pytest.mark.parametrize("schedule", ["anneal", "paper"])
def test_zones_may_have_any_numbers(kind: str, schedule: Schedule) -> None:
    rng = np.random.default_rng(20)
    for zones in (5, 14, 26):
        distances, shuffle = random_distances(rng, zones, kind), rng.permutation(zones)
        fit = fit_dendrogram(distances, seed=3, schedule=schedule)
        shuffled = fit_dendrogram(distances[np.ix_(shuffle, shuffle)], seed=3, schedule=schedule)
        assert Dendrogram(renumber(shuffled.dendrogram.merges, shuffle)) == fit.dendrogram
        assert (shuffled.moves, shuffled.acceptance) == (fit.moves, fit.acceptance)
        assert shuffled.loss == pytest.approx(fit.loss, rel=1e-12)


@pytest.mark.parametrize("exponent", [-300, -40, -1, 1, 13, 300])
@pytest.mark.parametrize("kind", KINDS)
def test_distances_may_have_any_unit(exponent: int, kind: str) -> None:
    distances = random_distances(np.random.default_rng(21), 11, kind)
    fit, scaled = (fit_dendrogram(each, seed=4, restarts=2) for each in (distances, distances * 2.0**exponent))
    assert scaled.dendrogram.merges.tolist() == fit.dendrogram.merges.tolist()
    assert scaled.loss == fit.loss * 2.0**exponent
    assert (scaled.moves, scaled.acceptance, scaled.converged) == (fit.moves, fit.acceptance, fit.converged)


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_huge_and_tiny_units_still_find_the_optimum(unit: float) -> None:
    distances = random_distances(np.random.default_rng(22), 7) * unit
    assert fit_dendrogram(distances, seed=0).loss == pytest.approx(all_losses(distances).min(), rel=1e-12)


@pytest.mark.parametrize("schedule", ["anneal", "paper"])
@pytest.mark.parametrize("kind", KINDS)
def test_both_engines_give_the_same_fit(kind: str, schedule: Schedule) -> None:
    distances = random_distances(np.random.default_rng(23), 9, kind)
    one, other = (
        fit_dendrogram(distances, seed=5, schedule=schedule, max_moves=3000, patience=20, engine=engine)
        for engine in ("numba", "python")
    )
    assert one.dendrogram.merges.tolist() == other.dendrogram.merges.tolist()
    assert one == other


def test_the_seed_decides_the_search() -> None:
    distances = random_distances(np.random.default_rng(24), 20)
    one, again, other = (fit_dendrogram(distances, seed=seed, restarts=2) for seed in (1, 1, 2))
    assert one == again
    assert one.dendrogram.merges.tolist() == again.dendrogram.merges.tolist()
    assert other.acceptance != one.acceptance


def test_another_process_finds_the_same_fit() -> None:
    """And it takes the compiled code that this process has left in numba's cache."""
    code = """
import numpy as np
from sgfusion.hrg import fit_dendrogram
from tests.trees import random_distances
fit = fit_dendrogram(random_distances(np.random.default_rng(25), 20), seed=6, restarts=2)
print(fit.dendrogram.to_json(), fit.loss.hex(), fit.moves, fit.acceptance.hex(), fit.converged)
"""
    fit = fit_dendrogram(random_distances(np.random.default_rng(25), 20), seed=6, restarts=2)
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    told = f"{fit.dendrogram.to_json()} {fit.loss.hex()} {fit.moves} {fit.acceptance.hex()} {fit.converged}\n"
    assert run.stdout == told


# Degenerate input


@pytest.mark.parametrize("schedule", ["anneal", "paper"])
@pytest.mark.parametrize(
    "distances", [np.zeros((1, 1)), np.array([[0, 3.0], [3, 0]]), np.zeros((2, 2)), np.zeros((9, 9))]
)
def test_where_nothing_can_be_searched_nothing_is(distances: Floats, schedule: Schedule) -> None:
    fit = fit_dendrogram(distances, seed=0, schedule=schedule)
    assert fit.dendrogram.zones == len(distances)
    assert (fit.loss, fit.moves, fit.acceptance, fit.converged) == (distances.max(), 0, 0.0, True)


def test_equal_histograms_beside_others_are_joined_first() -> None:
    distances = zone_distances([[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]])
    fit = fit_dendrogram(distances, seed=0)
    assert {0b100101, 0b010010} <= fit.dendrogram.clades
    assert fit.loss == pytest.approx(2 * np.sqrt(2), rel=1e-12)


# When it ends


def test_the_paper_schedule_is_the_chain_until_the_best_is_unchanged() -> None:
    """The fit, from the chain's own trees: the best of them, and `patience·|Z|` moves after it was found."""
    distances = random_distances(np.random.default_rng(26), 8)
    order = order_by_distances(distances)
    distances = distances[np.ix_(order, order)]
    for seed, patience in itertools.product(range(4), (5, 30)):
        fit = fit_dendrogram(distances, seed=seed, schedule="paper", patience=patience)
        start = Dendrogram(Chain(distances, seed, "python").random_merges())
        path = [start, *sample_chain(distances, seed=seed, temperature=1.0, moves=fit.moves)]
        losses = [tree.loss(distances) for tree in path]
        assert fit.loss == pytest.approx(min(losses), rel=1e-12)
        assert fit.dendrogram == path[int(np.argmin(losses))]
        assert fit.converged
        assert fit.moves == max(int(np.argmin(losses)), 1) + patience * 8
        changes = sum(one != other for one, other in itertools.pairwise(path))
        assert fit.acceptance == pytest.approx(changes / fit.moves, rel=1e-12)


def test_more_patience_makes_more_moves() -> None:
    distances = random_distances(np.random.default_rng(27), 10)
    few, many = (fit_dendrogram(distances, seed=0, restarts=2, patience=patience) for patience in (10, 1000))
    assert many.moves >= few.moves + 2 * 990 * 10
    assert many.converged


@pytest.mark.parametrize("schedule", ["anneal", "paper"])
@pytest.mark.parametrize("max_moves", [1, 7, 1500])
def test_max_moves_ends_the_search_and_is_told(schedule: Schedule, max_moves: int) -> None:
    distances = random_distances(np.random.default_rng(28), 12)
    fit = fit_dendrogram(distances, seed=0, schedule=schedule, max_moves=max_moves)
    assert (fit.moves, fit.converged, fit.loss) == (max_moves, False, fit.dendrogram.loss(distances))


@pytest.mark.parametrize("schedule", ["anneal", "paper"])
@pytest.mark.parametrize("max_moves", [None, 2000])
def test_progress_tells_moves_plan_and_best_loss(schedule: Schedule, max_moves: int | None) -> None:
    calls: list[tuple[int, int, float]] = []
    distances = random_distances(np.random.default_rng(29), 12)
    fit = fit_dendrogram(
        distances, seed=0, schedule=schedule, max_moves=max_moves, progress=lambda *call: calls.append(call)
    )
    moves, planned, losses = zip(*calls, strict=True)
    assert list(moves) == sorted(moves)
    assert list(losses) == sorted(losses, reverse=True)
    assert len(set(planned)) == 1
    assert moves[-1] == fit.moves <= planned[0]
    assert max_moves in (None, planned[0])
    assert losses[-1] == pytest.approx(fit.loss, rel=1e-11)
    assert fit == fit_dendrogram(distances, seed=0, schedule=schedule, max_moves=max_moves)


def test_a_cooling_ends_with_a_descent_that_accepts_no_rise() -> None:
    distances = random_distances(np.random.default_rng(30), 20)
    short, long = (fit_dendrogram(distances, seed=0, restarts=1, patience=patience) for patience in (20, 3000))
    assert long.moves - short.moves > 20 * 2900
    assert abs(long.acceptance * long.moves - short.acceptance * short.moves) < 20


def test_every_cooling_starts_from_the_best_tree_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    distances = random_distances(np.random.default_rng(31), 20)
    planted, plant = list[tuple[float, float]](), Chain.plant

    def spy(chain: Chain, merges: Ints) -> None:
        planted.append((Dendrogram(merges).loss(chain.distances), chain.best_loss))
        plant(chain, merges)

    monkeypatch.setattr(Chain, "plant", spy)
    fit_dendrogram(distances, seed=0, restarts=6)
    first, *later = planted
    assert first[0] == pytest.approx(average_linkage_loss(distances), rel=1e-12)
    assert len(later) >= 5
    assert [loss for loss, _ in later] == pytest.approx([best for _, best in later], rel=1e-11)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"schedule": "cold"}, ScheduleError, "schedule = 'cold': choose 'anneal' or 'paper'"),
        ({"schedule": "paper", "restarts": 2}, ScheduleError, "restarts = 2 belongs to schedule 'anneal'"),
        ({"restarts": 0}, ScheduleError, "restarts = 0: give a whole number >= 1"),
        ({"patience": 0}, ScheduleError, "patience = 0: give a whole number >= 1"),
        ({"max_moves": 0}, ScheduleError, "max_moves = 0: give a whole number >= 1"),
        ({"engine": "fortran"}, ScheduleError, "engine = 'fortran': choose 'numba' or 'python'"),
        ({"seed": -1}, InputError, "seed = -1"),
        ({"seed": 2**64}, InputError, "seed = 18446744073709551616"),
        ({"distances": [[0, 1], [2, 0]]}, DistanceError, "differs from its mirror image"),
        ({"distances": [[0, np.inf], [np.inf, 0]]}, DistanceError, "is not finite"),
    ],
)
def test_settings_that_make_no_search_are_refused(
    settings: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        fit_dendrogram(**({"distances": np.zeros((3, 3)), "seed": 0} | settings))  # type: ignore[arg-type]


TIED: dict[str, Callable[[np.random.Generator], Floats]] = {
    "few samples": lambda rng: zone_distances(rng.multinomial(3, np.full(40, 1 / 40), 300) / 3, "manhattan"),
    "corners of a cube": lambda rng: zone_distances(rng.integers(0, 2, (300, 10)).astype(np.float64), "manhattan"),
    "near or far": lambda rng: symmetric((rng.random((300, 300)) < 0.15).astype(np.float64)),
}


@pytest.mark.parametrize("kind", TIED)
def test_hundreds_of_zones_with_ties_do_not_end_above_average_linkage(kind: str) -> None:
    """Where distances tie there are many average-linkage trees, of different losses; SciPy's is one of them."""
    distances = TIED[kind](np.random.default_rng(3))
    theirs = Dendrogram.from_merges(linkage(squareform(distances), "average")[:, :2]).loss(distances)
    assert fit_dendrogram(distances, seed=1, restarts=1).loss <= theirs * (1 + 1e-12)


def test_a_search_does_not_wander_among_equal_zones() -> None:
    """Twenty zones of each of three kinds: moves among equals would nearly all be accepted, each at O(|Z|)."""
    distances = zone_distances(np.repeat(np.eye(3), 20, axis=0))
    fit = fit_dendrogram(distances, seed=1, restarts=1)
    assert fit.acceptance < 0.5
    assert fit.loss == pytest.approx(2 * np.sqrt(2))


@pytest.mark.parametrize("seed", range(20))
def test_zones_at_distance_zero_that_are_not_equal_are_told_apart(seed: int) -> None:
    """No metric: zones 1 and 3 are both at distance 0 from the others, but not from each other."""
    distances = np.zeros((4, 4))
    distances[1, 3] = distances[3, 1] = 1
    assert fit_dendrogram(distances, seed=seed).loss == pytest.approx(all_losses(distances).min())
