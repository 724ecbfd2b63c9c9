import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from math import inf, nan
from pathlib import Path

import pytest

import sgfusion
from sgfusion.errors import BudgetExceededError, LedgerConflictError, LedgerCorruptError, PrivacyError
from sgfusion.ledger_file import FORMAT, Entry, _digest, read_entries, write_entries
from sgfusion.privacy import Adjacency, Ledger

ROOT, MASS = Path(sgfusion.__file__).parents[1], [3.0, 1.5, 0.25]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.json"


# One release, kept


def test_a_repeat_hands_back_the_stored_release_whatever_the_mass_is_by_then(path: Path) -> None:
    ledger = Ledger(path, budget=1.0)
    first = ledger.release("labels", MASS, epsilon=1.0)
    assert first.sum() == pytest.approx(1)
    for mass in (MASS, [0.0, 0.0, 900.0]):
        assert ledger.release("labels", mass, epsilon=1.0).tolist() == first.tolist()
        repeat = Ledger(path, budget=0.5).release("labels", mass, epsilon=1)
        assert repeat.tolist() == first.tolist()
        repeat[:] = 0  # the caller's own copy
    assert ledger.spent == 1.0


def test_entries_and_spent_are_in_the_file_for_every_instance(path: Path) -> None:
    assert Ledger(path, budget=9.0).entries == ()
    assert Ledger(path, budget=9.0).spent == 0.0
    a = Ledger(path, budget=9.0).release("a", MASS, epsilon=0.5)
    b = Ledger(str(path), budget=9.0).release("b", [1.0], epsilon=2, adjacency="replace")
    assert Ledger(path, budget=1e-3).entries == (
        Entry("a", 0.5, "replace", tuple(a.tolist())),
        Entry("b", 2.0, "replace", tuple(b.tolist())),
    )
    assert Ledger(path, budget=1e-3).spent == 2.5


def test_the_file_is_its_owners_alone_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "device" / "u17" / "ledger.json"
    for name in ("", 'łódź/"\\\n\x00', ""):
        Ledger(path, budget=2.0).release(name, MASS, epsilon=1.0)
    assert [entry.name for entry in Ledger(path, budget=2.0).entries] == ["", 'łódź/"\\\n\x00']
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {entry.name for entry in path.parent.iterdir()} == {"ledger.json", "ledger.json.lock"}


def test_nothing_comes_out_that_is_not_on_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Ledger(path, budget=2.0).release("a", MASS, epsilon=1.0)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        Ledger(path, budget=2.0).release("b", MASS, epsilon=1.0)
    assert path.read_bytes() == before


# Refusals


def test_three_tenths_fit_a_budget_of_0_3_and_no_more(path: Path) -> None:
    ledger = Ledger(path, budget=0.3)
    for name in "abc":
        ledger.release(name, MASS, epsilon=0.1)
    assert ledger.spent == 0.3
    with pytest.raises(BudgetExceededError, match=r"'d' at epsilon 1e-09 .* budget of 0.3: 0.3 is spent") as caught:
        ledger.release("d", MASS, epsilon=1e-9)
    assert str(path) in str(caught.value)
    assert [entry.name for entry in ledger.entries] == ["a", "b", "c"]


@pytest.mark.parametrize(("budget", "epsilon"), [(1.0, 1.0000000000000002), (1e-3, 1.0)])
def test_a_release_beyond_the_budget_leaves_no_trace(path: Path, budget: float, epsilon: float) -> None:
    with pytest.raises(BudgetExceededError, match=f"'a' at epsilon {epsilon} .* budget of {budget}: 0.0 is spent"):
        Ledger(path, budget).release("a", MASS, epsilon=epsilon)
    assert not path.exists()


@pytest.mark.parametrize(
    ("epsilon", "adjacency", "mass", "named"),
    [
        (0.25, "replace", MASS, "asked for with 0.25, 'replace' and 3"),
        (0.5, "add-remove", MASS, "asked for with 0.5, 'add-remove' and 3"),
        (0.5, "replace", [1.0, 1.0], "asked for with 0.5, 'replace' and 2"),
    ],
)
def test_a_name_stands_for_one_release(
    path: Path, epsilon: float, adjacency: Adjacency, mass: list[float], named: str
) -> None:
    ledger = Ledger(path, budget=9.0)
    ledger.release("labels", MASS, epsilon=0.5)
    with pytest.raises(LedgerConflictError, match=f"'labels' was released with epsilon 0.5, .*'replace'.*3 .*{named}"):
        ledger.release("labels", mass, epsilon=epsilon, adjacency=adjacency)
    assert ledger.spent == 0.5


