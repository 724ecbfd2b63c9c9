"""Who may look: nobody else's page on loopback, and beyond it an operator or who has the token."""

import http.client
import re
import socket
import ssl
import stat
from contextlib import ExitStack
from pathlib import Path

import pytest

from cloud.page import server
from cloud.page.access import TOKEN_FILE, Access, Asker, Refusal, Welcome, kept_token
from sgfusion.errors import StoreError
from sgfusion.wire.identity import Identity, folder_of
from tests.cloud.page.sites import PATIENCE, Served, served
from tests.cluster.keys import CLOUD, OPERATOR, keys_in

TOKEN = "t" * 43
DEVICE = Identity("device", "u1")
EDGE = Identity("edge", "ash")


def refused(verdict: object, status: int) -> str:
    assert isinstance(verdict, Refusal)
    assert verdict.status == status
    return verdict.text


# On loopback


@pytest.mark.parametrize("host", ["127.0.0.1:7080", "localhost:7080", "localhost", "[::1]:7080", "[::1]", "127.9.9.9"])
def test_this_machine_may(host: str) -> None:
    assert Access().check(Asker(host=host)) is None


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:7080",
        "127.0.0.1.evil.example",
        "10.0.0.1:7080",
        "localhost.evil.example",
        "localhost:7080.evil.example",
        "[::1].evil.example",
        "::1",
        "0.0.0.0:7080",
        "127.0.0.1:7080@evil.example",
    ],
)
def test_a_name_that_somebody_else_has_lead_here_may_not(host: str) -> None:
    """DNS rebinding: another's page, once loaded, has its own name resolve to 127.0.0.1."""
    assert "127.0.0.1 or localhost" in refused(Access().check(Asker(host=host)), 421)


# Beyond


def test_the_token_is_asked_for_and_compared() -> None:
    access = Access(TOKEN)
    assert "give the token" in refused(access.check(Asker(host="hub.example")), 401)
    refused(access.check(Asker(query="token=wrong")), 401)
    refused(access.check(Asker(query=f"token={TOKEN}x")), 401)
    refused(access.check(Asker(authorization="Bearer wrong")), 401)
    refused(access.check(Asker(authorization=f"Basic {TOKEN}")), 401)
    refused(access.check(Asker(authorization="Bearer \xff")), 401)
    refused(access.check(Asker(cookie=f"sgfusion={TOKEN}")), 401)
    refused(access.check(Asker(cookie="\x00;;=")), 401)
    assert access.check(Asker(authorization=f"Bearer {TOKEN}")) is None
    assert access.check(Asker(authorization=f"bearer  {TOKEN}")) is None


def test_a_cookie_stands_for_the_token_and_does_not_hold_it() -> None:
    access = Access(TOKEN)
    welcome = access.check(Asker(query=f"token={TOKEN}", secure=True))
    assert isinstance(welcome, Welcome)
    assert TOKEN not in welcome.cookie
    pair, *attributes = welcome.cookie.split("; ")
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Lax", "Secure", "Max-Age=2592000"}
    assert access.check(Asker(cookie=f"theme=dark; {pair}")) is None
    refused(Access("u" * 43).check(Asker(cookie=pair)), 401)  # another cloud's
    plain = access.check(Asker(query=f"token={TOKEN}"))
    assert isinstance(plain, Welcome)
    assert "Secure" not in plain.cookie


def test_certificates_decide_by_themselves() -> None:
    access = Access(TOKEN)
    assert access.check(Asker(uris=(OPERATOR.uri,))) is None
    for uris in ((DEVICE.uri,), (EDGE.uri,), (CLOUD.uri,), (), ("https://example",), (OPERATOR.uri, DEVICE.uri)):
        said = refused(access.check(Asker(uris=uris, authorization=f"Bearer {TOKEN}")), 403)
        assert "the page is for operators" in said


def test_the_token_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    token = kept_token(tmp_path)
    assert re.fullmatch(r"[\w-]{43}", token)
    assert stat.S_IMODE((tmp_path / TOKEN_FILE).stat().st_mode) == 0o600
    assert kept_token(tmp_path) == token
    (tmp_path / TOKEN_FILE).write_text("short\n")
    with pytest.raises(StoreError, match=r"page-token holds 5 characters.*remove it"):
        kept_token(tmp_path)


