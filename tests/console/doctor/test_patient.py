"""What the command line names: whose keys look at whom, what makes no sense, and a folder that hangs."""

import json
import os
import re
import socket
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from console.certs import make_certificates
from console.doctor.certificates import BY_UP, OPEN
from console.doctor.examine import checks_of
from console.doctor.patient import Asked, patient_of
from console.doctor.programs import Programs
from console.doctor.vantage import Vantage
from console.reach import CLOUD, enter
from sgfusion.errors import InputError
from sgfusion.wire.identity import Identity
from sgfusion.wire.service import announce
from tests.console.commands import Answer, sgfusion
from tests.console.doctor.test_certificates import EVERYONE, NOW
from tests.console.rights import without_rights

Capture = pytest.CaptureFixture[str]


def test_which_keys_are_looked_at(tmp_path: Path) -> None:
    make_certificates(tmp_path / "certs", EVERYONE, days=365, renew=False, now=NOW)
    operator = Identity("operator")
    all_of_them = patient_of(Asked(certs=tmp_path / "certs"))
    assert (all_of_them.certs, all_of_them.wanted, all_of_them.reach) == (tmp_path / "certs", None, None)
    for given in (tmp_path / "certs", tmp_path / "certs" / "operator"):
        dialled = patient_of(Asked(cloud="127.0.0.1:1", certs=given))
        assert (dialled.certs, dialled.wanted) == (tmp_path / "certs" / "operator", operator)
        assert dialled.reach is not None
        assert dialled.reach().keys is not None
        assert dialled.reach().certs == tmp_path / "certs" / "operator", "for handshakes"
    assert list(checks_of(all_of_them, Programs())) == ["installation", "host", "certificates", "ports", "engine"]
    (tmp_path / "results" / "cluster" / "certs").mkdir(parents=True)
    local = patient_of(Asked(tmp_path / "results"))
    assert (local.certs, local.folders) == (tmp_path / "results" / "cluster" / "certs", [tmp_path / "results"])


def test_keys_of_an_edge_or_a_device_look_from_where_they_are(tmp_path: Path) -> None:
    """An operator's are on the cloud's host alone. An edge calls the cloud, a device edges."""
    make_certificates(tmp_path, EVERYONE, days=365, renew=False, now=NOW)
    (tmp_path / "state").mkdir()
    ash, one = Identity("edge", "ash"), Identity("device", "u 1")
    own = tmp_path / "edge-ash"
    edge = patient_of(Asked(cloud="127.0.0.1:1", certs=own))
    assert edge.vantage == Vantage(((CLOUD, "127.0.0.1:1"),), own, ash)
    assert (edge.certs, edge.wanted, edge.reach) == (own, ash, None)
    edge = patient_of(Asked(cloud="127.0.0.1:1", certs=own, state=tmp_path / "state"))
    assert edge.vantage is not None
    assert (edge.vantage.state, edge.folders) == (tmp_path / "state", [tmp_path / "state"])
    own = tmp_path / "device-u%201"
    for given, wanted in ((own, one), (tmp_path, None)):  # or the folder of all that a host of devices is given
        said = frozenset({"cloud"})
        device = patient_of(Asked(certs=given, edges=("ash=127.0.0.1:2",), cloud="127.0.0.1:1", environment=said))
        assert device.vantage == Vantage(((ash, "127.0.0.1:2"),), own, one), "whatever SGFUSION_CLOUD says"
        assert (device.certs, device.wanted, device.reach) == (given, wanted, None)
    cloud = patient_of(Asked(cloud="127.0.0.1:1", certs=tmp_path / "cloud"))
    assert cloud.wanted == Identity("operator"), "who serves does not look"


def test_the_disk_of_a_state_folder_is_looked_at_from_everywhere(tmp_path: Path) -> None:
    """Of the cloud's host, of an edge's, and of a device's, where the ledgers are; there yet or not."""
    make_certificates(tmp_path, EVERYONE, days=365, renew=False, now=NOW)
    results, absent = tmp_path / "results", tmp_path / "absent"
    results.mkdir()
    edges, device = ("ash=127.0.0.1:2",), tmp_path / "device-u%201"
    for asked in (
        Asked(),
        Asked(cloud="127.0.0.1:1", insecure=True),
        Asked(cloud="127.0.0.1:1", certs=tmp_path / "operator"),
        Asked(cloud="127.0.0.1:1", certs=tmp_path / "edge-ash"),
        Asked(certs=tmp_path / "edge-ash"),
        Asked(certs=device, edges=edges),
    ):
        for state in (tmp_path, absent):
            assert patient_of(replace(asked, state=state)).folders == [state]
    assert patient_of(Asked(results, state=absent)).folders == [results, absent], "results go there all the same"
    ledgers = patient_of(Asked(certs=device, edges=edges, state=tmp_path)).vantage
    assert ledgers is not None
    assert ledgers.state is None, "devices have no peers"
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"--state \S*file is no folder: give the one that the service has"):
        patient_of(Asked(state=tmp_path / "file"))


