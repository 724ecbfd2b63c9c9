"""What the cloud tells a zone, and what the zone draws by it (methods 4, 5, 8 and 9)."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfusion.dendrogram import Dendrogram
from sgfusion.draws import ProbabilisticDendrogram, draws_for, sampler_of
from sgfusion.errors import SamplerError
from sgfusion.plan import Branch, Draws
from sgfusion.runfile import SamplerChoice
from sgfusion.sampling import ChiSampler, HrgSampler, NeighbourSampler, NoSampler, Sampler, TopKSampler
from tests.trees import Floats, Ints, distances_of, merges_of, naive_node_distances, trees_and_distances, zones_below

SEED = 41
ROUNDS = range(1, 9)
NEAR = np.array([[0, 1, 3, 5], [1, 0, 3, 5], [3, 3, 0, 5], [5, 5, 5, 0]], float)
CATERPILLAR = Dendrogram.from_merges([[0, 1], [2, 4], [3, 5]])
"""(((0, 1), 2), 3) with the node distances 1, 3 and 5."""


def tree_of(merges: Ints, distances: Floats, numbers: tuple[int, ...] | None = None) -> ProbabilisticDendrogram:
    return ProbabilisticDendrogram(Dendrogram(merges), distances, numbers or tuple(range(len(distances))))


def spread(matrix: Floats, numbers: tuple[int, ...], zones: int) -> Floats:
    """The matrix of the leaves as one of all zones of the run."""
    whole = np.zeros((zones, zones))
    whole[np.ix_(numbers, numbers)] = matrix
    return whole


@st.composite
def gappy(draw: st.DrawFn) -> tuple[ProbabilisticDendrogram, int]:
    """A tree over some of a run's zones, and how many the run has."""
    zones = draw(st.integers(1, 9))
    numbers = draw(st.sets(st.integers(0, zones + 3), min_size=zones, max_size=zones))
    distances = draw(distances_of(zones, 5.0))
    return tree_of(draw(merges_of(zones)), distances, tuple(sorted(numbers))), zones + 4


def matrix_sampler(tree: ProbabilisticDendrogram, zones: int, sampler: SamplerChoice, near: list[set[int]]) -> Sampler:
    """As a simulation of the whole run has it, written from the matrices alone."""
    p, numbers = tree.probabilities, tree.numbers
    others = [[other for other in numbers if other != zone] if zone in numbers else [] for zone in range(zones)]
    near = [near[zone] & set(others[zone]) for zone in range(zones)]
    if sampler.kind == "hrg":
        return HrgSampler(spread(p, numbers, zones), SEED)
    if sampler.kind == "random":
        means = np.minimum(1.0, p.sum(axis=1, keepdims=True) / max(1, len(numbers) - 1))
        uniform = np.repeat(means, len(numbers), axis=1)
        np.fill_diagonal(uniform, 0.0)
        return HrgSampler(spread(uniform, numbers, zones), SEED)
    if sampler.kind == "chi":
        counts = [
            len(n) if sampler.chi is None else min(sampler.chi, len(o)) for n, o in zip(near, others, strict=True)
        ]
        return ChiSampler(spread(p, numbers, zones), counts, SEED)
    if sampler.kind == "top-k":
        leaves = TopKSampler(tree.distances, min(sampler.k or 0, len(numbers) - 1))
        nearest = {zone: [numbers[other] for other in leaves.draw(leaf, 1)] for leaf, zone in enumerate(numbers)}
        return NeighbourSampler([nearest.get(zone, []) for zone in range(zones)])
    if sampler.kind == "none":
        return NoSampler()
    return NeighbourSampler(others if sampler.kind == "all" else near)


CHOICES = [
    SamplerChoice(),
    SamplerChoice(kind="chi"),
    SamplerChoice(kind="chi", chi=2),
    SamplerChoice(kind="top-k", k=3),
    SamplerChoice(kind="neighbours"),
    SamplerChoice(kind="none"),
    SamplerChoice(kind="random"),
    SamplerChoice(kind="all"),
]


