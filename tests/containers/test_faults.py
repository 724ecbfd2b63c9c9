"""Faults while a cluster in containers trains: the run ends, with the same bytes, and no acknowledged round is lost."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.containers import proxy
from tests.containers.faults import FAULTS, Hit, behind_a_proxy
from tests.containers.project import Project, project, tag_of
from tests.containers.runs import ZONES, assert_same, rounds_of, run_text, simulated

ROUNDS = 80
"""For faults to fall into: twenty seconds, if each message to a device and each one back takes a tenth of a second."""
MANY_ROUNDS = 250
"""Where they go on while a fault lasts: a minute."""
FEW_ROUNDS = 40
"""For a fault that is there from the first one to the last."""
EDGE, PEER = "birch", "ash"
"""The zone that others draw least, and the one that they draw most."""
FIELD, BACKBONE = "field", "backbone"
References = Callable[[int], Path]
Case = tuple[str, tuple[str, ...]]


TARGETS = {
    "cloud": Hit("cloud", [BACKBONE], zones=[]),
    "edge": Hit(f"edge-{EDGE}", [BACKBONE, FIELD], zones=[EDGE]),
    # Its devices reach it, and other edges do not, who wait for it.
    "peer edge": Hit(f"edge-{PEER}", [BACKBONE], zones=[zone for zone in ZONES if zone != PEER]),
    "device host": Hit(f"devices-{ZONES[0]}", [FIELD], zones=ZONES),
}
PASSING = tuple(fault for fault in FAULTS if fault != "delayed")
CASES: list[Case] = [(target, faults) for faults in (PASSING, ("delayed",)) for target in TARGETS]
"""Faults that fall on one cluster one after the other: to start one takes longer than most of them do."""
FURTHER = 5
"""Rounds from the end of a fault to the next one."""
AGAIN = {"cloud": "serves at 0.0.0.0:7070, lease", "edge": "goes on after round", "devices": "zones: attending"}
"""What a service says when it is up, the edge when it has found its checkpoint."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> References:
    """The simulator's results by number of rounds."""
    known: dict[int, Path] = {}

    def of(rounds: int) -> Path:
        if rounds not in known:
            known[rounds] = simulated(run_text(rounds), tmp_path_factory.mktemp("simulated"))
        return known[rounds]

    return of


def spare(services: dict[str, Any]) -> None:
    """Leave out what costs time and is tested elsewhere: to wait for others' health, to train zones alone."""
    for service in services.values():
        service["depends_on"] = {k: v for k, v in service.get("depends_on", {}).items() if k == "certs"}
        service["healthcheck"] = {"disable": True}
    services["console"]["command"] += ["--no-alone"]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {', '.join(case[1])}")
def test_faults_while_zones_train_change_nothing(
    case: Case, engine: docker.DockerClient, images: dict[str, str], undisturbed: References, tmp_path: Path
) -> None:
    hit, faults = TARGETS[case[0]], case[1]
    passing = faults == PASSING
    rounds = MANY_ROUNDS if not hit.zones else ROUNDS if passing else FEW_ROUNDS
    expected = undisturbed(rounds)

    def change(document: dict[str, Any]) -> None:
        spare(document["services"])
        behind_a_proxy(document["services"], TARGETS["device host"] if passing else hit)

    with project(engine, tmp_path, run_text(rounds), tag_of(images), hosts=1, change=change) as cluster:
        cluster.compose("up", "--detach")
        cluster.watch()
        began = cluster.until_round(3)
        reached = {zone["zone"]: zone["round"] for zone in began["zones"]}
        left = rounds - max(reached[zone] for zone in hit.zones or ZONES)
        assert left > 0, f"all was over too soon: {reached}"
        since = time.monotonic()
        begun = {}
        for fault in faults:
            begun[fault] = cluster.rounds()
            over = [zone for zone in hit.zones or ZONES if begun[fault][zone] >= rounds]
            assert not over, f"{fault}: it would fall on zones whose rounds are over, {over}: {begun}"
            FAULTS[fault](cluster, hit)
            if fault != faults[-1]:
                until_further(cluster, hit)
        results = cluster.finish()
        took = time.monotonic() - since
        try:
            assert_same(results, expected)
        except AssertionError as error:
            error.add_note(f"faults began after rounds {begun}")
            raise
        assert_no_round_lost(cluster.statuses(), results, rounds)
        if "killed" in faults:
            assert_went_on(cluster, hit)
        if passing or hit.zones:  # half of what it takes, for not every round asks every peer
            assert took > left * proxy.DELAY, "rounds went faster than messages"