@pytest.mark.parametrize("budget", [0.0, -1.0, nan, inf])
def test_a_budget_that_bounds_nothing_is_refused(path: Path, budget: float) -> None:
    with pytest.raises(PrivacyError, match=f"budget = {budget}:"):
        Ledger(path, budget)


def test_bad_settings_are_refused_before_anything_is_looked_up(path: Path) -> None:
    ledger = Ledger(path, budget=9.0)
    ledger.release("a", MASS, epsilon=1.0)
    for name in ("a", "b"):
        for epsilon in (0.0, -1.0, nan, inf):
            with pytest.raises(PrivacyError, match=f"epsilon = {epsilon}"):
                ledger.release(name, MASS, epsilon=epsilon)
        with pytest.raises(PrivacyError, match="adjacency = 'none'"):
            ledger.release(name, MASS, epsilon=1.0, adjacency="none")  # type: ignore[arg-type]
        with pytest.raises(PrivacyError, match=r"mass\[1\] = 0.1"):
            ledger.release(name, [1.0, 0.1, 0.0], epsilon=1.0)
    assert ledger.spent == 1.0


# A file that is not what was written

ROW: dict[str, object] = {"name": "a", "epsilon": 1.0, "adjacency": "replace", "release": [0.5, 0.25, 0.25]}


def sealed(*rows: object) -> str:
    """A ledger with a true checksum, as somebody who knows the format could forge it."""
    return json.dumps({"format": FORMAT, "sha256": _digest(rows), "entries": rows})


@pytest.mark.parametrize(
    "content",
    [
        *("", "null", "[]", "{}", "not a ledger", "\udcff\udcfe"),
        sealed(ROW).replace(FORMAT, "sgfusion.ledger/2"),
        sealed(ROW).replace('"epsilon": 1.0', '"epsilon": 0.1'),
        sealed(ROW).replace("[0.5, 0.25, 0.25]", "[0.5, 0.5, 0.0]"),
        sealed(ROW).replace('"name": "a"', '"name": "b"'),
        json.dumps(json.loads(sealed(ROW)) | {"entries": []}),
        *(sealed(ROW, ROW | {"epsilon": epsilon}) for epsilon in (-5.0, 0.0, nan, inf, "much", None)),
        sealed(ROW | {"release": None}),
        sealed({"name": "a"}),
        sealed("a"),
    ],
)
def test_a_file_that_is_no_ledger_releases_nothing(path: Path, content: str) -> None:
    path.write_text(sealed(ROW))
    assert read_entries(path) == (Entry("a", 1.0, "replace", (0.5, 0.25, 0.25)),)  # it is not the forging that is wrong
    raw = content.encode("utf-8", "surrogateescape")
    path.write_bytes(raw)
    ledger = Ledger(path, budget=9.0)
    for ask in (lambda: ledger.release("new", MASS, epsilon=1.0), lambda: ledger.spent, lambda: ledger.entries):
        with pytest.raises(LedgerCorruptError, match="Nothing was released") as caught:
            ask()
        assert str(path) in str(caught.value)
    assert path.read_bytes() == raw


def test_a_folder_in_its_place_is_refused(path: Path) -> None:
    path.mkdir()
    with pytest.raises(LedgerCorruptError, match=rf"{path} .*Is a directory"):
        Ledger(path, budget=9.0).release("new", MASS, epsilon=1.0)


def test_wherever_it_is_torn_and_whatever_bit_is_changed_nothing_false_is_read(path: Path) -> None:
    written = (Entry("a", 0.5, "replace", (0.5, 0.5)), Entry("b", 0.25, "add-remove", (1.0, 0.0)))
    write_entries(path, written)
    whole = path.read_bytes()
    harmless = 0
    for at in range(len(whole)):
        path.write_bytes(whole[:at])
        with pytest.raises(LedgerCorruptError):
            read_entries(path)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])
        try:
            assert read_entries(path) == written
            harmless += 1  # a blank for another, an e for an E
        except LedgerCorruptError:
            pass
    assert harmless < 0.2 * len(whole)


# Many at once


