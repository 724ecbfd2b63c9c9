"""The logs of a real cluster at DEBUG, as JSON: one request can be followed through them, and no data is in them.

The data is a table with numbers that would be recognised. On the way a device's task fails and says its labels in all
ways that Python has, callers send garbage and odd histograms, hold wrong certificates and forge lines, and a host is
given a broken file.
"""

import asyncio
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import grpc.aio
import numpy as np
import numpy.typing as npt
import pytest

from device.direction import device_direction
from sgfusion.errors import SGFusionError
from sgfusion.fusion import mean_direction
from sgfusion.proto.v1 import cloud_pb2, edge_pb2
from sgfusion.runfile import RunFile
from sgfusion.wire.channel import Keys, open_channel
from sgfusion.wire.identity import Identity, folder_of
from sgfusion.wire.log_lines import LEVELS
from simulator.zone_data import load_data
from tests.cluster.harness import Cluster, cluster_of, run_of
from tests.cluster.keys import Issuer
from tests.cluster.rpcs import BY_NAME
from tests.cluster.sentinel_task import BROKEN

Event = dict[str, Any]
Floats = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float32]

ZONES = ("ash", "birch", "cedar")
SAID = 8_123.456789
"""A histogram's mass that a caller sends: no edge should repeat it."""
TOKEN = "a-token-that-opens-the-page"  # noqa: S105 (it opens nothing)
GARBAGE = b"\x0a\xff\xffZ0FSQkFHRS1PRi1BLUNBTExFUg"
RUN = """
name = "logs"
seed = 3
rounds = 12
[task]
name = "tests.cluster.sentinel_task:make_task"
low = -50
high = 50
[data]
source = "table"
path = "{path}"
zone = "zone"
device = "device"
features = ["size", "age"]
label = "price"
[zones]
names = ["ash", "birch", "cedar"]
[histogram]
epsilon = 1.0
[hrg]
sharpness = 0.1
[quorum]
devices = 0.5
[optimiser]
rate = 0.0001
[evaluation]
every = 4
"""


def table(path: Path) -> Floats:
    """Three zones of three devices; all numbers have six digits that are theirs alone. One device's labels are odd."""
    random = np.random.default_rng(7)
    numbers, lines = [], ["zone,device,size,age,price"]
    for zone in ZONES:
        for device in range(3):
            for _ in range(10):
                row = [round(float(value), 5) for value in random.uniform(11, 49, 3)]
                if (zone, device) == ("birch", 2):
                    row[2] = round(BROKEN + row[2], 4)
                numbers += row
                lines.append(f"{zone},{zone}-{device},{row[0]},{row[1]},{row[2]}")
    path.write_text("\n".join(lines))
    return np.array(numbers)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Told"]:
    folder = tmp_path_factory.mktemp("logs")
    numbers = table(folder / "houses.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SGFUSION_LOG", "json")
        patch.setenv("SGFUSION_LOG_LEVEL", "DEBUG")
        run = run_of(text=RUN.format(path=folder / "houses.csv"))
        with cluster_of(run, folder / "cluster", start=False) as cluster:
            cluster.page = "127.0.0.1:0"
            cluster.start_edges(*ZONES)
            asyncio.run(knock(cluster))
            look_in(cluster)
            cluster.host("devices-0", zones=ZONES)
            cluster.until(lambda status: status.finished)
            models = [cluster.model(zone, kind) for zone in ZONES for kind in ("best", "last")]
            directions = directions_of(run, models)
            broken_host(cluster, folder / "houses.csv")
        yield Told(cluster, numbers, models, directions)


def directions_of(run: RunFile, models: list[Vector]) -> list[Vector]:
    """What devices answered for `θ⁰`, and would for the kept models; and each zone's mean of those that can."""
    data = load_data(run)
    found = []
    for theta in (data.theta, *models):
        for zone in data.zones:
            able = [batch for batch in zone.device_batches if not bool((batch.y > BROKEN).any())]
            answers = [device_direction(data.learner, theta, batch, run.update) for batch in able]
            found += [*answers, mean_direction(answers)]
    return found


class Told:
    """A cluster that has ended, and its numbers."""

    def __init__(self, cluster: Cluster, numbers: Floats, models: list[Vector], directions: list[Vector]) -> None:
        self.cluster, self.numbers, self.models, self.directions = cluster, numbers, models, directions

    def text(self, name: str) -> str:
        return self.cluster.log(name)

    @property
    def texts(self) -> dict[str, str]:
        return {name: self.text(name) for name, service in self.cluster.services.items() if service.process}

    @cache  # noqa: B019 (it lives as long as its module's tests)
    def events(self, name: str) -> list[Event]:
        return [json.loads(line) for line in self.text(name).splitlines()]

    def of(self, name: str, request: str) -> list[Event]:
        return [event for event in self.events(name) if event.get("request") == request]

    @property
    def histograms(self) -> Floats:
        rosters = (self.cluster.folder / "edges").glob("*/roster.json")
        rows = [row for path in rosters for row in json.loads(path.read_text())["histograms"].values()]
        return np.array(rows).ravel()


