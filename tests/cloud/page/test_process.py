"""The page of a real `sgfusion cloud`: where it is, what it shows as reports come in, and its end with the cloud."""

import json
import os
import re
import signal
import socket
import stat
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

import psutil
import pytest

from cloud.page.server import MOST_CONNECTIONS
from sgfusion.plan import ZoneState
from sgfusion.wire.cloud_rpc import CloudClient
from sgfusion.wire.identity import Identity
from sgfusion.wire.service import PAGE, announced
from tests.cloud.test_process import PATIENCE, Process, arrive, refusal, started
from tests.cloud.values import NAMES, a_point, a_report, a_round, a_run, run_text
from tests.cluster.keys import CLOUD, OPERATOR, dialled, keys_in, run_async

LOOPBACK = ("--insecure", "--page", "127.0.0.1:0")


def url_of(cloud: Process) -> str:
    cloud.wait_for(lambda: announced(cloud.state, PAGE))
    return announced(cloud.state, PAGE) or ""


def fetched(url: str, **headers: str) -> Any:
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, headers=said)  # noqa: S310 (our own)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
        return json.load(answer)


class Viewer:
    """A browser's stream."""

    def __init__(self, url: str, after: int) -> None:
        self._answer = urllib.request.urlopen(f"{url}api/events?after={after}", timeout=PATIENCE)  # noqa: S310

    def until(self, kind: str, holds: Any = lambda _data: True) -> tuple[int, dict[str, Any]]:
        """The next message of that kind of which it holds."""
        found: dict[str, str] = {}
        for line in self._answer:
            key, _, value = line.decode().rstrip("\n").partition(": ")
            if key:
                found[key] = value
                continue
            if found.get("event") == kind and holds(data := json.loads(found["data"])):
                return int(found["id"]), data
            found = {}
        raise EOFError

    def close(self) -> None:
        self._answer.close()


@contextmanager
def viewing(url: str, after: int) -> Iterator[Viewer]:
    viewer = Viewer(url, after)
    try:
        yield viewer
    finally:
        viewer.close()


async def report(address: str, zone: str, round: int, state: ZoneState = ZoneState.TRAINING) -> None:
    async with dialled(address, me=Identity("edge", zone)) as channel:
        number = NAMES.index(zone)
        drawn = tuple(other for other in (0, 1, 2) if other != number)[:2]
        said = a_report(
            zone, state, round, rounds=(a_round(round, number, drawn),), evaluations=(a_point(round, best=True),)
        )
        await CloudClient(channel).report(said, timeout=60)


def test_it_shows_the_run_as_it_goes_and_goes_on_after_a_kill(tmp_path: Path) -> None:
    with started(tmp_path, run_text(), *LOOPBACK) as cloud:
        address, url = cloud.address(), url_of(cloud)
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url)
        first = fetched(f"{url}api/run")
        assert (first["run"]["name"], first["run"]["live"], first["tree"]) == ("woods", True, None)
        with viewing(url, first["sequence"]) as viewer:
            run_async(arrive(address, NAMES), PATIENCE)
            _, plan = viewer.until("plan", lambda data: data["tree"] is not None)
            assert plan["tree"]["zones"] == list(NAMES)
            # Who looked before the first zone had reported did not know them.
            assert (first["metric"], plan["metric"]["name"], plan["edges"]) == (None, "RMSE", [])
            viewer.until("news", lambda data: any("plan 1 over 5 zones" in event["text"] for event in data["events"]))
            run_async(report(address, "birch", 1), PATIENCE)
            began = time.monotonic()
            last, status = viewer.until("status", lambda data: "birch" in data["series"])
            took = time.monotonic() - began
        assert took < 5  # half a second on a machine with nothing else to do: benchmarks/page.py measures it
        (birch,) = [zone for zone in status["status"]["zones"] if zone["name"] == "birch"]
        assert (birch["state"], birch["round"], birch["attention"]) == ("training", 1, {"0": 1.0})
        assert status["series"]["birch"]["rounds"][0][:2] == [1, 2]
        assert json.loads(json.dumps(fetched(f"{url}api/round/1"))) == {
            "birch": {"attention": {"0": 1.0}, "left_out": {"2": "late"}}
        }
        cloud.kill()
        assert announced(cloud.state, PAGE) == url  # which nobody took back
    with started(tmp_path, run_text(), *LOOPBACK) as cloud:
        cloud.address()  # by now that of before is gone
        url = url_of(cloud)
        again = fetched(f"{url}api/run")
        assert again["sequence"] > last  # so a browser of before is told to fetch anew
        assert [row[0] for row in again["series"]["birch"]["rounds"]] == [1]
        assert again["plans"][0]["version"] == 1
        with viewing(url, last) as viewer:
            assert viewer.until("reload")[1] == {}


