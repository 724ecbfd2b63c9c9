"""The command: what it looks at, how it tells it, its deadline; and run files that are fine, wrong or without data."""

import io
import json
import re
import threading
import time
from pathlib import Path

import pytest
from rich.console import Console

from console.certs import make_certificates
from console.doctor.examine import checks_of, examine
from console.doctor.findings import Finding, broken, look, ok
from console.doctor.patient import Asked, Patient, patient_of
from console.doctor.ports import Port
from console.doctor.programs import Programs
from console.doctor.report import print_findings, summed, to_json
from console.doctor.run_files import Run, look_at_run, run_findings
from console.doctor.vantage import Vantage
from console.processes import tell
from console.reach import Reached
from sgfusion.errors import InputError
from sgfusion.wire.identity import Identity
from sgfusion.wire.service import PAGE, announce
from simulator.held_folder import held
from tests.cluster.harness import RUN
from tests.console.commands import sgfusion
from tests.console.doctor.test_certificates import EVERYONE, NOW
from tests.containers.test_edge_errors import silence

Capture = pytest.CaptureFixture[str]
THREE = [ok("Python", "3.11"), look("engine", "no docker here", "install it"), broken("disk", "full", "make room")]


def told(capsys: Capture, check: str, *arguments: str | Path) -> list[dict[str, str]]:
    """What `sgfusion doctor` has found by that check."""
    done = sgfusion(capsys, "doctor", *arguments, "--json")
    return [each for each in json.loads(done.out)["findings"] if each["check"] == check]


def test_a_table_says_what_to_do_where_something_is_to_be_done() -> None:
    out = io.StringIO()
    print_findings(THREE, Console(file=out, width=60))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert lines == [
        "✓ Python 3.11",
        "! engine no docker here",
        "         → install it",
        "✗ disk   full",
        "         → make room",
        "1 fine, 1 worth a look, 1 broken",
    ]


def test_what_a_cluster_says_is_no_markup() -> None:
    out = io.StringIO()
    print_findings([ok("cloud", "run [red]demo[/red]")], Console(file=out, width=60))
    assert "[red]demo[/red]" in out.getvalue()


def test_json_for_programs() -> None:
    said = json.loads(to_json(THREE))
    assert said["healthy"] is False
    assert said["findings"][0] == {"check": "Python", "verdict": "ok", "text": "3.11"}
    assert said["findings"][2]["remedy"] == "make room"
    assert json.loads(to_json(THREE[:2]))["healthy"] is True
    assert summed([]) == "0 fine, 0 worth a look, 0 broken"


def test_a_check_that_hangs_or_fails_does_not_hold_up_or_hide_the_others() -> None:
    hangs = threading.Event()

    def fails() -> list[Finding]:
        raise ZeroDivisionError("by zero")

    def waits() -> list[Finding]:
        hangs.wait(60)
        return []

    began = time.monotonic()
    checks = {"hangs": waits, "fails": fails, "fine": lambda: [ok("fine", "yes")]}
    found = examine(checks, Console(file=io.StringIO()), within=0.5)
    assert time.monotonic() - began < 10
    hangs.set()
    assert [(each.check, each.verdict) for each in found] == [("hangs", "broken"), ("fails", "broken"), ("fine", "ok")]
    assert found[0].text == "not known after 0.5 s"
    assert found[1].text == "it could not be looked at: ZeroDivisionError: by zero"


def test_after_two_seconds_it_says_what_it_waits_for() -> None:
    out, release = io.StringIO(), threading.Event()

    def waits() -> list[Finding]:
        release.wait(30)
        return [ok("engine", "there")]

    def told() -> None:
        while "still being looked at, for 25 s at most: engine" not in out.getvalue():
            time.sleep(0.02)
        release.set()

    threading.Thread(target=told, daemon=True).start()
    began = time.monotonic()
    assert examine({"engine": waits, "host": list}, Console(file=out), within=25) == [ok("engine", "there")]
    assert time.monotonic() - began >= 2
    assert "host" not in out.getvalue()


def test_what_is_quick_is_quiet() -> None:
    out = io.StringIO()
    examine({"host": list}, Console(file=out))
    assert out.getvalue() == ""