async def knock(cluster: Cluster) -> None:
    """Who should not be let in, in all ways that end in a line of a log."""
    device, stranger = Identity("device", "birch-0"), Issuer()
    edge, address = Identity("edge", "birch"), cluster.address("edge-birch") or ""
    keys = Keys.load(folder_of(cluster.folder / "certs", device))
    own = Keys.load(folder_of(cluster.folder / "certs", edge))

    async def sent(me: Identity, mine: Keys, rpc: str, *messages: bytes) -> None:
        async with open_channel(address, server=edge, me=me, keys=mine) as channel:
            with suppress(SGFusionError, grpc.aio.AioRpcError, asyncio.InvalidStateError):
                for message in messages:
                    await BY_NAME[rpc].call(channel, message, timeout=5)

    await sent(device, keys, "Attend", GARBAGE)
    await sent(device, keys, "Direction", GARBAGE)  # not a device's
    await sent(edge, own, "Direction", GARBAGE)
    theirs = stranger.keys(device)
    await sent(device, theirs, "Attend", GARBAGE)  # of another CA, and does not take ours
    await sent(device, Keys(keys.ca, theirs.certificate, theirs.key), "Attend", GARBAGE)  # is not taken
    model = cloud_pb2.Model(fingerprint="f", length=3, bins=2, metric=cloud_pb2.Metric(name="RMSE"))
    hello = edge_pb2.Hello(zone="birch", device="birch-0", contract="c", model=model, histogram=[-SAID, SAID])
    await sent(device, keys, "Attend", edge_pb2.AttendRequest(hello=hello).SerializeToString())
    hello.histogram[:] = [0.5, 0.5]
    hello.device = "birch-1\n2026-11-12T10:11:12.123Z CRITICAL sgfusion.edge: \x1b[2Jforged"
    await sent(device, keys, "Attend", edge_pb2.AttendRequest(hello=hello).SerializeToString())


def look_in(cluster: Cluster) -> None:
    """A browser with a token, rightly and wrongly."""
    end = time.monotonic() + 30
    while (url := cluster.page_url()) is None:
        assert time.monotonic() < end
        time.sleep(0.02)
    for path in (f"?token={TOKEN}", f"api/run?token={TOKEN}", f"nowhere%0a?token={TOKEN}"):
        asked = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {TOKEN}"})  # noqa: S310 (ours)
        with suppress(urllib.error.HTTPError):
            urllib.request.urlopen(asked, timeout=20).close()  # noqa: S310 (ours)


def broken_host(cluster: Cluster, path: Path) -> None:
    """One more host, whose file has a row that cannot be read."""
    path.write_text(path.read_text() + "\nash,ash-9,31.337001,31.337002,31.337003,31.337004")
    cluster.host("broken", zones=["ash"])
    process = cluster.services["broken"].process
    assert process is not None
    assert process.wait(60) == 1
    cluster.services["broken"].wanted = False


def test_every_line_is_json_with_time_level_tier_and_words(told: Told) -> None:
    assert set(told.texts) == {"cloud", "edge-ash", "edge-birch", "edge-cedar", "devices-0", "broken"}
    for name in told.texts:
        assert told.events(name), name
        for event in told.events(name):
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event["time"])
            assert event["level"] in LEVELS, event
            assert event["tier"] in name or name == "broken"
            assert event["message"]
            assert name.removeprefix("edge-") == event["zone"] if event["tier"] == "edge" else True
    assert any(event["level"] == "DEBUG" for event in told.events("edge-ash"))