@pytest.mark.parametrize("sampler", CHOICES, ids=lambda choice: f"{choice.kind}-{choice.chi or choice.k or ''}")
@given(gappy(), st.integers(0, 2**32))
def test_a_zone_draws_by_what_it_is_told_as_by_the_whole_matrix(
    sampler: SamplerChoice, run: tuple[ProbabilisticDendrogram, int], luck: int
) -> None:
    tree, zones = run
    edges = np.triu(np.random.Generator(np.random.Philox(key=luck)).random((zones, zones)) < 0.4, 1)
    near = [set(np.flatnonzero(row).tolist()) for row in edges | edges.T]
    whole = matrix_sampler(tree, zones, sampler, near)
    for zone in tree.numbers:
        draws = draws_for(zone, sampler=sampler, tree=tree, neighbours=near[zone])
        own = sampler_of(draws, zone=zone, seed=SEED, zones=zones)
        assert [own.draw(zone, t) for t in ROUNDS] == [whole.draw(zone, t) for t in ROUNDS]


@given(trees_and_distances(largest=5.0))
def test_branches_are_the_matrix_bit_for_bit_from_the_leaf_up(given_: tuple[Ints, Floats]) -> None:
    tree = tree_of(*given_)
    below, apart = zones_below(given_[0]), naive_node_distances(*given_)
    for zone in tree.numbers:
        branches = draws_for(zone, sampler=SamplerChoice(), tree=tree, neighbours=None).branches
        row = np.zeros(len(tree.numbers))
        for branch in branches:
            assert list(branch.zones) == sorted(branch.zones)
            row[list(branch.zones)] = branch.probability
        assert row.tobytes() == tree.probabilities[zone].tobytes()
        climb, heights = [], []
        for i, (left, right) in enumerate(given_[0].tolist()):
            if zone in below[left] + below[right]:
                climb.append(tuple(sorted(below[right if zone in below[left] else left])))
                heights.append(apart[i])
        assert [branch.zones for branch in branches] == climb
        assert [branch.distance for branch in branches] == pytest.approx(heights)


def test_a_zones_own_tree_by_hand() -> None:
    tree = ProbabilisticDendrogram(CATERPILLAR, NEAR, (2, 3, 5, 7))
    weights = np.exp(-np.array([0.0, 2.0, 4.0]))
    first, second, third = (weights / weights.sum()).tolist()
    draws = draws_for(3, sampler=SamplerChoice(), tree=tree, neighbours=None)
    assert (draws.kind, draws.count, draws.zones) == ("each", 0, ())
    assert [(branch.distance, branch.zones) for branch in draws.branches] == [(1.0, (2,)), (3.0, (5,)), (5.0, (7,))]
    assert [branch.probability for branch in draws.branches] == pytest.approx([first, second, third])
    assert [branch.zones for branch in tree.branches(7)] == [(2, 3, 5)]
    assert tree.branches(7)[0].probability == 1.0
    assert draws_for(3, sampler=SamplerChoice(kind="top-k", k=2), tree=tree, neighbours=None) == Draws(
        "fixed", zones=(2, 5)
    )
    even = draws_for(3, sampler=SamplerChoice(kind="random"), tree=tree, neighbours=None)
    assert even == Draws("each", (Branch(3.0, float(tree.probabilities[1].sum() / 3), (2, 5, 7)),))


def test_neighbours_that_never_came_are_left_out() -> None:
    tree = ProbabilisticDendrogram(CATERPILLAR, NEAR, (2, 3, 5, 7))
    for kind in ("neighbours", "chi"):
        draws = draws_for(3, sampler=SamplerChoice(kind=kind), tree=tree, neighbours=(0, 4, 7, 2))
        assert (draws.zones, draws.count) == (((2, 7), 0) if kind == "neighbours" else ((), 2))


def test_no_more_are_drawn_than_there_are() -> None:
    tree = ProbabilisticDendrogram(CATERPILLAR, NEAR, (0, 1, 2, 3))
    assert draws_for(0, sampler=SamplerChoice(kind="chi", chi=9), tree=tree, neighbours=None).count == 3
    assert draws_for(0, sampler=SamplerChoice(kind="top-k", k=9), tree=tree, neighbours=None).zones == (1, 2, 3)


