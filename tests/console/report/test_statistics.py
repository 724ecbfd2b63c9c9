import itertools
import math

import pytest

from console.report.statistics import PairedTest, Won, holm, paired_test, sign_p, signed_rank_p, zones_won


def test_zones_won_tells_ties_apart() -> None:
    won = zones_won([1, 2, 3, 4], [2, 2, 1, 9])
    assert won == Won(2, 1, 1)
    assert str(won) == "2:1 (1 tied)"
    assert str(Won(8, 5, 0)) == "8:5"


def test_a_cost_that_is_infinite_has_lost() -> None:
    assert zones_won([1, math.inf, math.inf], [math.inf, 1, math.inf]) == Won(1, 1, 1)


@pytest.mark.parametrize(
    ("won", "lost", "p"),
    [(6, 0, 2 / 64), (0, 6, 2 / 64), (8, 5, 2 * (1 + 13 + 78 + 286 + 715 + 1287) / 8192), (3, 3, 1.0), (0, 0, 1.0)],
)
def test_the_sign_test_is_exact(won: int, lost: int, p: float) -> None:
    assert sign_p(won, lost) == pytest.approx(p, rel=1e-15)


def test_signed_ranks_by_hand() -> None:
    assert signed_rank_p([-1, -2, -3, -4, -5, -6]) == pytest.approx(2 / 64)
    # Ranks of the one gain sum to 6; of the 64 subsets of {1..6}, 1+1+1+2+2+3+4 = 14 sum to 6 or less.
    assert signed_rank_p([-1, -2, -3, -4, -5, 6]) == pytest.approx(2 * 14 / 64)


def test_signed_ranks_by_every_choice_of_signs() -> None:
    differences = [0.3, -0.1, 0.9, 0.45, -0.5, 1.2, 0.05]
    ranks = [1 + sum(abs(b) < abs(a) for b in differences) for a in differences]
    seen = sum(rank for rank, d in zip(ranks, differences, strict=True) if d > 0)
    extreme = min(seen, sum(ranks) - seen)
    sums = [
        sum(r for r, s in zip(ranks, signs, strict=True) if s) for signs in itertools.product((0, 1), repeat=len(ranks))
    ]
    assert signed_rank_p(differences) == pytest.approx(2 * sum(s <= extreme for s in sums) / len(sums))


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, None, 0.03]) == pytest.approx([0.03, 0.06, None, 0.06])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([None]) == [None]


def test_fewer_than_six_zones_that_differ_are_not_tested() -> None:
    assert paired_test([1] * 5, [2] * 5) == PairedTest(5, None, None)
    assert paired_test([1] * 5 + [3, 3], [2] * 5 + [3, 3]) == PairedTest(5, None, None)
    test = paired_test([1, 2, 3, 4, 5, 6, 7], [2, 4, 6, 8, 10, 12, 7])
    assert test.differing == 6
    assert [test.wilcoxon, test.sign] == pytest.approx([2 / 64, 2 / 64])


def test_a_zone_lost_beyond_measure_counts_as_the_greatest_loss() -> None:
    test = paired_test([1, 2, 3, 4, 5, math.inf], [2, 4, 6, 8, 10, 1])
    assert test.wilcoxon == pytest.approx(2 * 14 / 64)
