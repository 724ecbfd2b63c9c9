"""Clock, disk, memory, files, ports and the engine: exact findings from facts; facts from real things."""

import os
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from console.doctor import engine, ports
from console.doctor.engine import Engine, engine_findings, look_at_engine
from console.doctor.findings import Finding, broken, look, ok
from console.doctor.machine import GIB, RELEASED, Folder, Host, host_findings, look_at_folder, look_at_host
from console.doctor.ports import Port, look_at_ports, port_findings
from console.doctor.programs import Programs

SEEN = Host(RELEASED + timedelta(days=9), 4 * GIB, 65_536, Folder(Path("results"), 30 * GIB))


def only(seen: Host) -> Finding:
    (found,) = [finding for finding in host_findings(seen) if finding.verdict != "ok"]
    return found


def test_all_is_well() -> None:
    assert host_findings(SEEN) == [
        ok("clock", f"{SEEN.now:%Y-%m-%d %H:%M:%S} UTC, compared with nothing but this version's date"),
        ok("disk", "30.0 GiB free for results"),
        ok("memory", "4.0 GiB available"),
        ok("files", "a process may open 65,536"),
    ]
    free = host_findings(replace(SEEN, memory=None, files=None))
    assert [finding.text for finding in free[2:]] == ["not told by this system", "no limit"]


def test_a_clock_that_was_never_set() -> None:
    found = only(replace(SEEN, now=datetime(1970, 1, 2, tzinfo=UTC)))
    assert (found.check, found.verdict) == ("clock", "broken")
    assert found.text == "it is 1970-01-02 00:00 UTC here, before this version was made"


@pytest.mark.parametrize(("free", "verdict"), [(GIB, "look"), (50 << 20, "broken"), (0, "broken")])
def test_little_room_on_disk(free: int, verdict: str) -> None:
    found = only(replace(SEEN, folder=Folder(Path("results"), free)))
    assert (found.check, found.verdict) == ("disk", verdict)


def test_little_memory_and_few_files() -> None:
    assert only(replace(SEEN, memory=700 << 20)).text == "700 MiB available"
    assert only(replace(SEEN, files=1024)).remedy.startswith("raise the hard limit (ulimit -Hn 4096)")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """Nobody writes there, not even root."""
    seen = look_at_folder(Path("/proc/sys"))
    assert seen.unwritable
    found = only(replace(SEEN, folder=seen))
    assert (found.verdict, found.text) == ("broken", f"nothing can be written to /proc/sys: {seen.unwritable}")
    assert look_at_folder(tmp_path).unwritable == ""
    assert look_at_folder(tmp_path / "not" / "there" / "yet").free > 0
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_this_host_tells_all(tmp_path: Path) -> None:
    seen = look_at_host(tmp_path)
    assert seen.memory is not None
    assert seen.memory > 1 << 20
    assert abs(seen.now - datetime.now(UTC)) < timedelta(minutes=5)


def test_a_port_that_is_taken_is_told_with_who_has_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1]
        (taken,) = look_at_ports([(number, "the cloud")])
    assert taken.taken == "taken"
    assert taken.owner.startswith(f"process {os.getpid()} (")
    (found,) = port_findings([taken])
    assert found.verdict == "look"
    assert found.text == f"{number}, the cloud: taken by {taken.owner}"
    assert "--listen HOST:PORT" in found.remedy
    (known,) = port_findings([taken], {number})
    assert (known.verdict, "as it should be" in known.text) == ("ok", True)
    (free,) = look_at_ports([(number, "the cloud")])
    assert port_findings([free]) == [ok("ports", f"{number}, where the cloud is by default: free")]


def test_a_port_of_the_system() -> None:
    found = port_findings([Port(80, "the page", "Permission denied")])
    assert found == [
        look(
            "ports",
            "80, the page: Permission denied",
            "stop that, or give the page another: --page HOST:PORT (by default it takes any free one)",
        )
    ]


def test_an_engine_is_never_missed_for_good() -> None:
    assert engine_findings(Engine(True, "20.10.24", "", "1.29.2")) == [ok("engine", "docker 20.10.24, Compose 1.29.2")]
    for seen in (Engine(), Engine(True, silent="Is the docker daemon running?"), Engine(True, "20.10.24")):
        (found,) = engine_findings(seen)
        assert found.verdict == "look"
        assert "only containers need it" in found.remedy


def command(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_the_engine_is_asked_by_the_commands_that_people_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert look_at_engine(Programs()) == Engine()
    command(tmp_path, "docker", 'if [ "$1" = compose ]; then echo v2.26.1; else echo 27.0.1; fi')
    assert look_at_engine(Programs()) == Engine(True, "27.0.1", "", "v2.26.1")
    command(tmp_path, "docker-compose", "echo 1.29.2")
    assert look_at_engine(Programs()).compose == "1.29.2"
    command(tmp_path, "docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    assert look_at_engine(Programs()).silent == "Cannot connect to the Docker daemon"
    monkeypatch.setattr(engine, "WITHIN", 0.3)
    command(tmp_path, "docker", "exec /bin/sleep 30")
    assert look_at_engine(Programs()).silent == "no answer within 0.3 s"


def test_a_finding_has_a_remedy_unless_all_is_well() -> None:
    with pytest.raises(ValueError, match="remedy"):
        Finding("disk", "broken", "full")
    with pytest.raises(ValueError, match="remedy"):
        Finding("disk", "ok", "fine", "do this")
    assert broken("disk", "full", "make room").remedy


def test_a_long_command_line_ends_with_what_says_that_it_was_cut(tmp_path: Path) -> None:
    (tmp_path / "cmdline").write_bytes(
        b"\0".join([b"python", b"-m", b"console.main", b"cloud", b"results/" + b"x" * 60])
    )
    shown = ports._command(tmp_path)
    assert len(shown) == ports.LONGEST
    assert shown.endswith("x…")
    (tmp_path / "cmdline").write_bytes(b"python\0-m\0console.main\0")
    assert ports._command(tmp_path) == "python -m console.main"