def test_viewers_do_not_delay_the_end(tmp_path: Path) -> None:
    with started(tmp_path, run_text(), *LOOPBACK) as cloud:
        url = url_of(cloud)
        sequence = fetched(f"{url}api/run")["sequence"]
        viewers = [Viewer(url, sequence) for _ in range(5)]
        cloud.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        assert cloud.process.wait(PATIENCE) == 0
        assert time.monotonic() - began < 5
        for viewer in viewers:
            with pytest.raises(EOFError):
                viewer.until("nothing")
            viewer.close()
        assert announced(cloud.state, PAGE) is None
        assert "Traceback" not in cloud.log.read_text()


def test_who_connects_and_says_nothing_takes_few_files_and_nobody_elses_place(tmp_path: Path) -> None:
    with started(tmp_path, run_text(), *LOOPBACK) as cloud, ExitStack() as stack:
        address, url = cloud.address(), url_of(cloud)
        assert fetched(f"{url}api/run")["run"]["name"] == "woods"
        before = psutil.Process(cloud.process.pid).num_fds()
        for _ in range(MOST_CONNECTIONS + 200):
            stack.enter_context(socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=PATIENCE))
        run_async(arrive(address, NAMES), PATIENCE)
        assert fetched(f"{url}api/run")["run"]["name"] == "woods"
        assert psutil.Process(cloud.process.pid).num_fds() < before + MOST_CONNECTIONS + 50  # and gRPC's own


def test_beyond_loopback_with_the_clouds_keys(tmp_path: Path) -> None:
    keys_in(tmp_path / "certs", [CLOUD, OPERATOR])
    arguments = ("--certs", str(tmp_path / "certs" / "cloud"), "--page", "0.0.0.0:0")
    with started(tmp_path, run_text(), *arguments) as cloud:
        url = url_of(cloud)
        assert url.startswith("https://0.0.0.0:")
        token_file = cloud.state / "page-token"
        assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
        cloud.process.send_signal(signal.SIGTERM)
        assert cloud.process.wait(PATIENCE) == 0
        assert token_file.read_text().strip() not in cloud.log.read_text()


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])  # noqa: S104 (on this machine there may be a proxy too)
def test_plain_text_behind_a_proxy_asks_for_the_token(tmp_path: Path, host: str) -> None:
    with started(tmp_path, run_text(), "--insecure", "--page", f"{host}:0", "--page-plain") as cloud:
        url = url_of(cloud).replace("0.0.0.0", "127.0.0.1")  # noqa: S104 (dialled)
        with pytest.raises(HTTPError, match="401"):
            fetched(f"{url}api/run")
        token = (cloud.state / "page-token").read_text().strip()
        assert fetched(f"{url}api/run", authorization=f"Bearer {token}")["run"]["name"] == "woods"
        with pytest.raises(HTTPError, match="401"):
            fetched(f"{url}api/run", authorization=f"Bearer {token[:-1]}")


