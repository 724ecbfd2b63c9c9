"""The edges that `sgfusion device` and `sgfusion doctor` are given."""

import pytest

from console.edge_argument import edges_of
from sgfusion.errors import InputError


def test_by_zone() -> None:
    assert edges_of(["ash=a:1", "elm=[::1]:2"]) == {"ash": "a:1", "elm": "[::1]:2"}


@pytest.mark.parametrize("text", ["a:1", "=a:1", "ash="])
def test_a_slip_is_named(text: str) -> None:
    with pytest.raises(InputError, match=f"--edge {text!r}: write ZONE=HOST:PORT"):
        edges_of([text])


def test_no_address_is_dropped() -> None:
    """The last one would have been taken, and the others not be dialled."""
    assert edges_of(["ash=a:1", "elm=a:2", "ash=a:1"]) == {"ash": "a:1", "elm": "a:2"}
    with pytest.raises(InputError, match="--edge ash=a:1 and --edge ash=b:1: a zone has one edge; leave one of them"):
        edges_of(["ash=a:1", "ash=b:1"])
