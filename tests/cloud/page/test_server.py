"""The page over real sockets: its addresses, its headers, its streams, and its end."""

import gzip
import http.client
import json
import re
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from cloud.page import assets, server, site
from cloud.page.assets import STATIC, plotly_path
from cloud.page.server import take_place
from sgfusion.errors import IdentityError, MissingDependencyError, UnavailableError
from tests.cloud.page.sites import PATIENCE, Served, Stream, served


def test_the_page_and_its_files() -> None:
    with served() as page:
        status, headers, body = page.ask("/")
        assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert body == (STATIC / "index.html").read_bytes()
        script = next(STATIC.glob("*.js")).name
        status, headers, body = page.ask(f"/static/{script}")
        assert (status, headers["content-type"]) == (200, "text/javascript; charset=utf-8")
        assert body == (STATIC / script).read_bytes()


def test_a_browser_that_has_a_file_is_not_sent_it_again() -> None:
    with served() as page:
        _, headers, _ = page.ask("/plotly.min.js")
        status, again, body = page.ask("/plotly.min.js", if_none_match=headers["etag"])
        assert (status, body) == (304, b"")
        assert again["etag"] == headers["etag"]
        assert page.ask("/plotly.min.js", if_none_match='"another"')[0] == 200


def test_the_script_that_draws_is_plotlys_own_and_packed_once() -> None:
    with served() as page:
        _, headers, body = page.ask("/plotly.min.js", accept_encoding="gzip, br")
        assert headers["content-encoding"] == "gzip"
        assert gzip.decompress(body) == plotly_path().read_bytes()
        assert len(body) < 2_000_000
        status, headers, plain = page.ask("/plotly.min.js")
        assert "content-encoding" not in headers
        assert plain == plotly_path().read_bytes()
        assert status == 200


def test_without_plotly_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "PLOTLY", "plotly/nowhere.js")
    with pytest.raises(MissingDependencyError, match=r"pip install '\.\[cloud\]'"):
        take_place("127.0.0.1:0", state=None, certs=None, plain=False)


def test_json() -> None:
    with served() as page:
        status, headers, body = page.ask("/api/run", accept_encoding="gzip")
        assert (status, headers["content-type"], headers["cache-control"]) == (200, "application/json", "no-store")
        run = json.loads(gzip.decompress(body))
        assert run["run"] == {"name": "talk"}
        assert abs(run["sequence"] / 1000 - time.time()) < 3600
        assert page.json("/api/zone/%C5%81%C3%B3d%C5%BA") == {"rounds": []}
        assert page.ask("/api/zone/nowhere")[0] == 404
        assert page.json("/api/round/7") == {"number": 7}
        assert page.ask("/api/round/-1")[0] == 400
        assert page.ask("/api/round/" + "9" * 40)[0] == 400
        assert page.ask("/api/nothing")[0] == 404


@pytest.mark.parametrize("path", ["/", "/api/run", "/api/nothing", "/api/events", "/static/style.css"])
def test_every_answer_is_one_that_no_other_page_can_use(path: str) -> None:
    with served() as page:
        _, headers, _ = page.ask(path, "HEAD")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'self'"
    assert "script-src" not in policy  # so it is default-src: no inline script, none from elsewhere
    assert policy["style-src"] == "'self' 'unsafe-inline'"
    assert policy["img-src"] == "'self' data: blob:"
    assert policy["frame-ancestors"] == "'none'"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_it_is_to_be_looked_at(method: str) -> None:
    with served() as page:
        for path in ("/", "/api/run", "/api/nothing"):
            status, headers, _ = page.ask(path, method)
            assert (status, headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/..%2fserver.py",
        "/static/%2e%2e%2fserver.py",
        "/static/..%5cserver.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/",
        "/static/.",
        "/static/..",
        "/static/index.html%00.js",
        "/../../../../etc/passwd",
        "//etc/passwd",
    ],
)
def test_no_path_leads_out_of_the_pages_folder(path: str) -> None:
    with served() as page:
        assert page.ask(path)[0] == 404


def test_what_is_too_long_is_refused() -> None:
    with served() as page:
        assert page.ask("/api/events?after=" + "1" * 2000)[0] == 414
        with socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE) as endless:
            endless.sendall(b"GET / HTTP/1.1\r\nCookie: " + b"x" * 200_000)
            assert endless.recv(12) == b"HTTP/1.1 400"
        assert page.ask("/")[0] == 200