def test_what_zones_come_to_alone(tmp_path: Path) -> None:
    results = tmp_path / "alone"
    results.mkdir()
    (results / "summary.json").write_text('{"method": "sgeofl", "zones": {"ash": {"test": 12.5}}}')
    other = a_run("rounds=7", "sampler.kind=none", "hrg.sharpness=3.0")  # as a zone that trains alone has no use for
    (results / "run.toml").write_text(other.to_toml())
    with started(tmp_path, run_text(), *LOOPBACK, "--alone", str(results)) as cloud:
        found = fetched(f"{url_of(cloud)}api/run")
        assert [zone["alone"] for zone in found["zones"]] == [12.5, None, None, None, None]

    def refused() -> str:
        return refusal(tmp_path, run_text(), *LOOPBACK, "--alone", str(results))

    (results / "run.toml").write_text(a_run("seed=6", "data.kinds=2").to_toml())
    assert "is of another run: data.kinds is 2 there and None here; seed is 6 there and 5 here. Give" in refused()
    (results / "run.toml").unlink()
    assert "does not say of which run it is" in refused()
    (results / "summary.json").write_text('{"method": "sgfusion", "zones": {"ash": {"test": 12.5}}}')
    assert "does not say what zones come to alone" in refused()
    assert "summary.json cannot be read" in refusal(tmp_path, run_text(), *LOOPBACK, "--alone", str(tmp_path / "none"))


def test_off_and_refusals(tmp_path: Path) -> None:
    with started(tmp_path, run_text(), "--insecure", "--page", "off") as cloud:
        cloud.address()
        assert announced(cloud.state, PAGE) is None
        assert "page" not in cloud.log.read_text()
        taken = cloud.address()
        other = tmp_path / "other"
        other.mkdir()
        said = refusal(other, run_text(), "--insecure", "--page", taken)
        assert f"error: the page cannot listen on {taken} (Address already in use): give another --page" in said
    assert "error: --page 0.0.0.0:0 is reached from other machines" in refusal(
        other, run_text(), "--insecure", "--page", "0.0.0.0:0"
    )
    for idle in (["--page-plain"], ["--alone", str(tmp_path)]):
        assert "error: --page-plain and --alone are of the page, and --page off serves none: leave them out" in refusal(
            other, run_text(), "--insecure", "--page", "off", *idle
        )
    assert "error: address is 'nowhere', expected host:port" in refusal(
        other, run_text(), "--insecure", "--page", "nowhere"
    )


def test_without_starlette_it_says_what_to_install_or_to_leave_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "without"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text("import sys; sys.modules['starlette'] = None\n")
    monkeypatch.setattr(os, "environ", {**os.environ, "PYTHONPATH": str(broken)})
    monkeypatch.setattr("tests.cloud.test_process.ROOT", f"{broken}{os.pathsep}{Path(__file__).parents[3]}")
    said = refusal(tmp_path, run_text(), "--insecure")
    assert "error: the page cannot be served (" in said
    assert "in the repository type make install, or pip install '.[cloud]'; or give --page off" in said
    with started(tmp_path, run_text(), "--insecure", "--page", "off") as cloud:
        assert cloud.address()


def test_a_page_that_fails_is_logged_and_the_cloud_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    failing = "async def load(self): raise OSError('no more files')\n"
    failing = f"import cloud.page.live\n{failing}cloud.page.live.LiveRun.load = load\n"
    (broken / "sitecustomize.py").write_text(failing)
    monkeypatch.setattr("tests.cloud.test_process.ROOT", f"{broken}{os.pathsep}{Path(__file__).parents[3]}")
    with started(tmp_path, run_text(), *LOOPBACK) as cloud:
        address = cloud.address()
        cloud.wait_for(lambda: "the page has failed; the cloud goes on without it" in cloud.log.read_text())
        cloud.wait_for(lambda: announced(cloud.state, PAGE) is None)
        run_async(arrive(address, NAMES), PATIENCE)
