"""Places of zones that have none on earth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.page.layout import MARGIN, SHORE, all_places, by_likeness, leaf_places
from sgfusion.dendrogram import Dendrogram
from sgfusion.dendrogram_file import ZoneTree

LINE = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]])
"""Three zones on a line: at 0, 1 and 3."""


def test_zones_on_a_line_lie_on_a_line_in_proportion() -> None:
    places = by_likeness(LINE)
    width = 1 - 2 * MARGIN
    assert places[:, 1] == pytest.approx([0.5, 0.5, 0.5])
    # The middle of 0 and 3 is 1.5; the entry that is largest from the mean 4/3 is the third, and points up.
    assert places[:, 0] == pytest.approx([MARGIN, MARGIN + width / 3, 1 - MARGIN])


def test_a_square_stays_a_square() -> None:
    corners = np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 2.0], [2.0, 0.0]])
    distances = np.linalg.norm(corners[:, None] - corners[None], axis=2)
    places = by_likeness(distances)
    found = np.linalg.norm(places[:, None] - places[None], axis=2)
    assert found / found.max() == pytest.approx(distances / distances.max())


def test_zones_that_are_all_alike_are_told_apart() -> None:
    places = by_likeness(np.zeros((4, 4)))
    assert places == pytest.approx(np.array([[0.5, 0.94], [0.94, 0.5], [0.5, 0.06], [0.06, 0.5]]))
    assert by_likeness(np.zeros((1, 1))).tolist() == [[0.5, 0.5]]


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_all_lie_in_the_square_whatever_the_distances(count: int, seed: int) -> None:
    """Label distances need not be those of a plane."""
    random = np.random.default_rng(seed).random((count, count))
    distances = np.triu(random, 1) + np.triu(random, 1).T
    places = by_likeness(distances)
    assert places.shape == (count, 2)
    assert ((places >= MARGIN - 1e-9) & (places <= 1 - MARGIN + 1e-9)).all()
    assert by_likeness(distances).tobytes() == places.tobytes()


def test_who_is_no_leaf_waits_below() -> None:
    tree = ZoneTree(("ash", "elm", "fir"), Dendrogram.from_merges([[0, 1], [3, 2]]), LINE)
    leaves = leaf_places(tree)
    places = all_places(["ash", "birch", "elm", "fir", "gum"], leaves)
    assert {name: places[name] for name in tree.zones} == leaves
    assert places["birch"] == pytest.approx((MARGIN + (1 - 2 * MARGIN) / 3, SHORE))
    assert places["gum"] == pytest.approx((1 - MARGIN - (1 - 2 * MARGIN) / 3, SHORE))


def test_without_a_tree_all_are_on_a_circle() -> None:
    assert leaf_places(None) == {}
    assert all_places(["ash", "elm"], {})["elm"] == pytest.approx((0.5, MARGIN))