def test_state_and_listen_do_not_say_whom_to_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one cluster that runs in results/ is looked at beside them."""
    (tmp_path / "demo").mkdir()
    monkeypatch.setattr("console.doctor.patient.all_running", lambda: [tmp_path / "demo"])
    patient = patient_of(Asked(state=tmp_path, listens=("127.0.0.1:0",)))
    assert (patient.cluster, patient.folders) == (tmp_path / "demo", [tmp_path / "demo", tmp_path])
    assert patient.listens == ("127.0.0.1:0",)


def test_where_to_listen_is_tried_in_place_of_the_usual_ports(tmp_path: Path, capsys: Capture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = f"127.0.0.1:{server.getsockname()[1]}"
        words = ("--listen", taken, "--listen", "203.0.113.7:7071", "--state", tmp_path / "state")
        done = sgfusion(capsys, "doctor", *words, "--json")
    found = json.loads(done.out)["findings"]
    first, second = (each for each in found if each["check"] == "ports")
    assert (first["verdict"], first["text"].startswith(f"{taken}: taken by process {os.getpid()} (")) == ("look", True)
    assert (second["verdict"], second["text"]) == ("broken", "203.0.113.7:7071: this host has no such address")
    (disk,) = (each["text"] for each in found if each["check"] == "disk")
    assert disk.endswith(f" free for {tmp_path / 'state'}, which is not there yet")
    assert done.code == 1
    done = sgfusion(capsys, "doctor", "--listen", "7071")
    assert (done.code, done.out) == (1, "")
    assert "address is '7071', expected host:port" in " ".join(done.error.split())


def test_who_does_not_call_whom_is_refused(tmp_path: Path) -> None:
    make_certificates(tmp_path, EVERYONE, days=365, renew=False, now=NOW)
    with pytest.raises(
        InputError, match="the keys of device u 1, which calls edges and not the cloud: give --edge ZONE="
    ):
        patient_of(Asked(cloud="127.0.0.1:1", certs=tmp_path / "device-u%201"))
    for certs, why in (
        (None, "there is no --certs"),
        (tmp_path / "edge-ash", r"\S*edge-ash has the keys of no device"),
        (tmp_path / "nowhere", r"\S*nowhere has the keys of no device"),
    ):
        with pytest.raises(InputError, match=rf"--edge ash=a:1 is for devices, and {why}: give the keys of one"):
            patient_of(Asked(certs=certs, edges=("ash=a:1",)))
    with pytest.raises(InputError, match="--edge ash=a:1 and --cloud b:1: each says whom to ask"):
        patient_of(Asked(cloud="b:1", certs=tmp_path / "device-u%201", edges=("ash=a:1",)))
    with pytest.raises(InputError, match="--edge 'a:1': write ZONE=HOST:PORT"):
        patient_of(Asked(certs=tmp_path / "device-u%201", edges=("a:1",)))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--cloud", "foo"), "address is 'foo', expected host:port"),
        (("--cloud", "127.0.0.1:99999"), "address is '127.0.0.1:99999', expected host:port"),
        (("--edge", "ash=foo"), "address is 'foo', expected host:port"),
        (
            ("--cloud", "cloud.example:7070", "--insecure"),
            "loopback addresses alone, not cloud.example:7070: give --certs",
        ),
    ],
)
def test_an_address_that_nobody_can_dial_is_no_finding(
    tmp_path: Path, capsys: Capture, arguments: tuple[str, ...], says: str
) -> None:
    """It would be told as what it leads to: another protocol, a cloud that refuses us."""
    make_certificates(tmp_path, EVERYONE, days=365, renew=False, now=NOW)
    keys = {"foo": "operator", "127.0.0.1:99999": "operator", "ash=foo": "device-u%201"}.get(arguments[1])
    done = sgfusion(capsys, "doctor", *arguments, *(() if keys is None else ("--certs", tmp_path / keys)))
    assert (done.code, done.out) == (1, "")
    assert says in " ".join(done.error.split())


def test_a_folder_that_hangs_is_named_and_the_rest_is_looked_at(tmp_path: Path, capsys: Capture) -> None:
    """As a network disk that is away does: who opens a pipe waits for somebody who writes."""
    make_certificates(tmp_path, EVERYONE, days=365, renew=False, now=NOW)
    keys = tmp_path / "operator"
    pipe = keys / "tls.crt"
    pipe.unlink()
    os.mkfifo(pipe)
    began = time.monotonic()
    done = sgfusion(capsys, "doctor", "--cloud", "127.0.0.1:1", "--certs", keys, "--json")
    seconds = time.monotonic() - began
    os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))  # who still waits goes on, and ends; an error if nobody does
    found = json.loads(done.out)["findings"]
    (hangs,) = [each for each in found if each["check"] == "folders"]
    assert (done.code, hangs["verdict"]) == (1, "broken")
    assert hangs["text"] == f"{keys} could not be looked into within 3 s: it hangs"
    assert "network disk" in hangs["remedy"]
    assert {"Python", "clock", "disk", "ports"} <= {each["check"] for each in found}
    assert seconds < 12


def test_a_disk_that_is_dead_is_not_touched_before_there_is_a_deadline(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line is read by the thread that waits for nobody: typer would ask the disk what a path is."""
    dead, away = tmp_path / "dead", threading.Event()
    asked: list[Any] = []
    hung: list[Any] = []
    """Those for which nobody would have had an answer."""

    def stat(path: Any, *arguments: Any, **named: Any) -> os.stat_result:
        if str(path).startswith(str(dead)):
            if threading.current_thread() is threading.main_thread():
                hung.append(path)
            else:
                asked.append(path)
                away.wait(60)
        return real(path, *arguments, **named)

    real = os.stat
    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setenv("SGFUSION_CERTS", str(dead / "certs"))
    try:
        by_name = sgfusion(capsys, "doctor", dead / "run", "--state", dead / "state", "--certs", dead / "own", "--json")
        by_environment = sgfusion(capsys, "doctor", dead / "run", "--json")
    finally:
        away.set()
    assert (hung, bool(asked)) == ([], True)
    for done, named in ((by_name, ("run", "own", "state")), (by_environment, ("run", "certs"))):
        (hangs, *_) = json.loads(done.out)["findings"]
        which = " and ".join(str(dead / name) for name in named)
        assert hangs["text"].startswith(f"{which} could not be looked into within 3 s: ")