def until_further(cluster: Project, hit: Hit) -> None:
    """Until the cloud says that the zones which could not go on do so: all of them, if it was the cloud itself."""
    waited, before = hit.zones or ZONES, cluster.rounds()

    def further(status: dict[str, Any]) -> bool:
        reached = {zone["zone"]: zone["round"] for zone in status["zones"]}
        return status["finished"] or all(reached[zone] >= before[zone] + FURTHER for zone in waited)

    cluster.until(further)


def assert_no_round_lost(statuses: list[dict[str, Any]], results: Path, rounds: int) -> None:
    """What the cloud has once told stays; and all rounds are there in the end, with all who were drawn."""
    reached: Counter[str] = Counter()
    for status in statuses:
        assert status["plan"] <= 1, "a new plan: a zone was given up"
        for zone in status["zones"]:
            assert zone["round"] >= reached[zone["zone"]], json.dumps(zone)
            reached[zone["zone"]] = zone["round"]
    told = rounds_of(results)
    for zone in range(len(ZONES)):
        assert [line["round"] for line in told if line["zone"] == zone] == list(range(1, rounds + 1))
    assert not any(line["left_out"] for line in told)


def assert_went_on(cluster: Project, hit: Hit) -> None:
    said = cluster.container(hit.service).logs().decode()
    kind = hit.service.partition("-")[0]
    assert said.count(AGAIN[kind]) == (1 if kind == "edge" else 2), said


def test_targets_are_drawn_as_they_should(undisturbed: References) -> None:
    drawn = Counter(ZONES[number] for line in rounds_of(undisturbed(ROUNDS)) for number in line["drawn"])
    assert drawn.most_common(1)[0][0] == PEER
    assert drawn.most_common()[-1][0] == EDGE
    # Whoever does not wait for the peer in one round does so in a next one, long before a fault has passed.
    for zone in set(ZONES) - {PEER}:
        lines = [line for line in rounds_of(undisturbed(ROUNDS)) if line["zone"] == ZONES.index(zone)]
        assert sum(ZONES.index(PEER) in line["drawn"] for line in lines) > ROUNDS / 2


def test_the_proxy_delays_and_does_not_hold_up() -> None:
    async def measure() -> tuple[float, float]:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while piece := await reader.read(1 << 16):
                writer.write(piece)
            writer.close()

        clock = asyncio.get_running_loop().time
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        leads = await proxy.serve(0, *server.sockets[0].getsockname(), listen="127.0.0.1")
        reader, writer = await asyncio.open_connection(*leads.sockets[0].getsockname())
        began = clock()
        writer.write(b"1")
        assert await reader.readexactly(1) == b"1"
        once = clock() - began
        sent = b"".join(number.to_bytes(4, "big") for number in range(1 << 20))
        began = clock()
        writer.write(sent)
        writer.write_eof()
        assert await reader.read() == sent
        much = clock() - began
        writer.close()
        for each in (leads, server):
            each.close()
            await each.wait_closed()
        return once, much

    once, much = asyncio.run(measure())
    assert once >= 2 * proxy.DELAY
    assert much < 20 * proxy.DELAY  # 64 pieces: one after the other would take 64 times as long