def test_a_failure_is_logged_and_answered(caplog: pytest.LogCaptureFixture) -> None:
    with served() as page:
        status, headers, body = page.ask("/api/round/13")
        assert status == 500
        assert b"thirteen" not in body
        assert headers["x-content-type-options"] == "nosniff"
        assert page.ask("/")[0] == 200
    assert "the page could not answer /api/round/13" in caplog.text


# Streams


def test_messages_come_in_order_with_their_numbers() -> None:
    with served() as page:
        first = page.json("/api/run")["sequence"]
        stream = Stream(page, f"/api/events?after={first}")
        assert stream.answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert stream.answer.headers["cache-control"] == "no-store"
        page.say(("plan", '{"a":1}'), ("status", '{"b":2}'))
        assert stream.next() == {"id": str(first + 1), "event": "plan", "data": '{"a":1}'}
        assert stream.next() == {"id": str(first + 2), "event": "status", "data": '{"b":2}'}
        stream.close()


def test_who_reconnects_gets_what_it_missed_and_no_more() -> None:
    with served() as page:
        first = page.json("/api/run")["sequence"]
        stream = Stream(page)
        page.say(("news", "1"), ("news", "2"))
        assert stream.next()["data"] == "1"
        stream.close()
        again = Stream(page, "/api/events?after=0", last_event_id=str(first + 1))  # a browser's word goes first
        assert again.next() == {"id": str(first + 2), "event": "news", "data": "2"}
        again.close()
        lost = Stream(page, last_event_id="17")
        assert lost.next() == {"id": str(first + 2), "event": "reload", "data": "{}"}
        lost.close()
        assert page.ask("/api/events?after=latest")[0] == 400


def test_two_messages_of_a_kind_are_half_a_second_apart() -> None:
    with served() as page:
        page.json("/api/run")
        stream = Stream(page)
        began = time.monotonic()
        for number in range(4):
            page.say(("status", str(number)))
            assert stream.next()["data"] == str(number)
        took = time.monotonic() - began
        stream.close()
    assert took > 3 * server.EVERY


def test_while_nobody_looks_nothing_is_put_into_words() -> None:
    with served() as page:
        page.say(("status", "1"))
        until(lambda: page.source.forgotten == 1)
        first = page.json("/api/run")["sequence"]
        page.say(("status", "2"))
        stream = Stream(page, f"/api/events?after={first}")
        assert stream.next()["data"] == "2"
        stream.close()
        assert page.source.forgotten == 1


def until(holds: object) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.01)  # between two looks


def test_so_many_viewers_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "MOST_VIEWERS", 2)
    with served() as page:
        streams = [Stream(page), Stream(page)]
        until(lambda: page.page.viewers == 2)
        assert page.ask("/api/events")[0] == 503
        streams.pop().close()
        until(lambda: page.page.viewers == 1)  # its place is free again when it has gone
        streams.append(Stream(page))
        assert streams[-1].answer.status == 200
        for stream in streams:
            stream.close()


def test_who_does_not_read_holds_up_nobody_and_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "STUCK", 2.0)
    monkeypatch.setattr(server, "HURRY", 1.0)
    with served() as page:
        page.json("/api/run")
        deaf = socket.create_connection(("127.0.0.1", page.port))
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: page.page.viewers == 1)
        stream = Stream(page)
        until(lambda: page.page.viewers == 2)
        large = "x" * 4_000_000
        for number in range(3):
            page.say(("status", f'"{number}{large}"'))
            began = time.monotonic()
            assert stream.next()["data"].startswith(f'"{number}')
            assert time.monotonic() - began < 10
        until(lambda: page.page.viewers == 1)
        until(lambda: page.connections == 1)  # its place too is free
        stream.close()
        deaf.close()