def test_help_says_what_these_are(capsys: Capture) -> None:
    said = sgfusion(capsys, "doctor", "--help").out
    assert re.search(r"--certs +DIR ", said)
    assert re.search(r"--state +DIR ", said)
    assert "[DIR|RUN.toml]" in said


def broken_in(done: Answer) -> dict[str, str]:
    """Each check that something is broken in, and the first words of what."""
    return {each["check"]: each["text"] for each in json.loads(done.out)["findings"] if each["verdict"] == "broken"}


def test_damaged_keys_of_a_device_are_told_and_anothers_dial(tmp_path: Path, capsys: Capture) -> None:
    two = (Identity("device", "a"), Identity("device", "b"))
    make_certificates(tmp_path, two, days=365, renew=False, now=NOW)
    asked = Asked(certs=tmp_path, edges=("ash=127.0.0.1:1",))
    for damage in (lambda path: path.write_bytes(b"nonsense"), Path.unlink):
        damage(tmp_path / "device-a" / "tls.crt")
        patient = patient_of(asked)
        ash = (Identity("edge", "ash"), "127.0.0.1:1")
        assert patient.vantage == Vantage((ash,), tmp_path / "device-b", two[1])
    for given in (tmp_path, tmp_path / "device-a"):
        (tmp_path / "device-b" / "tls.key").write_bytes(b"")
        done = sgfusion(capsys, "doctor", "--edge", "ash=127.0.0.1:1", "--certs", given, "--json")
        found = broken_in(done)
        assert (done.code, list(found)) == (1, ["certificates"]), "nobody is dialled by keys that are none"