def test_a_request_is_followed_from_edge_to_peer_to_device(told: Told) -> None:
    """Any round that is the first to ask its question: two zones with the same weights, as in round 1, share one."""
    asked = [
        (event["request"], zone)
        for zone in ZONES
        for event in told.events(f"edge-{zone}")
        if re.fullmatch(rf"(?!{zone})\w+\.\d+", event.get("request", "")) and "asks its devices" in event["message"]
    ]
    assert asked, "nobody drew anybody"
    request, peer = asked[-1]
    zone, round = request.split(".")
    assert zone != peer
    own = told.of(f"edge-{zone}", request)
    said = [re.sub(r"\d+\.\d ms|direction-\w+", "…", event["message"]) for event in own]
    assert said[0] == f"zone {zone}: round {round} begins"
    assert f"zone {zone}: question to zone {peer} begins" in said
    assert f"zone {zone}: question to zone {peer} is done after …" in said
    assert f"zone {zone}: asks its devices …" in said
    assert said[-1] == f"zone {zone}: round {round} is done after …"
    assert {event["round"] for event in own if "question to zone" in event["message"]} == {int(round)}
    theirs = [re.sub(r"\d+\.\d ms|direction-\w+", "…", event["message"]) for event in told.of(f"edge-{peer}", request)]
    assert theirs[0] == f"zone {peer}: answer to round {round} of zone {zone} begins"
    assert theirs[-1] == f"zone {peer}: answer to round {round} of zone {zone} is done after …"
    assert f"zone {peer}: asks its devices …" in theirs
    assert any(re.fullmatch(rf"zone {peer}: [23] devices have answered … after …", words) for words in theirs)
    of_devices = [event for event in told.of("devices-0", request) if event["zone"] == peer]
    devices = {event["device"] for event in of_devices}
    assert devices == {f"{peer}-{number}" for number in range(3)}
    ended = [event for event in of_devices if "is done after" in event["message"]]
    assert {event["device"] for event in ended} == devices
    assert {event["zone"] for event in told.of("devices-0", request)} >= {zone, peer}, "its own devices' too"


def test_evaluations_and_initial_weights_are_requests_too(told: Told) -> None:
    for request in ("cedar.initial", "cedar.8.evaluation"):
        assert told.of("edge-cedar", request)
        assert any(event["zone"] == "cedar" and event["device"] for event in told.of("devices-0", request))


def test_failures_are_told_with_whom_they_concern_and_nobody_forges_a_line(told: Told) -> None:
    failed = [event for event in told.events("devices-0") if "a question failed" in event["message"]]
    assert failed
    assert all(event["device"] == "birch-2" and event["exception"].endswith("\nValueError") for event in failed)
    assert all(event["exception"].startswith("OSError\nwhich led to:") for event in failed)
    warned = [event["message"] for event in told.events("devices-0") if event["logger"] == "py.warnings"]
    assert any(re.search(r"sentinel_task\.py:\d+: UserWarning$", message) for message in warned)
    cannot = [event for event in told.events("edge-birch") if "cannot answer" in event["message"]]
    assert {event["device"] for event in cannot} == {"birch-2"}
    assert all(event["request"] for event in cannot)
    refused = [event["message"] for event in told.events("edge-birch") if event["message"].startswith("refused ")]
    for words in (
        "are not its message",
        "device birch-0 may not call /sgfusion.v1.PeerService/Direction",
        "HistogramError: device 'birch-0': bin 0 holds a negative number, mass is",
        "may not speak for device birch-1 2026",
    ):
        assert any(words in message for message in refused), (words, refused)
    assert not any(event["level"] == "CRITICAL" for event in told.events("edge-birch"))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", told.text("edge-birch"))
    (end,) = [event for event in told.events("broken") if event["level"] == "CRITICAL"]
    assert end["message"].endswith("houses.csv' cannot be read: …")


NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[+-]?\d+)?(?![\w.])")


def numbers_in(text: str) -> list[float]:
    """Those that say something: with five digits or more that count; times and durations are nobody's secret."""
    timeless = re.sub(r'^\{"time": "[^"]*", |after \d+\.\d ms', "", text, flags=re.MULTILINE)
    found = NUMBER.findall(timeless)
    return [float(n) for n in found if len(re.sub(r"^[-0.]+|e.*|\.", "", n)) >= 5]


DECIMAL = re.compile(r"(?<![\w.])-?(?:\d+\.\d+(?:e[+-]\d+)?|\d+\.?e[+-]\d+|\d+\.(?=\s*[],]|\s+-?\d+\.))(?!\w|\.\w)")
HONEST = re.compile(r"(?<![\w.])\d+\.\d+ m?s\b|\(quorum\.devices = 0\.\d+\)|\bdrifted by \d[\w.+-]*")
"""Durations, the run file's quorum, and by how much a zone's released histogram has moved."""


def decimals_in(text: str) -> list[str]:
    """Those of which nothing says that they are no data: rounded to few digits, a secret is near to many numbers."""
    return DECIMAL.findall(HONEST.sub("", text.replace("\\n", " ")))


