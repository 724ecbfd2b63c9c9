"""The page over TLS, as somebody from another machine opens it: with an operator's certificate, by the token, or not.

It listens beyond loopback, so its rules are those for everybody; the browser comes to it by 127.0.0.1 all the same.
"""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from cloud.page.access import TOKEN_FILE
from tests.cluster.harness import Cluster, cluster_of, run_of
from tests.page.browser import Tab
from tests.page.test_live import page_of, round_of, until_round
from tests.pages import blocks, commands, type_in
from tests.unhurried import UNHURRIED

ZONES = ("ash", "birch")
PASSWORD = "choose-one"  # noqa: S105 (the one that the document has in its place)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two zones that train for as long as anybody looks, with keys for all."""
    run = run_of(UNHURRIED, "rounds=20000", "data.devices=1", f"zones.names={list(ZONES)}".replace("'", '"'))
    with cluster_of(run, tmp_path_factory.mktemp("elsewhere"), start=False) as made:
        made.page = "0.0.0.0:0"
        made.start()
        yield made


@pytest.fixture(scope="module")
def url(cluster: Cluster) -> str:
    found = page_of(cluster)
    assert found.startswith("https://0.0.0.0:")
    return f"https://127.0.0.1:{urlsplit(found).port}/"


@pytest.fixture(scope="module")
def bundle(cluster: Cluster) -> Path:
    """`operator.p12`, by the command that docs/operate.md has for it."""
    (text,) = [block.text for block in blocks("docs/operate.md") if "openssl pkcs12" in block.text]
    (export,) = [command for command in commands(text) if command.startswith("openssl pkcs12")]
    assert f"pass:{PASSWORD} " in export
    type_in(export, cluster.folder)  # where its `certs/` are
    return cluster.folder / "operator.p12"


def stranger(browser: Browser, url: str, bundle: Path | None = None) -> Tab:
    """One from another machine, with the certificate in the bundle or with none. It has not been told of our CA: that a
    client that knows it needs no leave to go on is tested where docs/operate.md is typed.
    """
    origin = url.rstrip("/")
    context = browser.new_context(
        ignore_https_errors=True,
        client_certificates=[{"origin": origin, "pfxPath": bundle, "passphrase": PASSWORD}] if bundle else None,
        reduced_motion="reduce",
    )
    return Tab(context, url)


def follows(seen: Tab) -> None:
    """The run is there, and goes on before one's eyes."""
    page = seen.open()
    expect(page.locator("#link")).to_have_text("live")
    expect(page.locator("#map .zone")).to_have_count(len(ZONES))
    expect(page.locator("#zones-body tr")).to_have_count(len(ZONES))
    seen.drawn("curves")
    until_round(page, 1)
    page.evaluate("window.marked = true")
    until_round(page, round_of(page) + 3)
    assert page.evaluate("window.marked === true")  # a reload would show newer rounds too
    asked = [urlsplit(each).path for each in seen.asked]
    assert (asked.count("/api/run"), asked.count("/api/events")) == (1, 1)
    seen.fine()
    seen.page.context.close()


def test_an_operators_certificate_opens_it(browser: Browser, url: str, bundle: Path) -> None:
    follows(stranger(browser, url, bundle))


def test_the_token_opens_it_and_goes_into_a_cookie(browser: Browser, url: str, cluster: Cluster) -> None:
    token = (cluster.folder / "cloud" / TOKEN_FILE).read_text().strip()
    seen = stranger(browser, url)
    context = seen.page.context
    page = seen.open(f"?token={token}")
    assert page.url == url  # without it
    (cookie,) = context.cookies()
    assert (cookie["httpOnly"], cookie["secure"], cookie["sameSite"]) == (True, True, "Lax")
    assert token not in cookie["value"]
    page.close()
    follows(Tab(context, url))  # from now on by the address alone


def test_without_either_it_says_what_to_give(browser: Browser, url: str) -> None:
    seen = stranger(browser, url)
    answer = seen.page.goto(url)
    assert answer is not None
    assert answer.status == 401
    expect(seen.page.locator("body")).to_have_text(
        f"give the token: /?token=…; it is in the file {TOKEN_FILE} in the cloud's state folder. Or an operator's key"
    )
    seen.page.goto(f"{url}?token=guessed")
    expect(seen.page.locator("body")).to_contain_text("that is not the token")
    assert not seen.page.context.cookies()
    assert not seen.outside
    seen.page.context.close()