def test_an_installation_alone(capsys: Capture) -> None:
    done = sgfusion(capsys, "doctor", "--json")
    said = json.loads(done.out)
    checks = {finding["check"] for finding in said["findings"]}
    assert checks >= {
        "Python",
        "packages",
        "torch",
        "extra device",
        "clock",
        "disk",
        "memory",
        "files",
        "ports",
        "engine",
    }
    assert not checks & {"certificates", "cloud", "zones", "run file"}
    assert (done.code == 0) == said["healthy"]
    assert [each for each in said["findings"] if each["verdict"] == "broken"] == []


def test_nothing_answers_and_it_still_ends_within_ten_seconds(tmp_path: Path, capsys: Capture) -> None:
    make_certificates(tmp_path, EVERYONE, days=365, renew=False, now=NOW)
    with silence() as address:
        began = time.monotonic()
        done = sgfusion(capsys, "doctor", "--cloud", address, "--certs", tmp_path)
        seconds = time.monotonic() - began
    assert done.code == 1
    assert re.search(r"✗ cloud +the cloud at \S+ (does not answer|is not reached)", done.out)
    assert re.search(rf"✓ certificates +{re.escape(str(tmp_path))}/operator: operator, keys fit", done.out)
    assert seconds < 10


def test_a_key_of_the_ca_that_others_may_read_is_broken(tmp_path: Path, capsys: Capture) -> None:
    make_certificates(tmp_path, EVERYONE, days=365, renew=False, now=NOW)
    assert sgfusion(capsys, "doctor", "--certs", tmp_path).code == 0
    (tmp_path / "ca.key").chmod(0o644)
    done = sgfusion(capsys, "doctor", "--certs", tmp_path, "--json")
    (loose,) = [each for each in json.loads(done.out)["findings"] if each["verdict"] == "broken"]
    assert (done.code, loose["text"]) == (1, f"{tmp_path / 'ca.key'} may be read by others (mode 644)")


def test_a_port_is_ours_only_if_the_cloud_is_on_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """What listens here on 7070 is somebody else's if the cloud that we look at is elsewhere."""
    taken = [Port(7070, "the cloud", "taken", "process 1 (nc)")]
    monkeypatch.setattr("console.doctor.examine.look_at_ports", lambda: taken)
    verdicts = {}
    for address in ("127.0.0.1:7070", "[::1]:7070", "localhost:7070", "cloud.example:7070", "10.0.0.1:7070"):
        patient = Patient(reach=lambda address=address: Reached(address, None))  # type: ignore[misc]
        (found,) = checks_of(patient, Programs())["ports"]()
        verdicts[address.rpartition(":")[0]] = found.verdict
    assert verdicts == {
        "127.0.0.1": "ok",
        "[::1]": "ok",
        "localhost": "ok",
        "cloud.example": "look",
        "10.0.0.1": "look",
    }


def test_so_is_that_of_an_edge_which_devices_here_call(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = [Port(7070, "the cloud", "taken", "process 1 (sgfusion edge)")]
    monkeypatch.setattr("console.doctor.examine.look_at_ports", lambda: taken)
    ash, one = Identity("edge", "ash"), Identity("device", "u1")
    for address, verdict in (("127.0.0.1:7070", "ok"), ("10.0.0.1:7070", "look")):
        (found,) = checks_of(Patient(vantage=Vantage(((ash, address),), Path("keys"), one)), Programs())["ports"]()
        assert found.verdict == verdict


def test_the_one_cluster_that_runs_here_is_looked_at_and_nobody_is_told_to_stop_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = [Port(7080, "the page", "taken", "process 1 (sgfusion cloud)")]
    monkeypatch.setattr("console.doctor.examine.look_at_ports", lambda: taken)
    monkeypatch.chdir(tmp_path)
    assert patient_of(Asked()).cluster is None
    state = Path("results", "demo", "cluster", "0123")
    (state / "cloud").mkdir(parents=True)
    tell(state, "sgfusion up", [])
    announce(state / "cloud", "127.0.0.1:4321")
    announce(state / "cloud", "http://127.0.0.1:7080/", PAGE)
    found = patient_of(Asked())
    assert (found.cluster, found.reach is None) == (Path("results", "demo"), False)
    Path("run.toml").write_text(RUN, "utf-8")
    file = patient_of(Asked(Path("run.toml")))
    assert file.cluster is None
    other = Path("results", "more", "cluster", "0123")
    for patient in (found, file):
        assert [each.verdict for each in checks_of(patient, Programs())["ports"]()] == ["ok"]
    other.mkdir(parents=True)
    tell(other, "sgfusion up", [])
    several = patient_of(Asked())
    assert several.cluster is None
    assert [each.verdict for each in checks_of(several, Programs())["ports"]()] == ["ok"]


@pytest.mark.parametrize("arguments", [("nowhere.toml",), ("--cloud", "127.0.0.1:1"), ("nowhere",)])
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...], capsys: Capture) -> None:
    done = sgfusion(capsys, "doctor", *arguments)
    assert done.code == 1
    assert done.error.startswith("error: ")
    with pytest.raises(InputError):
        patient_of(Asked(cloud="127.0.0.1:1", certs=Path("certs"), insecure=True))