def test_a_single_zone_draws_nobody() -> None:
    tree = ProbabilisticDendrogram(Dendrogram.from_merges([]), np.zeros((1, 1)), (4,))
    for sampler in CHOICES:
        draws = draws_for(4, sampler=sampler, tree=tree, neighbours=(3,))
        assert sampler_of(draws, zone=4, seed=1, zones=5).draw(4, 1) == ()


def test_words_on_what_cannot_be_told() -> None:
    tree = ProbabilisticDendrogram(CATERPILLAR, NEAR, (0, 1, 2, 3))
    with pytest.raises(SamplerError, match=r"zone 4 is no leaf of the dendrogram: it is over \[0, 1, 2, 3\]"):
        draws_for(4, sampler=SamplerChoice(), tree=tree, neighbours=None)
    for kind in ("neighbours", "chi"):
        with pytest.raises(SamplerError, match=rf"sampler.kind = '{kind}' needs the zones' neighbours.*zones.adjacent"):
            draws_for(0, sampler=SamplerChoice(kind=kind), tree=tree, neighbours=None)
    sharp = replace(tree, sharpness=1e4)
    with pytest.raises(SamplerError, match=r"χ = 2 for zone 0, and only 1 of 3 others have a chance above 0"):
        draws_for(0, sampler=SamplerChoice(kind="chi", chi=2), tree=sharp, neighbours=None)


@pytest.mark.parametrize("numbers", [(0, 1, 2), (0, 1, 3, 2), (0, 1, 1, 2), (-1, 0, 1, 2)])
def test_leaves_have_numbers_of_their_own_in_order(numbers: tuple[int, ...]) -> None:
    with pytest.raises(SamplerError, match="give each leaf its zone's number, ascending"):
        ProbabilisticDendrogram(CATERPILLAR, NEAR, numbers)


# The sampler of one zone


def test_a_zones_sampler_draws_for_no_other() -> None:
    for draws in (Draws("fixed", zones=(1,)), Draws("each", (Branch(0.1, 0.5, (1,)),)), Draws("chosen")):
        sampler = sampler_of(draws, zone=0, seed=1, zones=3)
        sampler.draw(0, 1)
        with pytest.raises(SamplerError, match="zone 2: these draws are zone 0's"):
            sampler.draw(2, 1)


@pytest.mark.parametrize(
    ("draws", "words"),
    [
        (Draws("fixed", zones=(0,)), "zone 0 is to draw zone 0"),
        (Draws("fixed", zones=(3,)), "zone 0 is to draw zone 3: give other zones, 0 to 2, each once"),
        (Draws("each", (Branch(0.1, 0.5, (-1,)),)), "zone 0 is to draw zone -1"),
        (Draws("each", (Branch(0.1, 0.5, (1,)), Branch(0.2, 0.5, (1, 2)))), "zone 0 is to draw zone 1"),
        (Draws("each", (Branch(0.1, 1.5, (1,)),)), "1.5 is not a probability"),
        (Draws("each", (Branch(0.1, float("nan"), (1,)),)), "nan is not a probability"),
        (Draws("chosen", (Branch(0.1, 0.5, (1,)),), count=2), "zone 0 has 1 zones that it can draw"),
        (Draws("chosen", (Branch(0.1, 0.5, (1,)),), count=-1), "zone 0 has 1 zones that it can draw"),
    ],
)
def test_draws_that_cannot_be_are_refused(draws: Draws, words: str) -> None:
    with pytest.raises(SamplerError, match=words):
        sampler_of(draws, zone=0, seed=1, zones=3)


def test_a_zone_that_the_run_does_not_have_is_refused() -> None:
    with pytest.raises(SamplerError, match="zone 3: zones are numbered from 0 to 2"):
        sampler_of(Draws("fixed"), zone=3, seed=1, zones=3)