# Over sockets


def test_over_plain_http(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with served("0.0.0.0:0", state=tmp_path, plain=True) as page:
        token = kept_token(tmp_path)
        assert page.place.url.startswith("http://0.0.0.0:")
        for path in ("/", "/api/run", "/api/events", "/static/style.css", "/plotly.min.js", "/api/nothing"):
            status, headers, body = page.ask(path)
            assert (status, headers["www-authenticate"]) == (401, "Bearer")
            assert token.encode() not in body
        assert page.ask("/?token=wrong")[0] == 401
        status, headers, _ = page.ask(f"/?token={token}")
        assert (status, headers["location"], headers["cache-control"]) == (303, "/", "no-store")
        cookie = headers["set-cookie"].partition(";")[0]
        assert page.ask("/", cookie=cookie)[0] == 200
        assert page.ask("/api/run", authorization=f"Bearer {token}")[0] == 200
        assert page.ask("/", "POST", cookie=cookie)[0] == 405
    assert token not in caplog.text


def test_on_loopback_the_host_counts(tmp_path: Path) -> None:
    with served(state=tmp_path) as page:
        assert page.ask("/")[0] == 200
        status, _, body = page.ask("/api/run", host="evil.example")
        assert (status, b"talk" in body) == (421, False)
        assert not (tmp_path / TOKEN_FILE).exists()


def client(certs: Path, who: Identity | None) -> ssl.SSLContext:
    """A browser that trusts our CA, with somebody's certificate or none."""
    context = ssl.create_default_context(cafile=certs / "cloud" / "ca.crt")
    context.check_hostname = False  # by its address here, and the certificate says cloud.sgfusion
    if who is not None:
        folder = folder_of(certs, who)
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    return context


def test_over_tls(tmp_path: Path) -> None:
    certs, others = tmp_path / "certs", tmp_path / "others"
    keys_in(certs, [CLOUD, OPERATOR, DEVICE, EDGE])
    keys_in(others, [CLOUD, OPERATOR])
    with served("0.0.0.0:0", state=tmp_path, certs=certs / "cloud") as page:
        assert page.place.url.startswith("https://0.0.0.0:")
        assert page.ask("/api/run", tls=client(certs, None))[0] == 401
        assert page.ask("/api/run", tls=client(certs, OPERATOR))[0] == 200
        for who in (DEVICE, EDGE, CLOUD):
            status, _, body = page.ask("/api/run", tls=client(certs, who))
            assert (status, str(who).encode() in body) == (403, True)
        token = kept_token(tmp_path)
        status, headers, _ = page.ask(f"/?token={token}", tls=client(certs, None))
        assert (status, "Secure" in headers["set-cookie"]) == (303, True)
        assert page.ask("/api/run", tls=client(certs, None), authorization=f"Bearer {token}")[0] == 200
        strange = client(certs, None)  # an operator of another CA
        strange.load_cert_chain(others / "operator" / "tls.crt", others / "operator" / "tls.key")
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.BadStatusLine)):
            page.ask("/api/run", tls=strange)
        with pytest.raises((ConnectionError, http.client.BadStatusLine)):
            plain_text(page)
        assert page.ask("/api/run", tls=client(certs, OPERATOR))[0] == 200


def test_a_handshake_that_is_never_begun_holds_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certs = tmp_path / "certs"
    keys_in(certs, [CLOUD, OPERATOR])
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 4)
    with served("0.0.0.0:0", state=tmp_path, certs=certs / "cloud") as page, ExitStack() as stack:
        for _ in range(12):
            stack.enter_context(socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE))
        assert page.ask("/api/run", tls=client(certs, OPERATOR))[0] == 200
        assert 0 < page.connections <= 4
        monkeypatch.setattr(server, "HANDSHAKE", 0.2)
        with socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE) as silent:
            assert silent.recv(1) == b""


def plain_text(page: Served) -> None:
    page.ask("/api/run")