def near(found: list[float], secret: Floats) -> list[float]:
    """Which of the numbers found are one of the secret ones, but for rounding; also halved or scaled nothing is."""
    return [n for n in found if np.isclose(secret, n, rtol=2e-5, atol=0).any()]


def test_the_grep_finds_what_it_looks_for(told: Told) -> None:
    """Else the next tests prove nothing: each kind of secret, as a careless line would have it."""
    vectors = [vector.astype(np.float64) for vector in (*told.models, *told.directions)]
    assert len(told.directions) == (1 + len(told.models)) * (8 + len(ZONES))
    for secret in (told.numbers, told.histograms, *vectors):
        rich = next(float(value) for value in secret if len(f"{value:.7g}".lstrip("-0.").replace(".", "")) >= 6)
        line = f'{{"time": "2026-11-12T10:11:12.123Z", "message": "odd: [{rich:.7g}, 1.0]"}}'
        assert near(numbers_in(line), secret) == [pytest.approx(rich, rel=1e-5)]


WEIGHTS = np.array([0.12345, -1.98765, 3.0, 1.25e-7])


@pytest.mark.parametrize(
    "careless",
    [
        "weights " + ", ".join("%.3f" % weight for weight in WEIGHTS),  # noqa: UP031 (a form to be found)
        "the first weight is %.3f." % WEIGHTS[0],  # noqa: UP031
        f"gradient {np.round(WEIGHTS, 2).tolist()}",
        f"gradient {np.round(WEIGHTS, 2)}",
        f"gradient {WEIGHTS[:3].astype(np.float32)!r}",
        f"gradient {list(np.round(WEIGHTS, 1))}",
        f"two rows {np.round(np.array([WEIGHTS, WEIGHTS]), 2)}",
        f"tiny {WEIGHTS[3]}",
        f"counts {np.array([1.0, 2.0, 3.0])}",
        "loss=0.5",
    ],
)
def test_the_grep_finds_numbers_of_few_digits(careless: str) -> None:
    line = json.dumps({"time": "2026-11-12T10:11:12.123Z", "message": careless})
    assert decimals_in(line)


@pytest.mark.parametrize(
    "honest",
    [
        "zone ash: round 12 is done after 12.3 ms",
        "no answer within 0.2 s: time is up",
        "run logs: serves at 127.0.0.1:40001, lease 1.5 s",
        "edge at [::1]:7400; SGFusion 0.1.0, gRPC 1.62.1",
        "2 devices are needed (quorum.devices = 0.5), lower it",
        "zone ash drifted by 0.1234, zone elm drifted by 1.2e-05",
        "merges[12] = 3. Then round 13. 5 devices, request ash.12 of direction-1e5f",
    ],
)
def test_the_grep_lets_honest_numbers_be(honest: str) -> None:
    assert decimals_in(json.dumps({"time": "2026-11-12T10:11:12.123Z", "message": honest})) == []


def test_no_decimal_is_in_any_log_of_which_nothing_says_what_it_is(told: Told) -> None:
    for name, text in told.texts.items():
        found = [line for line in text.splitlines() if decimals_in(line)]
        assert not found, (name, found[:3])


def test_no_label_no_feature_and_no_histogram_is_in_any_log(told: Told) -> None:
    for name, text in told.texts.items():
        found = numbers_in(text)
        assert near(found, told.numbers) == [], name
        assert near(found, told.histograms) == [], name
        for secret in (str(SAID), TOKEN, "31.337", "Z0FSQkFHRS1PRi1BLUNBTExFUg", "odd labels"):
            assert secret not in text, (name, secret)


def test_no_weight_and_no_gradient_is_in_any_log(told: Told) -> None:
    for name, text in told.texts.items():
        found = numbers_in(text)
        for vector in (*told.models, *told.directions):
            assert near(found, vector.astype(np.float64)) == [], name
            raw = vector.astype("<f4").tobytes()
            for start in range(0, len(raw) - 7, 4):
                piece = raw[start : start + 8]
                assert piece.hex() not in text, name
                assert repr(piece)[2:-1] not in text, name
        assert "array(" not in text
        assert "tensor(" not in text


def test_no_key_is_in_any_log(told: Told) -> None:
    """Of every private key, no forty characters in a row."""
    keys = list((told.cluster.folder / "certs").rglob("*.key"))
    assert len(keys) > 10
    for path in keys:
        body = "".join(line for line in path.read_text().splitlines() if not line.startswith("-"))
        assert len(body) > 100
        runs = {body[start : start + 40] for start in range(len(body) - 39)}
        for name, text in told.texts.items():
            flat = text.replace("\\n", "")
            assert "PRIVATE KEY" not in text
            assert not any(run in flat for run in runs), (path, name)
