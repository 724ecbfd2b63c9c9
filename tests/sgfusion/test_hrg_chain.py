import itertools
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from sgfusion.dendrogram import Dendrogram
from sgfusion.distance import zone_distances
from sgfusion.errors import DistanceError, InputError, ScheduleError
from sgfusion.hrg import sample_chain
from sgfusion.hrg_chain import Chain, Engine, order_by_distances, renumber
from tests.trees import (
    KINDS,
    Floats,
    Ints,
    all_dendrograms,
    all_losses,
    gibbs,
    law_is_rejected,
    metropolis,
    proposals,
    random_distances,
    random_merges,
)

ROOT = Path(__file__).resolve().parents[2]
FIVE = random_distances(np.random.default_rng(5), 5)
THIN = 100


# The law (method 3; tests/paper has it at two temperatures)


def counts_of_trees(temperature: float) -> Floats:
    """How often each of the 105 trees of five zones is seen; the first looks are not counted."""
    trees = sample_chain(FIVE, seed=1, temperature=temperature, moves=15_000 * THIN, thin=THIN)
    counts = Counter(itertools.islice(trees, 20, None))
    return np.array([counts[tree] for tree in all_dendrograms(5)], np.float64)


def test_looks_at_the_chain_are_nearly_independent() -> None:
    for temperature in (0.2, math.inf):
        transitions = metropolis(proposals(5), all_losses(FIVE), temperature)
        second = np.sort(np.abs(np.linalg.eigvals(transitions)))[-2]
        assert second**THIN < 0.01


def test_at_infinite_temperature_every_tree_is_as_likely() -> None:
    counts = counts_of_trees(math.inf)
    assert not law_is_rejected(counts, np.full(105, 1 / 105))
    assert law_is_rejected(counts, gibbs(all_losses(FIVE), 2.5))


def test_a_chain_at_another_temperature_is_told_apart() -> None:
    counts, losses = counts_of_trees(0.2), all_losses(FIVE)
    assert not law_is_rejected(counts, gibbs(losses, 0.2))
    assert law_is_rejected(counts, gibbs(losses, 0.22))
    assert law_is_rejected(counts, gibbs(losses, 0.18))


# The path


def path(seed: int, *, moves: int = 60, thin: int = 1, engine: Engine = "numba", zones: int = 9) -> list[Dendrogram]:
    distances = random_distances(np.random.default_rng(zones), zones)
    return list(sample_chain(distances, seed=seed, temperature=0.2, moves=moves, thin=thin, engine=engine))


def test_the_path_follows_from_the_seed_alone() -> None:
    assert path(3) == path(3)
    assert path(3) != path(4)
    assert path(3, moves=30) == path(3)[:30]


@pytest.mark.parametrize("thin", [2, 3, 7, 60])
def test_thinning_shows_the_same_path(thin: int) -> None:
    assert path(3, thin=thin) == path(3)[thin - 1 :: thin]


def test_chains_do_not_share_their_random_numbers() -> None:
    distances = random_distances(np.random.default_rng(9), 9)
    one, other = (sample_chain(distances, seed=3, temperature=0.2, moves=60) for _ in range(2))
    assert [tree for pair in zip(one, other, strict=True) for tree in pair][::2] == path(3)


def test_moves_acceptances_and_start_are_drawn_apart_and_from_the_seed() -> None:
    chains = [Chain(FIVE, seed, "python") for seed in (3, 4)]
    streams = [stream for chain in chains for stream in (chain._choices, chain._acceptances, chain._start)]
    assert len({int(stream.random_raw()) for stream in streams}) == 6


@pytest.mark.parametrize("zones", [1, 2, 3, 9, 33])
def test_both_engines_walk_the_same_path(zones: int) -> None:
    assert path(5, zones=zones) == path(5, zones=zones, engine="python")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [1e-9, 0.1, math.inf])
def test_both_engines_have_the_same_bits(kind: str, temperature: float) -> None:
    rng = np.random.default_rng(4)
    for zones in (3, 8, 20):
        distances, merges = random_distances(rng, zones, kind), random_merges(rng, zones)
        states = []
        for engine in ("python", "numba"):
            chain = Chain(distances, 7, engine)
            chain.plant(merges)
            last = [chain.walk(moves, temperature) for moves in (1, 300)]
            arrays = (chain.tree, chain.best_tree, chain._reach, chain._near, chain.average_linkage())
            states.append((last, chain.best_loss.hex(), chain.accepted, *(array.tobytes() for array in arrays)))
        assert states[0] == states[1]


@pytest.mark.parametrize(("zones", "tree"), [(1, []), (2, [[0, 1]])])
def test_where_there_is_one_tree_the_chain_stays_on_it(zones: int, tree: list[list[int]]) -> None:
    trees = list(sample_chain(1 - np.eye(zones), seed=0, temperature=1.0, moves=7, thin=2))
    assert trees == [Dendrogram.from_merges(tree)] * 3


def test_the_random_start_can_be_any_tree() -> None:
    starts = {Dendrogram(Chain(np.zeros((4, 4)), seed, "python").random_merges()) for seed in range(200)}
    assert len(starts) == 15
    assert Chain(np.zeros((1, 1)), 0, "python").random_merges().shape == (0, 2)


