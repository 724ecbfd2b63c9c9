"""Clock, disk, memory, files, ports and the engine: exact findings from facts; facts from real things."""

import errno
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
from console.doctor.ports import Place, Port, look_at_places, look_at_ports, place_findings, port_findings
from console.doctor.programs import Programs
from tests.console.rights import without_rights

SEEN = Host(RELEASED + timedelta(days=9), 4 * GIB, 65_536, [Folder(Path("results"), 30 * GIB)])


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
    found = only(replace(SEEN, folders=[Folder(Path("results"), free)]))
    assert (found.check, found.verdict) == ("disk", verdict)


def test_little_memory_and_few_files() -> None:
    assert only(replace(SEEN, memory=700 << 20)).text == "700 MiB available"
    assert only(replace(SEEN, files=1024)).remedy.startswith("raise the hard limit (ulimit -Hn 4096)")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """Nobody writes there, not even root."""
    seen = look_at_folder(Path("/proc/sys"))
    assert seen.unwritable
    found = only(replace(SEEN, folders=[seen]))
    assert (found.verdict, found.text) == ("broken", f"nothing can be written to /proc/sys: {seen.unwritable}")
    assert look_at_folder(tmp_path).unwritable == ""
    assert look_at_folder(tmp_path).there
    absent = look_at_folder(tmp_path / "not" / "there" / "yet")
    assert (absent.free > 0, absent.there) == (True, False)
    (_, disk, *_) = host_findings(replace(SEEN, folders=[replace(absent, free=30 * GIB)]))
    assert disk == ok("disk", f"30.0 GiB free for {absent.path}, which is not there yet")
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_this_host_tells_all(tmp_path: Path) -> None:
    seen = look_at_host([tmp_path])
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


def test_an_address_to_listen_on_that_is_free_taken_or_ours() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1]
        everywhere, local = f"0.0.0.0:{number}", f"localhost:{number}"
        seen = look_at_places([everywhere, local])
    owner = seen[0].owner
    assert owner.startswith(f"process {os.getpid()} (")
    remedy = "if that is the service itself, all is well; else stop it, or give the service another address"
    assert place_findings(seen) == [
        look("ports", f"{everywhere}: taken by {owner}", remedy),
        look("ports", f"{local}: taken by {owner}", remedy),
    ]
    assert place_findings([replace(seen[0], owner="")])[0].text == f"{everywhere}: taken", "others' may be hidden"
    assert place_findings(seen[:1], {number}) == [ok("ports", f"{everywhere}: in use by {owner}, as it should be")]
    both = (everywhere, f"127.0.0.1:{number}", "127.0.0.1:0")
    assert place_findings(look_at_places(both)) == [ok("ports", f"{address}: free") for address in both]


def test_an_address_that_is_not_this_hosts() -> None:
    """One of those that documents are written with (RFC 5737), a name that never is one (RFC 2606), and no name."""
    assert place_findings(look_at_places(["203.0.113.7:7071", "cloud.invalid:7071", "a..b:7071"])) == [
        broken(
            "ports",
            "203.0.113.7:7071: this host has no such address",
            "listen on one of its own (`ip address` lists them), or on 0.0.0.0 for all of them; --advertise of an edge"
            " says where others reach it",
        ),
        *(
            broken(
                "ports",
                f"{name}:7071: its name is unknown here",
                "correct it, or give an address of this host by its number",
            )
            for name in ("cloud.invalid", "a..b")
        ),
    ]


def test_an_address_whose_port_is_for_root() -> None:
    found = place_findings(without_rights(lambda: look_at_places(["127.0.0.1:83"])))
    first = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")  # an engine may open all of them in its containers
    if first.exists() and int(first.read_text()) <= 83:
        found = place_findings([Place("127.0.0.1:83", PermissionError(errno.EACCES, "Permission denied"))])
    assert found == [
        broken(
            "ports",
            "127.0.0.1:83: this user may not listen there",
            "give a port from 1024 on: those below need root, or the capability CAP_NET_BIND_SERVICE",
        )
    ]


def test_an_address_that_fails_in_another_way() -> None:
    place = Place("[::1]:7071", OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol"))
    assert place_findings([place]) == [
        broken("ports", "[::1]:7071: Address family not supported by protocol", "give the service another address")
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