def test_a_large_answer_that_nobody_reads_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HURRY", 0.3)
    with served() as page, socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", page.port))
        deaf.sendall(b"GET /plotly.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: page.connections == 1)
        until(lambda: page.connections == 0)


def test_half_a_second_request_holds_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HURRY", 0.3)
    with served() as page, socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE) as slow:
        slow.sendall(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\nGET /noth")
        got = b""
        try:
            while piece := slow.recv(4096):
                got += piece
        except ConnectionResetError:
            pass
        assert got.startswith(b"HTTP/1.1 404")
        until(lambda: page.connections == 0)


def test_news_that_cannot_be_told_are_logged_and_the_next_are(caplog: pytest.LogCaptureFixture) -> None:
    with served() as page:
        page.json("/api/run")
        stream = Stream(page)
        until(lambda: page.page.viewers == 1)
        page.source.broken = True
        page.say(("status", "{}"))
        until(lambda: "the page could not tell what has changed" in caplog.text)
        page.source.broken = False
        page.say(("status", '{"a":1}'))
        assert stream.next()["event"] == "reload"
        stream.close()


def test_who_says_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HURRY", 0.2)
    with served() as page, socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE) as silent:
        assert silent.recv(1) == b""


def test_the_silent_make_way_and_who_looks_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody who reaches the port may connect, and say nothing, as often as he likes."""
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 8)
    with served() as page, ExitStack() as stack:
        stream = Stream(page)
        most = 0
        for _ in range(40):
            stack.enter_context(socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE))
            most = max(most, page.connections)
        until(lambda: page.connections == 8)
        assert most <= 8
        assert page.ask("/")[0] == 200
        page.say(("status", "1"))
        assert stream.next()["data"] == "1"
        stream.close()


def test_where_all_are_at_work_who_comes_is_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 2)
    with served() as page:
        streams = [Stream(page), Stream(page)]
        with pytest.raises((ConnectionError, http.client.BadStatusLine)):
            page.ask("/")
        page.say(("status", "1"))
        assert [stream.next()["data"] for stream in streams] == ["1", "1"]
        streams.pop().close()
        until(lambda: page.connections == 1)
        assert page.ask("/")[0] == 200
        streams.pop().close()


def test_open_streams_do_not_delay_the_end() -> None:
    with served() as page:
        streams = [Stream(page) for _ in range(4)]
        with (
            socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE) as idle,
            socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE) as bare,
        ):
            bare.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            until(lambda: page.page.viewers == 5)
            began = time.monotonic()
            page.stop()
            assert time.monotonic() - began < 2.0
            assert idle.recv(1) == b""
            got = b""
            while piece := bare.recv(4096):
                got += piece
            assert got.endswith(b"\r\n0\r\n\r\n")  # in order: a browser comes back, and nobody was cut off
        for stream in streams:
            with pytest.raises(EOFError):
                stream.next()
            stream.close()
        with pytest.raises(OSError, match="refused"):
            page.ask("/")


# Places


def test_a_port_that_is_taken_is_an_error_if_it_was_asked_for_and_another_if_it_was_not() -> None:
    with served() as page:
        taken = f"127.0.0.1:{page.port}"
        with pytest.raises(UnavailableError, match=re.escape(f"the page cannot listen on {taken} (Address already in")):
            take_place(taken, state=None, certs=None, plain=False)


def test_the_usual_place_or_any(monkeypatch: pytest.MonkeyPatch) -> None:
    with served() as page:
        monkeypatch.setattr(server, "USUAL", f"127.0.0.1:{page.port}")
        place = take_place(None, state=None, certs=None, plain=False)
        place.socket.close()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", place.url)
    assert place.url != page.place.url


@pytest.mark.parametrize(
    ("address", "url"), [("[::1]:0", r"http://\[::1\]:\d+/"), ("localhost:0", r"http://localhost:\d+/")]
)
def test_other_names_of_this_machine(address: str, url: str) -> None:
    place = take_place(address, state=None, certs=None, plain=False)
    place.socket.close()
    assert re.fullmatch(url, place.url)


def test_beyond_this_machine_it_needs_keys_or_is_told_to_do_without(tmp_path: Path) -> None:
    with pytest.raises(IdentityError, match="no keys to prove who serves it: give --certs, or --page-plain"):
        take_place("0.0.0.0:0", state=tmp_path, certs=None, plain=False)
    place = take_place("0.0.0.0:0", state=tmp_path, certs=None, plain=True)
    place.socket.close()
    assert place.access.token is not None


def test_served_pages_are_apart() -> None:
    """Two clouds on one machine."""
    with served() as one, served() as other:
        assert isinstance(one, Served)
        assert one.port != other.port
