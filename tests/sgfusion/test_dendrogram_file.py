import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfusion.dendrogram import Dendrogram
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.errors import DendrogramError, DistanceError, InputError
from sgfusion.hrg import fit_dendrogram
from tests.trees import Floats, Ints, merges_of, random_distances, trees_and_distances

TWO = ZoneTree(("lublin", "łódź"), Dendrogram.from_merges([[0, 1]]), np.array([[0, 0.1], [0.1, 0]]))


def altered(**keys: Any) -> str:
    """The JSON of TWO with other values; None leaves a key out."""
    document = json.loads(TWO.to_json()) | keys
    return json.dumps({key: value for key, value in document.items() if value is not None})


# There and back


@given(st.integers(1, 12).flatmap(merges_of))
def test_a_dendrogram_comes_back(merges: Ints) -> None:
    tree = Dendrogram(merges)
    for text in (tree.to_json(), tree.to_json().encode()):
        again = Dendrogram.from_json(text)
        assert again == tree
        assert again.merges.tolist() == merges.tolist()
        assert not again.merges.flags.writeable


@given(trees_and_distances(largest=1.7e308 / 100), st.data())
def test_a_zone_tree_comes_back_bit_by_bit(case: tuple[Ints, Floats], data: st.DataObject) -> None:
    merges, distances = case
    zones = len(distances)
    names = data.draw(st.lists(st.text(), min_size=zones, max_size=zones, unique=True))
    tree = ZoneTree(tuple(names), Dendrogram(merges), distances)
    again = ZoneTree.from_json(tree.to_json())
    assert again.zones == tuple(names)
    assert again.dendrogram.merges.tolist() == merges.tolist()
    assert again.distances.tobytes() == distances.tobytes()
    assert again.to_json() == tree.to_json()


def test_a_fit_comes_back_with_the_same_probabilities() -> None:
    distances = random_distances(np.random.default_rng(1), 12, "histograms")
    tree = ZoneTree(tuple("abcdefghijkl"), fit_dendrogram(distances, seed=1).dendrogram, distances)
    again = ZoneTree.from_json(tree.to_json().encode())
    before, after = (each.dendrogram.sharing_probabilities(each.distances) for each in (tree, again))
    assert before.tobytes() == after.tobytes()


def test_the_file_is_this_text() -> None:
    assert TWO.to_json().splitlines() == [
        "{",
        '  "format": "sgfusion.dendrogram/1",',
        '  "merges": [',
        "    [0, 1]",
        "  ],",
        '  "zones": ["lublin", "\\u0142\\u00f3d\\u017a"],',
        '  "node_distances": [0.1],',
        '  "distances": [',
        "    [0.0, 0.1],",
        "    [0.1, 0.0]",
        "  ]",
        "}",
    ]


def test_one_zone_has_a_file_too() -> None:
    one = ZoneTree(("alone",), Dendrogram.from_merges([]), np.zeros((1, 1)))
    again = ZoneTree.from_json(one.to_json())
    assert (again.zones, again.dendrogram, again.distances.tolist()) == (("alone",), one.dendrogram, [[0]])


def test_a_zone_tree_is_read_as_a_dendrogram_and_what_follows_may_be_left_out() -> None:
    assert Dendrogram.from_json(TWO.to_json()) == TWO.dendrogram
    assert ZoneTree.from_json(altered(node_distances=None, comment="by hand")).to_json() == TWO.to_json()


# What is refused


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        (b"\xff", "not JSON"),
        ("[]", "format 'list'"),
        ("{}", "format None: .* with format 'sgfusion.dendrogram/1'"),
        (altered(format="sgfusion.dendrogram/2"), "format 'sgfusion.dendrogram/2'"),
        (altered(merges=None), "no 'merges'"),
        (altered(merges=[[0, 2]]), r"merges\[0\] = \[0, 2\] joins node 2"),
        (altered(merges=[[0, 1], [2]]), "merges = .*: not numbers"),
        (altered(merges=[[0, 0.5]]), "joins node 0.5"),
        (altered(merges=[[0, 2**70]]), "merges = .*: not numbers"),
        (altered(merges="none"), "merges"),
    ],
)
def test_what_is_no_dendrogram_is_refused(text: str | bytes, message: str) -> None:
    for kind in (Dendrogram, ZoneTree):
        with pytest.raises(DendrogramError, match=message):
            kind.from_json(text)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (altered(zones=None), DendrogramError, "zones = None: give a list"),
        (altered(zones="ab"), DendrogramError, "zones = 'ab': give a list"),
        (altered(zones=["a", 2]), DendrogramError, r"zones = \['a', 2\]: give a list"),
        (altered(zones=["a", "a"]), DendrogramError, "zone 'a' is named twice"),
        (altered(zones=["a", "b", "c"]), DendrogramError, "3 names, 2 leaves and 2 rows"),
        (altered(zones=["a"]), DendrogramError, "1 names, 2 leaves and 2 rows"),
        (altered(merges=[[0, 1], [2, 3]]), DendrogramError, "2 names, 3 leaves and 2 rows"),
        (altered(distances=None), InputError, "distances"),
        (altered(distances=[[0, 1], [1]]), DendrogramError, "not numbers that make an array"),
        (altered(distances=[[0, "far"], ["far", 0]]), DendrogramError, "not numbers that make an array"),
        (altered(distances=[[0]]), DendrogramError, "2 names, 2 leaves and 1 rows"),
        (altered(distances=[[0, 1], [2, 0]]), DistanceError, "differs from its mirror image"),
        (altered(distances=[[0, float("nan")], [1, 0]]), DistanceError, r"distances\[0, 1\] = nan is not finite"),
        (altered(distances=[[0, -1], [-1, 0]]), DistanceError, r"distances\[0, 1\] = -1.0 is negative"),
    ],
)
def test_what_is_no_zone_tree_is_refused(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ZoneTree.from_json(text)


# A value


def test_it_is_frozen_and_keeps_its_own_distances() -> None:
    distances = np.array([[0, 0.5], [0.5, 0]])
    tree = ZoneTree(("a", "b"), TWO.dendrogram, distances)
    distances[0, 1] = 7
    assert tree.distances.tolist() == [[0, 0.5], [0.5, 0]]
    with pytest.raises(ValueError, match="read-only"):
        tree.distances[0, 1] = 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        tree.zones = ("b", "a")  # type: ignore[misc]


@pytest.mark.parametrize("text", ["[" * 100_000, altered(distances=[[0, 10**400], [10**400, 0]])])
def test_what_breaks_a_reader_is_an_error_of_ours(text: str) -> None:
    with pytest.raises(DendrogramError):
        ZoneTree.from_json(text)