def test_a_folder_without_a_cluster_is_worth_a_look(tmp_path: Path, capsys: Capture) -> None:
    done = sgfusion(capsys, "doctor", tmp_path)
    assert done.code == 0, done.out
    assert f"! cloud             no cluster runs in {tmp_path}" in done.out


def test_a_run_that_was_stopped_goes_on_and_is_not_started(tmp_path: Path, capsys: Capture) -> None:
    state = tmp_path / "cluster" / "0123"
    state.mkdir(parents=True)
    (state / "run.toml").write_text(RUN, "utf-8")
    (cloud,) = told(capsys, "cloud", tmp_path)
    assert (cloud["verdict"], cloud["remedy"]) == ("look", "type that sgfusion up again, with the same words")
    assert cloud["text"] == f"no cluster runs in {tmp_path}: its run was stopped, and sgfusion up goes on with it"
    with held(tmp_path):
        (cloud,) = told(capsys, "cloud", tmp_path)
    assert cloud["remedy"] == "wait for it"
    tell(state, "sgfusion up", [])
    (cloud,) = told(capsys, "cloud", tmp_path)
    assert "is away, and sgfusion up starts it again" in cloud["text"]
    assert cloud["remedy"].startswith("look again in a few seconds")


def test_a_run_that_is_over_is_fine_and_nobody_starts_it(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "summary.json").write_text("{}", "utf-8")
    (cloud,) = told(capsys, "cloud", tmp_path)
    words = f"no cluster runs in {tmp_path}: its run is over, and sgfusion view {tmp_path} shows its results"
    assert cloud == {"check": "cloud", "verdict": "ok", "text": words}
    state = tmp_path / "cluster" / "0123"
    state.mkdir(parents=True)
    (state / "run.toml").write_text(RUN, "utf-8")
    (cloud,) = told(capsys, "cloud", tmp_path)
    assert cloud["remedy"] == "type that sgfusion up again, with the same words", "a later one was stopped"


def test_keys_that_are_missing_are_not_mended_by_starting_a_cluster(tmp_path: Path, capsys: Capture) -> None:
    make_certificates(tmp_path, EVERYONE, days=365, renew=False, now=NOW)
    (tmp_path / "operator" / "ca.crt").unlink()
    (cloud,) = told(capsys, "cloud", "--cloud", "127.0.0.1:1", "--certs", tmp_path / "operator")
    assert cloud["verdict"] == "broken"
    assert cloud["text"].startswith("nobody can be asked by the keys that are there: ")
    assert str(tmp_path / "operator" / "ca.crt") in cloud["text"]
    assert cloud["remedy"] == "what is said of certificates helps here too"


def test_a_run_file_that_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.doctor.run_files.WITHIN", 200.0)  # a busy machine takes long to load torch
    (tmp_path / "run.toml").write_text(RUN, "utf-8")
    assert run_findings(look_at_run(tmp_path / "run.toml", Programs())) == [
        ok("run file", f"{tmp_path / 'run.toml'}: run cluster"),
        ok("data", "4 zones, 12 devices"),
    ]