def test_merges_are_those_planted() -> None:
    rng = np.random.default_rng(6)
    for zones in (1, 2, 3, 12):
        chain, merges = Chain(np.zeros((zones, zones)), 0, "python"), random_merges(rng, zones)
        chain.plant(merges)
        assert Dendrogram(chain.merges(chain.tree)) == Dendrogram(merges)


# Average linkage, where the search starts


@pytest.mark.parametrize("engine", ["python", "numba"])
@pytest.mark.parametrize("kind", ["uniform", "histograms", "clusters", "far"])
def test_average_linkage_is_scipys(kind: str, engine: Engine) -> None:
    rng = np.random.default_rng(11)
    for zones in (2, 3, 5, 12, 40):
        distances = random_distances(rng, zones, kind)
        merges = Chain(distances, 0, engine).average_linkage()
        assert Dendrogram(merges) == Dendrogram.from_merges(linkage(squareform(distances), "average")[:, :2])


@pytest.mark.parametrize("zones", [2, 7, 16, 61])
def test_equal_zones_make_a_level_tree(zones: int) -> None:
    merges = Chain(np.zeros((zones, zones)), 0, "numba").average_linkage()
    assert height(merges) == math.ceil(math.log2(zones))


def height(merges: Ints) -> int:
    heights = [0] * (len(merges) + 1)
    for left, right in merges.tolist():
        heights.append(1 + max(heights[left], heights[right]))
    return heights[-1]


@pytest.mark.parametrize("engine", ["python", "numba"])
@pytest.mark.parametrize(
    "labels",
    [
        "012 012 012 012 012 012 012 021 021 021 021 021 021 111 111 111 111 120 120 120 102 102 003 201",
        "111 111 111 111 111 111 111 111 111 111 111 102 102 102 102 102 102 102 012 012 030 030 201 021 120 003",
        "111 111 111 111 111 111 111 021 021 021 021 021 021 120 120 120 120 210 210 210 030 030 030 012 201 102 003",
    ],
    ids=["24 zones", "26 zones", "27 zones"],
)
def test_equal_means_that_rounding_tells_apart_do_not_lead_it_astray(labels: str, engine: Engine) -> None:
    """Zones of three samples each. The mean of equal distances may round below them, so that a chain of nearest
    neighbours comes upon a cluster that it has passed before.
    """
    histograms = np.array([list(map(int, zone)) for zone in labels.split()]) / 3
    merges = Chain(zone_distances(histograms), 0, engine).average_linkage()
    assert Dendrogram(merges).zones == len(histograms)


# The order of zones, engines, refusals


def test_the_order_follows_from_distances_and_not_from_numbers() -> None:
    rng = np.random.default_rng(2)
    distances, shuffle = random_distances(rng, 12), rng.permutation(12)
    order = order_by_distances(distances)
    shuffled = order_by_distances(distances[np.ix_(shuffle, shuffle)])
    assert shuffle[shuffled].tolist() == order.tolist()
    nearest = np.sort(distances[np.ix_(order, order)], axis=1)[:, 1]
    assert nearest.tolist() == sorted(nearest.tolist())
    assert order_by_distances(np.zeros((4, 4))).tolist() == [0, 1, 2, 3]


def test_renumbered_merges_name_the_zones_themselves() -> None:
    assert renumber(np.array([[0, 1], [3, 2]]), np.array([2, 0, 1])).tolist() == [[2, 0], [3, 1]]


def test_without_numba_the_error_names_the_extra_and_python_still_works() -> None:
    code = """
import sys
sys.modules["numba"] = None
from sgfusion.errors import MissingDependencyError
from sgfusion.hrg import fit_dendrogram
distances = [[0, 1, 2], [1, 0, 2], [2, 2, 0]]
try:
    fit_dendrogram(distances, seed=0)
except MissingDependencyError as error:
    print(error)
print(fit_dendrogram(distances, seed=0, engine="python", max_moves=99).loss)
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "pip install '.[cloud]'" in run.stdout
    assert run.stdout.endswith("\n3.0\n")


def test_what_makes_no_chain_is_refused() -> None:
    for temperature in (0.0, -1.0, math.nan):
        with pytest.raises(ScheduleError, match=f"temperature = {temperature}"):
            sample_chain(FIVE, seed=0, temperature=temperature, moves=1)
    for moves, thin in ((-1, 1), (1, 0)):
        with pytest.raises(ScheduleError, match=f"moves = {moves}, thin = {thin}"):
            sample_chain(FIVE, seed=0, temperature=1, moves=moves, thin=thin)
    with pytest.raises(ScheduleError, match="engine = 'fortran': choose 'numba' or 'python'"):
        sample_chain(FIVE, seed=0, temperature=1, moves=1, engine="fortran")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="seed = -1"):
        sample_chain(FIVE, seed=-1, temperature=1, moves=1)
    with pytest.raises(DistanceError, match="square"):
        sample_chain(FIVE[:3], seed=0, temperature=1, moves=1)
    assert list(sample_chain(FIVE, seed=0, temperature=1, moves=0)) == []
