"""Tests are dealt so that long ones begin first, and that the engine has few at a time."""

from tests.dealing import LANES, LONG, TOGETHER, turn, whose
from tests.pages import ROOT

TESTS = ROOT / "tests"


def test_what_has_a_place_of_its_own_is_there() -> None:
    for name in (name for lane in LANES for name in lane):
        assert (TESTS / "containers" / name).exists()
    assert all((TESTS / folder).is_dir() for folder in LONG)
    assert all((TESTS / name).exists() for name in TOGETHER)


def test_containers_first_then_long_ones() -> None:
    ids = [f"tests/{place}::test_x" for place in ("sgfusion/test_a.py", "cluster/test_b.py", "containers/test_c.py")]
    assert sorted(ids, key=turn) == ids[::-1]


def test_lanes_and_files_stay_together_and_long_tests_are_dealt_one_by_one() -> None:
    faults, other = (f"tests/containers/{name}::test_x" for name in ("test_faults.py", "test_page.py"))
    assert whose(faults) == whose(f"{faults}[edge]") != whose(other)
    assert whose(other) == whose("tests/containers/test_images.py::test_x")
    assert whose("tests/sgfusion/test_a.py::test_x") == whose("tests/sgfusion/test_a.py::test_y[a::b]")
    assert whose("tests/cluster/test_join.py::test_x") != whose("tests/cluster/test_join.py::test_y")
    assert whose("tests/cluster/test_logs.py::test_x") == whose("tests/cluster/test_logs.py::test_y")