def test_nobody_waits_for_data_that_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.doctor.run_files.WITHIN", 0.01)
    (tmp_path / "run.toml").write_text(RUN, "utf-8")
    assert look_at_run(tmp_path / "run.toml", Programs()) == Run(tmp_path / "run.toml", "cluster", slow=True)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[optimiser]", "[optimizer]", "optimizer"),
        ("rounds = 6", "rounds = -6", "rounds"),
        ("rounds = 6", "rounds = ", "run.toml"),
    ],
)
def test_a_run_file_with_a_slip(tmp_path: Path, capsys: Capture, old: str, new: str, says: str) -> None:
    (tmp_path / "run.toml").write_text(RUN.replace(old, new), "utf-8")
    done = sgfusion(capsys, "doctor", tmp_path / "run.toml", "--json")
    wrong = [each for each in json.loads(done.out)["findings"] if each["check"] in ("run file", "data")]
    assert (done.code, wrong[-1]["verdict"]) == (1, "broken")
    assert says in wrong[-1]["text"]


def test_what_becomes_of_data() -> None:
    path = Path("run.toml")
    assert run_findings(Run(path, "demo", zones=4, devices=12))[1] == ok("data", "4 zones, 12 devices")
    slow = run_findings(Run(path, "demo", slow=True))[1]
    assert (slow.verdict, slow.text) == ("look", "not read within 8 s: this machine may be busy")
    assert slow.remedy.startswith("try again"), "702 rows are not too many"
    assert run_findings(Run(path, "demo", fault="there is no such file"))[1] == broken(
        "data", "there is no such file", "docs/data.md says what each source needs"
    )


def test_a_zone_that_may_be_misspelt_is_worth_a_look_and_one_of_one_device_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.doctor.run_files.WITHIN", 200.0)
    run = tmp_path / "run.toml"
    run.write_text(RUN.replace("devices = 3", "devices = 1"), "utf-8")
    (_, data) = run_findings(look_at_run(run, Programs()))
    assert data.verdict == "ok"
    assert data.text.startswith("4 zones, 4 devices; one device alone is in each of 4 zones: ")
    rows = [f"{zone}-{house},{zone},{i},{i}" for zone in ("Riverside", "Moor") for house in "ab" for i in range(9)]
    rows += [f"x,Riversde,{i},{i}" for i in range(4)]
    (tmp_path / "houses.csv").write_text("\n".join(["house,zone,size,kwh", *rows]) + "\n", "utf-8")
    table = f'source = "table"\npath = "{tmp_path}/houses.csv"\nzone = "zone"\ndevice = "house"\n'
    head = RUN.partition("[data]")[0]
    run.write_text(f'{head}[data]\n{table}features = ["size"]\nlabel = "kwh"\n', "utf-8")
    (_, data) = run_findings(look_at_run(run, Programs()))
    assert (data.verdict, data.remedy) == ("look", "if it is misspelt, correct that name")
    assert data.text.startswith(
        "3 zones, 5 devices; one device alone is in zone Riversde (4 samples; is it 'Riverside'?). "
    )


def test_a_task_or_data_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.doctor.run_files.WITHIN", 200.0)
    (tmp_path / "run.toml").write_text(RUN.replace('name = "linear"', 'name = "linaer"'), "utf-8")
    (_, task) = run_findings(look_at_run(tmp_path / "run.toml", Programs()))
    assert (task.verdict, "'linaer'" in task.text) == ("broken", True)
    head, _, rest = RUN.partition("[data]")
    table = 'source = "table"\npath = "houses.csv"\nzone = "zone"\ndevice = "d"\nfeatures = ["size"]\nlabel = "price"\n'
    (tmp_path / "run.toml").write_text(f"{head}[data]\n{table}[zones]{rest.partition('[zones]')[2]}", "utf-8")
    (_, data) = run_findings(look_at_run(tmp_path / "run.toml", Programs()))
    assert (data.check, data.verdict) == ("data", "broken")
    assert "there is no such file" in data.text
    assert "houses.csv" in data.text
