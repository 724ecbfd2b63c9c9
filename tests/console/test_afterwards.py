"""The page of a finished run beside `sgfusion up`, if it cannot be served: that is told, and nothing else happens."""

import http.client
import io
import json
import socket
import ssl
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console

from cloud.page.access import TOKEN_FILE
from cloud.page.server import Page
from console import afterwards, simulate
from sgfusion.wire.identity import Identity, folder_of
from tests.cluster.keys import CLOUD, OPERATOR, keys_in
from tests.console.commands import sgfusion
from tests.pages import DIRECT, free_ports
from tests.simulator.tiny_suite import write_suite

Capture = pytest.CaptureFixture[str]
EVERYWHERE = "0.0.0.0:0"


@pytest.fixture
def folder(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(simulate, "draw_zone_tree", lambda *_: None)
    run_file = write_suite(tmp_path).with_name("tiny.toml")
    assert sgfusion(capsys, "simulate", run_file, "--out", tmp_path / "out").code == 0
    return tmp_path / "out"


def told(folder: Path, address: str, state: Path, certs: Path) -> str:
    """What the screen says of a page that is not there; within, the address would be for whoever wants it."""
    screen = Console(record=True, width=200, file=io.StringIO())
    with afterwards.still_shown(folder, address, screen, state=state, certs=certs) as url:
        assert url is None
        port = int(address.rpartition(":")[2])
        if port:
            with pytest.raises(OSError, match="refused"):
                socket.create_connection(("127.0.0.1", port), timeout=60)
    (line,) = screen.export_text().splitlines()
    before, _, reason = line.partition(": ")
    assert before == "no page while zones train alone"
    return reason


def test_keys_that_are_missing_or_none(folder: Path, tmp_path: Path) -> None:
    state, certs = tmp_path / "state", tmp_path / "certs"
    for each in (state, certs):
        each.mkdir()
    assert "No such file" in told(folder, EVERYWHERE, state, certs)
    for name in ("tls.crt", "tls.key", "ca.crt"):
        (certs / name).write_text("no key")
    assert "SSL" in told(folder, EVERYWHERE, state, certs)


def test_a_token_that_cannot_be_written(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    assert "Not a directory" in told(folder, EVERYWHERE, tmp_path / "state", tmp_path)


@pytest.mark.parametrize("method", ["__init__", "start"])
def test_a_page_that_fails_as_it_starts_tells_who_started_it(
    method: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("it fails here")

    (port,) = free_ports(1)
    with monkeypatch.context() as broken:
        broken.setattr(Page, method, fail)
        assert told(folder, f"127.0.0.1:{port}", tmp_path, tmp_path) == "it fails here"
    screen = Console(record=True, file=io.StringIO())
    with (
        afterwards.still_shown(folder, f"127.0.0.1:{port}", screen, state=tmp_path, certs=None) as url,
        DIRECT.open(f"{url}api/run", timeout=60) as answer,
    ):
        assert json.load(answer)["run"]["comparing"] is True
    assert screen.export_text() == ""


def test_a_place_that_nobody_asked_for_and_that_is_taken_by_now_is_another_one(folder: Path, tmp_path: Path) -> None:
    screen = Console(record=True, width=200, file=io.StringIO())
    with socket.create_server(("127.0.0.1", 0)) as other:
        place = f"127.0.0.1:{other.getsockname()[1]}"
        shown = afterwards.still_shown(folder, place, screen, state=tmp_path, certs=None, asked=False)
        with shown as url, DIRECT.open(f"{url}api/run", timeout=60) as answer:
            assert json.load(answer)["run"]["live"] is False
    assert screen.export_text() == f"page: {url} from now on, for another program has taken {place}\n"


def test_beyond_loopback_it_lets_in_whom_the_clouds_page_did(folder: Path, tmp_path: Path) -> None:
    state, keys, edge = tmp_path / "state", tmp_path / "keys", Identity("edge", "north")
    state.mkdir()
    keys_in(keys, (CLOUD, OPERATOR, edge))
    screen = Console(record=True, file=io.StringIO())

    def status(who: Identity | None = None, **headers: str) -> int:
        context = ssl.create_default_context(cafile=folder_of(keys, CLOUD) / "ca.crt")
        context.check_hostname = False
        if who is not None:
            own = folder_of(keys, who)
            context.load_cert_chain(own / "tls.crt", own / "tls.key")
        line = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=60)
        with closing(line):
            line.request("GET", "/api/run", headers=headers)
            return line.getresponse().status

    certs = folder_of(keys, CLOUD)
    with afterwards.still_shown(folder, EVERYWHERE, screen, state=state, certs=certs) as url:
        assert url is not None, screen.export_text()
        port = int(url.rstrip("/").rpartition(":")[2])
        token = (state / TOKEN_FILE).read_text().strip()
        assert [status(), status(Authorization="Bearer x"), status(Authorization=f"Bearer {token}")] == [401, 401, 200]
        assert [status(OPERATOR), status(edge)] == [200, 403]
