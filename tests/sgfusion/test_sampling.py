"""Who is drawn: every sampler against one class, then the laws of those that draw by chance (methods 5 and 8)."""

import itertools
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binomtest

from sgfusion.errors import DistanceError, InputError, SamplerError
from sgfusion.sampling import ChiSampler, HrgSampler, NeighbourSampler, NoSampler, Sampler, TopKSampler

ZONES = 5
P = np.array(
    [
        [0.0, 0.9, 0.5, 0.1, 0.05],
        [0.9, 0.0, 0.5, 0.1, 0.05],
        [0.3, 0.3, 0.0, 0.3, 0.1],
        [0.2, 0.2, 0.2, 0.0, 0.8],
        [0.25, 0.25, 0.25, 0.75, 0.0],
    ]
)
LINE = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
RING = [[4, 1], [0, 2], [1, 3], [2, 4], [3, 0]]
ROUNDS = 4000
UNLIKELY = 1e-9
"""How often a single check cries wolf; a test makes fewer than a thousand."""

SAMPLERS: dict[str, Callable[[], Sampler]] = {
    "hrg": lambda: HrgSampler(P, 2026),
    "chi": lambda: ChiSampler(P, [2, 1, 3, 4, 0], 2026),
    "top-k": lambda: TopKSampler(LINE, 2),
    "neighbours": lambda: NeighbourSampler(RING),
    "none": NoSampler,
}


@pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS.keys())
class TestEverySampler:
    def test_draws_an_ascending_tuple_of_ints_without_the_zone_itself(self, make: Callable[[], Sampler]) -> None:
        sampler = make()
        for zone, t in itertools.product(range(ZONES), range(50)):
            draw = sampler.draw(zone, t)
            assert type(draw) is tuple
            assert all(type(other) is int for other in draw)
            assert list(draw) == sorted(set(draw))
            assert set(draw) <= set(range(ZONES)) - {zone}

    def test_a_draw_depends_on_zone_and_round_alone(self, make: Callable[[], Sampler]) -> None:
        one, another = make(), make()
        places = list(itertools.product(range(ZONES), range(20)))
        forwards = {place: one.draw(*place) for place in places}
        backwards = {place: another.draw(*place) for place in reversed(places)}
        assert forwards == backwards == {place: one.draw(*place) for place in places}

    @pytest.mark.parametrize("zone", [-1, ZONES])
    def test_a_zone_that_is_not_there_is_refused(self, make: Callable[[], Sampler], zone: int) -> None:
        sampler = make()
        if isinstance(sampler, NoSampler) and zone >= 0:
            assert sampler.draw(zone, 1) == ()  # it knows of no other zones, so it cannot know how many there are
        else:
            with pytest.raises(SamplerError, match=rf"^zone {zone}: zones are numbered from 0"):
                sampler.draw(zone, 1)

    def test_a_round_before_the_first_is_refused(self, make: Callable[[], Sampler]) -> None:
        with pytest.raises(SamplerError, match=r"^round -1: rounds are numbered from 0"):
            make().draw(0, -1)


# Golden draws: whoever changes one of these changes every run that was ever made.


def draws_of(sampler: Sampler) -> list[list[tuple[int, ...]]]:
    return [[sampler.draw(zone, t) for t in (1, 2, 3, 200)] for zone in range(ZONES)]


HRG_DRAWS = [
    [(1, 2, 3), (1, 2), (), (1,)],
    [(0, 2), (0, 3), (0, 2), (0, 2)],
    [(), (), (), (0,)],
    [(0, 1, 4), (2, 4), (0, 1, 4), ()],
    [(0, 3), (), (3,), ()],
]
CHI_DRAWS = [
    [(1, 2), (3, 4), (1, 2), (1, 2)],
    [(0,), (2,), (0,), (0,)],
    [(1, 3, 4), (0, 1, 3), (0, 3, 4), (0, 1, 4)],
    [(0, 1, 2, 4)] * 4,
    [()] * 4,
]


def test_hrg_and_chi_draw_these() -> None:
    assert draws_of(SAMPLERS["hrg"]()) == HRG_DRAWS
    assert draws_of(SAMPLERS["chi"]()) == CHI_DRAWS