def test_threads_that_share_a_ledger_do_not_overspend(path: Path) -> None:
    def ask(i: int) -> bool:
        try:
            return bool(len(Ledger(path, budget=0.5).release(f"r{i}", MASS, epsilon=0.1)))
        except BudgetExceededError:
            return False

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(ask, range(12))) == 5
    assert Ledger(path, budget=0.5).spent == 0.5


ASK_UNTIL_REFUSED = """
import json, sys
from sgfusion.errors import BudgetExceededError
from sgfusion.privacy import Ledger, measurement
measurement(0.1, "replace")  # the slow import, before the race
ledger, out = Ledger(sys.argv[1], budget=2.0), {}
print("ready", flush=True)
sys.stdin.readline()
for name in ["shared", *(f"{sys.argv[2]}/{i}" for i in range(20))]:
    try:
        out[name] = ledger.release(name, [3.0, 1.5, 0.25], epsilon=0.1).tolist()
    except BudgetExceededError:
        pass
print(json.dumps(out), flush=True)
"""


def test_processes_that_share_a_ledger_never_overspend_and_agree_on_a_release(path: Path) -> None:
    pipe = subprocess.PIPE
    children = [
        subprocess.Popen([sys.executable, "-c", ASK_UNTIL_REFUSED, path, me], cwd=ROOT, stdin=pipe, stdout=pipe)
        for me in "abc"
    ]
    try:
        assert [child.stdout.readline() for child in children if child.stdout] == [b"ready\n"] * 3
        for child in children:
            if child.stdin:
                child.stdin.write(b"go\n")
                child.stdin.flush()
        outputs: list[dict[str, list[float]]] = [json.loads(child.communicate()[0]) for child in children]
    finally:
        for child in children:
            child.kill()
            child.communicate()
    ledger = Ledger(path, budget=2.0)
    assert ledger.spent == 2.0
    kept = {entry.name: list(entry.release) for entry in ledger.entries}
    assert len(kept) == len(ledger.entries) == 20
    assert {name: release for output in outputs for name, release in output.items()} == kept
    assert all(output["shared"] == kept["shared"] for output in outputs)


def test_a_name_is_text(path: Path) -> None:
    with pytest.raises(PrivacyError, match="name = 5"):
        Ledger(path, 1).release(5, [1.0], epsilon=1)  # type: ignore[arg-type]


def test_a_fraction_and_a_float_are_the_same_epsilon(path: Path) -> None:
    ledger = Ledger(path, 1)
    first = ledger.release("a", [1.0, 2.0], epsilon=Fraction(1, 3))  # type: ignore[arg-type]
    assert ledger.release("a", [1.0, 2.0], epsilon=1 / 3).tolist() == first.tolist()


def test_not_even_the_smallest_epsilon_fits_a_spent_budget(path: Path) -> None:
    ledger = Ledger(path, 1)
    ledger.release("a", [1.0], epsilon=1)
    with pytest.raises(BudgetExceededError):
        ledger.release("b", [1.0], epsilon=1e-30)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"format": 1e999}'])
def test_a_file_that_breaks_its_reader_is_a_corrupt_ledger(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(LedgerCorruptError):
        Ledger(path, 1).release("a", [1.0], epsilon=1)


def test_adjacencies_that_do_not_add_up_are_not_mixed(path: Path) -> None:
    """A sample replaced is one removed and one added: ε of add-remove counts double against replace-one."""
    ledger = Ledger(path, 2)
    ledger.release("a", [1.0], epsilon=1, adjacency="replace")
    with pytest.raises(LedgerConflictError, match="releases with adjacency 'replace': 'b' with 'add-remove'"):
        ledger.release("b", [1.0], epsilon=1, adjacency="add-remove")
    assert ledger.spent == 1


def test_a_link_to_a_ledger_is_that_ledger(path: Path) -> None:
    link = path.with_name("link.json")
    Ledger(path, 1).release("a", [1.0], epsilon=0.75)
    link.symlink_to(path)
    with pytest.raises(BudgetExceededError):
        Ledger(link, 1).release("b", [1.0], epsilon=0.75)
    Ledger(link, 1).release("c", [1.0], epsilon=0.25)
    assert link.is_symlink()
    assert Ledger(path, 1).spent == 1


def test_a_stored_release_is_durable_before_it_is_handed_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Ledger(path, 1).release("a", [1.0], epsilon=1)
    synced: list[Path] = []
    monkeypatch.setattr("sgfusion.privacy.fsync_folder", synced.append)
    Ledger(path, 1).release("a", [1.0], epsilon=1)
    assert synced == [path.parent]