def test_damaged_keys_of_an_edge_are_told_and_no_operators_are_asked_for(tmp_path: Path, capsys: Capture) -> None:
    make_certificates(tmp_path, EVERYONE, days=365, renew=False, now=NOW)
    (tmp_path / "state").mkdir()
    own = tmp_path / "edge-ash"
    (own / "tls.crt").write_bytes(b"nonsense")
    for state in ((), ("--state", tmp_path / "state")):
        done = sgfusion(capsys, "doctor", "--cloud", "127.0.0.1:1", "--certs", own, *state, "--json")
        found = [each for each in json.loads(done.out)["findings"] if each["verdict"] == "broken"]
        assert [each["check"] for each in found] == ["certificates", "cloud"]
        assert found[0]["text"].startswith(f"{own}: ")
        assert found[1]["remedy"] == "what is said of certificates helps here too"
        assert "operator" not in done.out
    (tmp_path / "none").mkdir()
    done = sgfusion(capsys, "doctor", "--cloud", "127.0.0.1:1", "--certs", tmp_path / "none", "--json")
    assert broken_in(done)["certificates"] == f"{tmp_path / 'none'} holds no tls.crt and no tls.key"


def test_damaged_keys_of_a_local_cluster_come_from_who_made_them(tmp_path: Path, capsys: Capture) -> None:
    """`--certs` would not help: by a results folder its own are taken."""
    state, certs = tmp_path / "cluster" / "0123", tmp_path / "cluster" / "certs"
    make_certificates(certs, EVERYONE, days=365, renew=False, now=NOW)
    (certs / "operator" / "tls.crt").write_bytes(b"nonsense")
    announce(state / "cloud", "127.0.0.1:1")
    enter(state, certs / "operator")
    done = sgfusion(capsys, "doctor", tmp_path, "--json")
    found = {each["check"]: each for each in json.loads(done.out)["findings"] if each["verdict"] == "broken"}
    assert {check: each["remedy"] for check, each in found.items()} == {"certificates": BY_UP, "cloud": BY_UP}


def test_a_folder_of_keys_that_one_may_not_read_is_a_finding(tmp_path: Path, capsys: Capture) -> None:
    make_certificates(tmp_path, EVERYONE, days=365, renew=False, now=NOW)
    own = tmp_path / "device-u%201"
    own.chmod(0)
    for words in (("--edge", "ash=127.0.0.1:1"), ()):
        done = without_rights(partial(sgfusion, capsys, "doctor", *words, "--certs", own, "--json"))
        assert broken_in(done) == {"certificates": f"{own}: ca.crt cannot be read (Permission denied)"}
        (fold,) = [each for each in json.loads(done.out)["findings"] if each["verdict"] == "broken"]
        assert fold["remedy"] == OPEN
    done = without_rights(lambda: sgfusion(capsys, "doctor", own / "run", "--json"))
    assert broken_in(done) == {"folders": f"{own / 'run'} cannot be looked into (Permission denied)"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("DIR --edge ash=a:1 --certs CERTS", "--edge ash=a:1 is looked at as from a device's host, and DIR by its own"),
        (
            "--edge ash=a:1 --certs CERTS --insecure",
            "--insecure goes with --cloud HOST:PORT, and not with --edge ash=a:1",
        ),
        ("--edge ash=a:1 --edge ash=b:1 --certs CERTS", "--edge ash=a:1 and --edge ash=b:1: a zone has one edge"),
        ("DIR --cloud 127.0.0.1:1 --certs CERTS/edge-ash", "DIR and --cloud 127.0.0.1:1: each says whom to ask"),
        ("--insecure", "--insecure goes with --cloud HOST:PORT"),
        ("DIR --insecure", "--insecure goes with --cloud HOST:PORT, and not with DIR"),
    ],
)
def test_what_would_count_for_nothing_is_refused(tmp_path: Path, capsys: Capture, words: str, says: str) -> None:
    make_certificates(tmp_path / "certs", EVERYONE, days=365, renew=False, now=NOW)
    (tmp_path / "results").mkdir()

    def named(text: str) -> str:
        return text.replace("DIR", str(tmp_path / "results")).replace("CERTS", str(tmp_path / "certs"))

    done = sgfusion(capsys, "doctor", *named(words).split())
    assert (done.code, done.out) == (1, "")
    assert named(says) in " ".join(done.error.split())