def test_another_process_draws_the_same() -> None:
    program = (
        "from sgfusion.sampling import ChiSampler, HrgSampler\n"
        f"p = {P.tolist()}\n"
        "for s in (HrgSampler(p, 2026), ChiSampler(p, [2, 1, 3, 4, 0], 2026)):\n"
        "    print([[s.draw(z, r) for r in (1, 2, 3, 200)] for z in range(5)])\n"
    )
    for hash_seed in ("1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        there = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert there.stdout.splitlines() == [str(HRG_DRAWS), str(CHI_DRAWS)]


def test_a_line_of_zones_has_these_nearest() -> None:
    sampler = TopKSampler(LINE, 2)
    assert [sampler.draw(zone, 9) for zone in range(ZONES)] == [(1, 2), (0, 2), (1, 3), (2, 4), (2, 3)]
    assert TopKSampler(LINE, 1).draw(2, 1) == (1,)  # 1 and 3 are equally near: the lower number
    assert [TopKSampler(LINE, k).draw(1, 1) for k in (0, 4)] == [(), (0, 2, 3, 4)]
    assert TopKSampler([[0.0]], 0).draw(0, 1) == ()
    alike = TopKSampler(np.zeros((300, 300)), 3)  # itself is no nearer than zones just like it
    assert [alike.draw(zone, 1) for zone in range(300)] == [(1, 2, 3), (0, 2, 3), (0, 1, 3), *[(0, 1, 2)] * 297]


def test_neighbours_are_those_given_each_once() -> None:
    sampler = NeighbourSampler([[3, 1, 3], [], (zone for zone in (1, 0)), {0}])
    assert [sampler.draw(zone, 1) for zone in range(4)] == [(1, 3), (), (0, 1), (0,)]


# The law of HRG draws


def inclusions(sampler: Sampler, zone: int, rounds: Iterable[int]) -> npt.NDArray[np.bool_]:
    """`[round, z']`: was `z'` drawn?"""
    drawn = [sampler.draw(zone, t) for t in rounds]
    return np.array([[other in draw for other in range(ZONES)] for draw in drawn])


def assert_as_likely_as(hits: npt.NDArray[np.bool_], probability: float) -> None:
    found = binomtest(int(hits.sum()), len(hits), probability)
    assert found.pvalue > UNLIKELY, f"{found.statistic:.4f} of {len(hits)}, not {probability:.4f}"


@pytest.fixture(scope="module")
def hrg() -> npt.NDArray[np.bool_]:
    """`[zone, round, z']` of many rounds."""
    sampler = HrgSampler(P, 77)
    return np.stack([inclusions(sampler, zone, range(1, ROUNDS + 1)) for zone in range(ZONES)])


def test_hrg_draws_each_zone_as_often_as_its_probability(hrg: npt.NDArray[np.bool_]) -> None:
    for zone, other in itertools.product(range(ZONES), repeat=2):
        assert_as_likely_as(hrg[zone, :, other], P[zone, other])


def test_hrg_draws_zones_independently_of_each_other(hrg: npt.NDArray[np.bool_]) -> None:
    for zone in range(ZONES):
        others = [other for other in range(ZONES) if other != zone]
        patterns = hrg[zone][:, others] @ (1 << np.arange(len(others)))
        for number, pattern in enumerate(itertools.product((False, True), repeat=len(others))):
            chances = [
                P[zone, other] if taken else 1 - P[zone, other]
                for other, taken in zip(others[::-1], pattern, strict=True)
            ]
            assert_as_likely_as(patterns == number, math.prod(chances))


def test_hrg_draws_rounds_and_zones_independently_of_each_other(hrg: npt.NDArray[np.bool_]) -> None:
    for zone, other in itertools.permutations(range(ZONES), 2):
        hits = hrg[zone, :, other]
        assert_as_likely_as(hits[0::2] & hits[1::2], P[zone, other] ** 2)
        for zone2, other2 in itertools.permutations(range(ZONES), 2):
            if zone < zone2:
                assert_as_likely_as(hits & hrg[zone2, :, other2], P[zone, other] * P[zone2, other2])


def test_hrg_draws_as_many_zones_on_average_as_the_probabilities_sum_to(hrg: npt.NDArray[np.bool_]) -> None:
    for zone in range(ZONES):
        spread = math.sqrt((P[zone] * (1 - P[zone])).sum() / ROUNDS)
        assert abs(hrg[zone].sum(axis=1).mean() - P[zone].sum()) < 6.2 * spread  # once in 10⁹


@pytest.mark.parametrize(("luck", "drawn"), [(0.0, [(1,), (0, 2), ()]), (1 - 2.0**-53, [(1,), (2,), ()])])
def test_the_least_and_the_greatest_luck_there_is(
    luck: float, drawn: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sgfusion.sampling.uniforms", lambda _, count: np.full(count, luck))
    p = [[0.0, 1.0, 0.0], [1e-300, 0.0, 1.0], [0.0, 0.0, 0.0]]
    assert [HrgSampler(p, 1).draw(zone, 1) for zone in range(3)] == drawn
    assert [ChiSampler(p, [1, 1, 0], 1).draw(zone, 1) for zone in range(3)] == [(1,), (0 if luck == 0 else 2,), ()]


def test_a_zone_that_joins_at_the_end_does_not_change_the_luck_of_others() -> None:
    small, large = HrgSampler(P[:4, :4], 5), HrgSampler(P, 5)
    for zone, t in itertools.product(range(4), range(100)):
        assert small.draw(zone, t) == tuple(other for other in large.draw(zone, t) if other < 4)


def test_a_higher_probability_only_adds_zones() -> None:
    low, high = HrgSampler(P / 2, 5), HrgSampler(P, 5)
    assert all(set(low.draw(zone, t)) <= set(high.draw(zone, t)) for zone in range(5) for t in range(100))


# Refusals


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([[0, 0.5]], r"shape \(1, 2\): give a square matrix"),
        ([0, 0.5], r"shape \(2,\)"),
        (np.empty((0, 0)), r"shape \(0, 0\)"),
        ([[0, 1.5], [0, 0]], r"probabilities\[0, 1\] = 1.5 is not a probability"),
        ([[0, 0.5], [-0.1, 0]], r"probabilities\[1, 0\] = -0.1 is not a probability"),
        ([[0, math.nan], [0, 0]], r"probabilities\[0, 1\] = nan is not a probability"),
        ([[0, 0.5], [0.5, 0.2]], r"probabilities\[1, 1\] = 0.2 is on the diagonal"),
    ],
)
def test_what_are_no_probabilities_is_refused(probabilities: npt.ArrayLike, message: str) -> None:
    with pytest.raises(SamplerError, match=message):
        HrgSampler(probabilities, 1)
    with pytest.raises(SamplerError, match=message):
        ChiSampler(probabilities, [0, 0], 1)


