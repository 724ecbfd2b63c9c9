"""`/metrics` over real sockets: who may read it, what is refused, and that nobody can hold it up."""

import asyncio
import logging
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sgfusion.errors import IdentityError, InputError, UnavailableError
from sgfusion.wire import disk, metrics_server
from sgfusion.wire.disk import Space, space_of
from sgfusion.wire.endpoint import Endpoint, endpoint_of
from sgfusion.wire.identity import MAY_READ_METRICS, ROLES, Identity, folder_of
from sgfusion.wire.metrics import COMMON, Described, Metrics
from sgfusion.wire.metrics_server import MOST_BYTES, MOST_OPEN, MetricsServer
from sgfusion.wire.service import METRICS, announced
from sgfusion.wire.status import Refusals
from tests.cluster.keys import keys_in, run_async

DURATIONS = Described("sgfusion_test_phase_duration_seconds", "histogram", ("phase",), "Phases.")
NAMED = {"edge": "ash", "device": "d0"}
EVERYBODY = tuple(Identity(role, NAMED.get(role, "")) for role in ROLES)
ASK = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9464\r\n\r\n"


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certs")
    keys_in(folder, EVERYBODY)
    return folder


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take no address for one of this machine alone, so that TLS is spoken though tests stay on it."""
    for module in ("sgfusion.wire.endpoint", "sgfusion.wire.metrics_server"):
        monkeypatch.setattr(f"{module}.is_loopback", lambda _address: False)
    return iter(())


def made(state: Path, refusals: Refusals | None = None) -> Metrics:
    return Metrics("edge", durations=DURATIONS, refusals=refusals or Refusals(), keys=(), state=state)


@asynccontextmanager
async def shown(endpoint: Endpoint, metrics: Metrics, state: Path) -> AsyncIterator[tuple[str, int]]:
    """Host and port of an endpoint that is up."""
    server = MetricsServer(endpoint, metrics, state)
    await server.start()
    try:
        host, _, port = server.url.partition("//")[2].partition("/")[0].rpartition(":")
        yield host.strip("[]"), int(port)
    finally:
        await server.stop()


async def exchange(place: tuple[str, int], request: bytes = ASK, tls: ssl.SSLContext | None = None) -> tuple[int, str]:
    """The status and the content of one answer."""
    reader, writer = await asyncio.open_connection(
        *place, ssl=tls, server_hostname="ash.edge.sgfusion" if tls else None
    )
    try:
        writer.write(request)
        answer = (await reader.read()).decode()
    finally:
        writer.close()
    head, _, content = answer.partition("\r\n\r\n")
    return int(head.split(" ", 2)[1]), content


def client(certs: Path, who: Identity) -> ssl.SSLContext:
    folder = folder_of(certs, who)
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    return context


# What is shown


def test_a_scrape_is_of_now_and_in_the_text_format(tmp_path: Path) -> None:
    refusals = Refusals()
    metrics = made(tmp_path, refusals)

    async def scrape() -> str:
        async with shown(Endpoint("127.0.0.1:0"), metrics, tmp_path) as place:
            assert (await exchange(place))[0] == 200
            refusals.count("IdentityError")
            metrics.retried("peer", "ash")
            metrics.took("own", 0.3)
            return (await exchange(place))[1]

    families = {family.name: family for family in text_string_to_metric_families(run_async(scrape()))}
    samples = {
        (sample.name, *sample.labels.values()): sample.value for each in families.values() for sample in each.samples
    }
    assert samples["sgfusion_refusals_total", "IdentityError"] == 1
    assert samples["sgfusion_refusals_total", "ProtocolError"] == 0  # there before the first: Prometheus sees the rise
    assert samples["sgfusion_retries_total", "peer", "ash"] == 1
    assert samples["sgfusion_test_phase_duration_seconds_sum", "own"] == 0.3
    assert samples["sgfusion_test_phase_duration_seconds_bucket", "0.25", "own"] == 0
    assert samples["sgfusion_test_phase_duration_seconds_bucket", "0.5", "own"] == 1
    assert samples["sgfusion_state_free_bytes",] > 0
    assert samples["sgfusion_build_info", "edge", version("sgfusion")] == 1
    assert not [name for name in families if name.endswith("_created")]
    assert {each.name.removesuffix("_total") for each in COMMON} <= set(families)


def test_the_address_is_announced_and_taken_back(tmp_path: Path) -> None:
    async def look() -> tuple[str | None, int]:
        async with shown(Endpoint("127.0.0.1:0"), made(tmp_path), tmp_path) as (_, port):
            return announced(tmp_path, METRICS), port

    said, port = run_async(look())
    assert said == f"http://127.0.0.1:{port}/metrics"
    assert announced(tmp_path, METRICS) is None


def test_a_file_of_its_own_says_where(tmp_path: Path) -> None:
    file = tmp_path / "hosts" / "one"

    async def look() -> str:
        async with shown(Endpoint("127.0.0.1:0", file=file), made(tmp_path), tmp_path):
            return file.read_text("utf-8")

    assert run_async(look()).startswith("http://127.0.0.1:")
    assert not (tmp_path / METRICS).exists()


# Who may read it


@pytest.mark.usefixtures("everywhere")
@pytest.mark.parametrize("who", EVERYBODY, ids=lambda who: who.role)
def test_beyond_loopback_operators_and_monitors_alone(who: Identity, certs: Path, tmp_path: Path) -> None:
    refusals = Refusals()
    endpoint = Endpoint("127.0.0.1:0", folder_of(certs, Identity("edge", "ash")))

    async def scrape() -> tuple[int, str]:
        async with shown(endpoint, made(tmp_path, refusals), tmp_path) as place:
            assert (announced(tmp_path, METRICS) or "").startswith("https://")
            return await exchange(place, tls=client(certs, who))

    status, content = run_async(scrape())
    if who.role in MAY_READ_METRICS:
        assert status == 200
        assert "sgfusion_build_info" in content
        assert not refusals.counts()
    else:
        assert (status, content) == (403, f"{who} may not read metrics: monitor or operator may\n")
        assert refusals.counts() == {"IdentityError": 1}
    assert {each.role for each in EVERYBODY if each.role in MAY_READ_METRICS} == {"operator", "monitor"}


@pytest.mark.usefixtures("everywhere")
def test_who_is_refused_again_and_again_is_told_of_once_a_minute(
    certs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logging.getLogger("sgfusion"), "propagate", True)
    refusals, clock = Refusals(), [1000.0]
    monkeypatch.setattr(metrics_server, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    endpoint = Endpoint("127.0.0.1:0", folder_of(certs, Identity("edge", "ash")))

    async def scrape() -> None:
        async with shown(endpoint, made(tmp_path, refusals), tmp_path) as place:
            for who in ("device", "device", "device", "cloud"):
                identity = next(each for each in EVERYBODY if each.role == who)
                assert (await exchange(place, tls=client(certs, identity)))[0] == 403
            clock[0] += 61
            assert (await exchange(place, tls=client(certs, EVERYBODY[ROLES.index("device")])))[0] == 403

    with caplog.at_level(logging.WARNING, "sgfusion.metrics"):
        run_async(scrape())
    told = [record.getMessage().partition(" may not")[0] for record in caplog.records if "refused" in record.message]
    assert told == ["refused /metrics: device d0", "refused /metrics: cloud", "refused /metrics: device d0"]
    assert caplog.records[-1].getMessage().endswith("; 2 more of these since the last line")
    assert refusals.counts() == {"IdentityError": 5}, "all are counted"


@pytest.mark.usefixtures("everywhere")
def test_without_a_certificate_or_with_one_of_another_ca_there_is_no_answer(certs: Path, tmp_path: Path) -> None:
    keys_in(tmp_path / "others", [Identity("monitor")])
    anonymous = ssl.create_default_context(cafile=str(certs / "ca.crt"))
    stranger = client(tmp_path / "others", Identity("monitor"))
    stranger.load_verify_locations(certs / "ca.crt")
    endpoint = Endpoint("127.0.0.1:0", folder_of(certs, Identity("edge", "ash")))

    async def scrape() -> None:
        async with shown(endpoint, made(tmp_path), tmp_path) as place:
            for context in (anonymous, stranger):
                with pytest.raises((ssl.SSLError, ConnectionError, IndexError)):  # TLS 1.3 tells the client afterwards
                    await exchange(place, tls=context)
            with pytest.raises((ConnectionError, IndexError)):
                await exchange(place)  # plain text
            assert (await exchange(place, tls=client(certs, Identity("monitor"))))[0] == 200

    run_async(scrape())


@pytest.mark.parametrize("listen", ["0.0.0.0:9464", "[::]:9464", "192.0.2.1:9464", "edge.example:9464"])
def test_beyond_loopback_without_keys_is_refused_unless_plain_text_is_asked_for(listen: str, tmp_path: Path) -> None:
    with pytest.raises(IdentityError, match=r"^--metrics .*:9464: beyond loopback .* --metrics-plain"):
        Endpoint(listen)
    assert not Endpoint(listen, plain=True).secure
    assert Endpoint(listen, tmp_path).secure
    assert not Endpoint(listen, tmp_path, plain=True).secure


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "localhost:1", "[::1]:0", "127.9.9.9:1"])
def test_loopback_is_plain_with_keys_or_without(listen: str, tmp_path: Path) -> None:
    assert not Endpoint(listen).secure
    assert not Endpoint(listen, tmp_path).secure


@pytest.mark.parametrize("listen", ["9464", ":9464", "127.0.0.1", "::1:9464", "127.0.0.1:99999"])
def test_an_address_that_is_none_is_named(listen: str) -> None:
    with pytest.raises(InputError, match="address is"):
        Endpoint(listen)


def test_options_of_metrics_that_nobody_shows_are_a_mistake(tmp_path: Path) -> None:
    assert endpoint_of(None, tmp_path, plain=False) is None
    for plain, file in ((True, None), (False, tmp_path)):
        with pytest.raises(InputError, match="say where to show them"):
            endpoint_of(None, None, plain=plain, file=file)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:9464", 200),
        ("LocalHost:1", 200),
        ("[::1]:9464", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example:9464", 403),
        ("192.0.2.1", 403),
        ("", 403),
        ("127.0.0.1\r\nHost: evil.example", 403),
    ],
)
def test_on_loopback_the_host_must_be_this_machine(host: str, status: int, tmp_path: Path) -> None:
    async def scrape() -> int:
        async with shown(Endpoint("127.0.0.1:0"), made(tmp_path), tmp_path) as place:
            return (await exchange(place, f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()))[0]

    assert run_async(scrape()) == status


# What is refused, and who waits


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /metrics/../state HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /metrics?name[]=up HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        (b"GET /metrics HTTP/1.1\r\n\r\n", 403),
        (b"GET /metrics HTTP/2\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /metrics\r\n\r\n", 400),
        (b"GET  /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\n folded: yes\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\xff\xfe\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * (2 * MOST_BYTES) + b"\r\n\r\n", 431),
    ],
)
def test_only_a_small_get_of_the_one_page_is_answered(request_: bytes, status: int, tmp_path: Path) -> None:
    async def ask() -> tuple[int, int]:
        async with shown(Endpoint("127.0.0.1:0"), made(tmp_path), tmp_path) as place:
            return (await exchange(place, request_))[0], (await exchange(place))[0]

    assert run_async(ask()) == (status, 200)


def test_who_says_nothing_is_hung_up_on_and_others_are_answered_meanwhile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(metrics_server, "REQUEST_WITHIN", 0.5)

    async def ask() -> tuple[int, bytes]:
        async with shown(Endpoint("127.0.0.1:0"), made(tmp_path), tmp_path) as place:
            reader, writer = await asyncio.open_connection(*place)
            writer.write(b"GET /metrics HT")
            status = (await exchange(place))[0]
            rest = await reader.read()
            writer.close()
            return status, rest

    assert run_async(ask()) == (200, b"")


def test_connections_are_limited_and_free_again_when_they_end(tmp_path: Path) -> None:
    async def ask() -> int:
        async with shown(Endpoint("127.0.0.1:0"), made(tmp_path), tmp_path) as place:
            silent = [await asyncio.open_connection(*place) for _ in range(MOST_OPEN)]
            with pytest.raises((ConnectionError, IndexError)):
                await exchange(place)
            for _, each in silent:
                each.close()
            while True:  # they are seen to be gone in a moment
                try:
                    return (await exchange(place))[0]
                except (ConnectionError, IndexError):
                    await asyncio.sleep(0.01)

    assert run_async(ask()) == 200


def test_it_stops_at_once_whoever_is_connected(tmp_path: Path) -> None:
    async def stop() -> float:
        server = MetricsServer(Endpoint("127.0.0.1:0"), made(tmp_path), tmp_path)
        await server.start()
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET")
        await asyncio.sleep(0)
        began = time.monotonic()
        await server.stop()
        took = time.monotonic() - began
        assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        writer.close()
        return took

    assert run_async(stop()) < 2


def test_a_scrape_does_not_hold_up_the_event_loop(tmp_path: Path) -> None:
    class Slow(Metrics):
        def text(self) -> bytes:
            time.sleep(0.5)
            return super().text()

    metrics = Slow("edge", durations=DURATIONS, refusals=None, keys=(), state=tmp_path)

    async def ask() -> tuple[int, float]:
        async with shown(Endpoint("127.0.0.1:0"), metrics, tmp_path) as place:
            asked = asyncio.create_task(exchange(place))
            longest, last = 0.0, time.monotonic()
            while not asked.done():
                await asyncio.sleep(0.005)
                longest, last = max(longest, time.monotonic() - last), time.monotonic()
            return asked.result()[0], longest

    status, longest = run_async(ask())
    assert status == 200
    assert longest < 0.4


def test_a_disk_that_hangs_holds_up_no_scrape_and_shows_what_was_last_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "WITHIN", 0.05)
    free, answered = threading.Event(), [Space(7, 10), Space(5, 10), Space(3, 10)]
    metrics, looks = made(tmp_path), []

    def hangs(_folder: Path) -> Space:
        looks.append(threading.current_thread())
        assert free.wait(60)
        return answered.pop(0)

    monkeypatch.setattr(disk, "space_of", hangs)

    async def scrapes() -> list[str]:
        async with shown(Endpoint("127.0.0.1:0"), metrics, tmp_path) as place:
            unknown = [(await exchange(place))[1] for _ in range(3)]
            assert len(looks) == 1, "not a thread a scrape"
            free.set()
            looks[0].join()
            monkeypatch.setattr(disk, "WITHIN", 60.0)  # it answers now, however busy the machine is
            known = [(await exchange(place))[1]]
            monkeypatch.setattr(disk, "WITHIN", 0.05)
            free.clear()
            return [*unknown, *known, (await exchange(place))[1]]

    try:
        *unknown, known, stale = run_async(scrapes())
        assert looks[-1].is_alive(), "it hangs again, and nobody waits for it"
        assert looks[-1].daemon
    finally:
        free.set()
        looks[-1].join()
    assert not [text for text in unknown if "\nsgfusion_state_free_bytes " in text]
    assert all("sgfusion_build_info{" in text for text in unknown)
    assert "\nsgfusion_state_free_bytes 5.0\n" in known
    assert "\nsgfusion_state_free_bytes 5.0\n" in stale


def test_a_disk_that_cannot_be_asked_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_path: Path) -> None:
        raise OSError(5, "Input/output error")

    assert space_of(tmp_path / "not" / "there") is not None
    monkeypatch.setattr("sgfusion.wire.disk.os.statvfs", broken)
    assert space_of(tmp_path) is None
    assert "\nsgfusion_state_free_bytes " not in made(tmp_path).text().decode()


def test_what_fails_inside_is_logged_and_the_next_one_is_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Metrics):
        broken = True

        def look(self) -> None:
            if self.broken:
                raise ZeroDivisionError
            super().look()

    metrics = Broken("edge", durations=DURATIONS, refusals=None, keys=(), state=tmp_path)

    async def ask() -> int:
        async with shown(Endpoint("127.0.0.1:0"), metrics, tmp_path) as place:
            with pytest.raises((ConnectionError, IndexError)):
                await exchange(place)
            metrics.broken = False
            return (await exchange(place))[0]

    assert run_async(ask()) == 200
    assert "metrics could not be shown" in caplog.text


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    async def twice() -> None:
        async with shown(Endpoint("127.0.0.1:0"), made(tmp_path), tmp_path) as (_, port):
            second = MetricsServer(Endpoint(f"127.0.0.1:{port}"), made(tmp_path), tmp_path / "second")
            with pytest.raises(UnavailableError, match=rf"--metrics 127.0.0.1:{port}: cannot listen there"):
                await second.start()

    run_async(twice())