@pytest.mark.parametrize(
    ("counts", "message"),
    [([1, 1], "2 counts for 3 zones"), ([1, 2, 1], r"counts\[1\] = 2"), ([-1, 1, 1], r"counts\[0\] = -1")],
)
def test_chi_refuses_more_zones_than_can_be_drawn(counts: list[int], message: str) -> None:
    with pytest.raises(SamplerError, match=message):
        ChiSampler(np.array([[0, 0.5, 0.5], [1, 0, 0], [0.5, 0.5, 0]]), counts, 1)


def test_top_k_refuses_more_zones_than_there_are() -> None:
    for k in (-1, 5):
        with pytest.raises(SamplerError, match=f"k = {k}: a zone among 5 has 4 others"):
            TopKSampler(LINE, k)
    with pytest.raises(DistanceError, match="mirror"):
        TopKSampler([[0, 1], [2, 0]], 1)


@pytest.mark.parametrize("other", [0, 3, -1])
def test_neighbours_refuses_itself_and_strangers(other: int) -> None:
    with pytest.raises(SamplerError, match=rf"neighbours\[0\] names zone {other}: give other zones, 0..2"):
        NeighbourSampler([[other], [0], [0]])


@pytest.mark.parametrize("make", [lambda: HrgSampler(P, -1), lambda: ChiSampler(P, [1] * ZONES, 2**64)])
def test_a_seed_that_is_none_is_refused_at_once(make: Callable[[], Sampler]) -> None:
    with pytest.raises(InputError, match="seed = "):
        make()
