"""How an edge comes back to a cloud that is away, at growing intervals; and how it notices that it is not alone."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from edge.cloud_link import CloudLink
from edge.measures import EdgeMeasures
from sgfusion.errors import UnavailableError
from sgfusion.plan import Draws, Peer, ZonePlan, ZoneState

Waits = list[float]


class Client:
    """A cloud that takes one enrolment, and is then away."""

    def __init__(self) -> None:
        self.enrolments = 0

    async def enrol(self, *_: object, **__: object) -> tuple[int, object, float]:
        self.enrolments += 1
        if self.enrolments > 1:
            raise UnavailableError("no connection")
        return 0, None, 30.0


async def waits_of(link: Any, monkeypatch: pytest.MonkeyPatch, count: int) -> Waits:
    """The first waits between two tries, with the longest that chance allows."""
    waits: Waits = []

    async def sleep(seconds: float) -> None:
        waits.append(round(seconds, 6))
        if len(waits) == count:
            raise asyncio.CancelledError

    monkeypatch.setattr("edge.cloud_link.asyncio.sleep", sleep)
    monkeypatch.setattr("edge.cloud_link.random.random", lambda: 1.0)
    with pytest.raises(asyncio.CancelledError):
        await link.run()
    return waits


def test_it_waits_longer_each_time_also_after_a_session_that_went_well(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    zone = SimpleNamespace(zone="ash", take_run=lambda *_: None, measures=EdgeMeasures())
    link: Any = CloudLink.__new__(CloudLink)
    link._zone, link._client, link._address, link._life = zone, Client(), "127.0.0.1:1", 1

    async def session(_lease: float) -> None:
        link._taken = True  # the cloud has taken a report
        raise UnavailableError("the cloud has gone")

    link._session = session
    monkeypatch.setattr(logging.getLogger("sgfusion"), "propagate", True)
    with caplog.at_level(logging.WARNING, "sgfusion.edge"):
        waits = asyncio.run(waits_of(link, monkeypatch, 10))
    assert waits == [0.15, 0.25, 0.45, 0.85, 1.65, 3.05, 3.05, 3.05, 3.05, 3.05]
    told = [record for record in caplog.records if "goes on without it" in record.getMessage()]
    assert len(told) == 3, "the first failure, the next one, and the sixth: not each"


def test_a_second_edge_of_the_zone_is_told_of_once_and_again_if_it_comes_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By the directory, where the cloud has the zone at another address than this edge's."""
    link: Any = CloudLink.__new__(CloudLink)
    link._zone, link._address, link._another = SimpleNamespace(zone="ash"), "here:1", "here:1"
    monkeypatch.setattr(logging.getLogger("sgfusion"), "propagate", True)

    def heard(*addresses: str) -> int:
        caplog.clear()
        for address in addresses:
            directory = (Peer(0, "ash", address, ZoneState.TRAINING), Peer(1, "birch", "far:1", ZoneState.TRAINING))
            link._notice_another(ZonePlan(1, 0, "", Draws("fixed", (), 0, ()), directory))
        return len(caplog.records)

    assert heard("here:1", "here:1") == 0
    assert heard("there:1", "there:1") == 1
    assert "at there:1, and this edge is at here:1" in caplog.records[0].getMessage()
    assert heard("third:1") == 1
    assert heard("here:1") == 0  # restarted, it has the zone again
    assert heard("there:1") == 1


@pytest.mark.parametrize(("lease", "silent"), [(30.0, 10.0), (180.0, 60.0), (3600.0, 60.0)])
def test_an_edge_with_nothing_to_tell_reports_within_a_minute_however_long_its_lease(
    monkeypatch: pytest.MonkeyPatch, lease: float, silent: float
) -> None:
    """The alert on reports that do not come counts on it, as one rule cannot know each run's lease."""
    waits: Waits = []
    reports = 0

    class Timeout:
        def __init__(self, seconds: float) -> None:
            waits.append(seconds)

        async def __aenter__(self) -> None:
            raise TimeoutError

        async def __aexit__(self, *_: object) -> None: ...

    async def report(*_: object, **__: object) -> int:
        nonlocal reports
        reports += 1
        if reports == 3:
            raise UnavailableError("the cloud has gone")
        return 0

    zone = SimpleNamespace(
        zone="ash", roster=None, to_tell=asyncio.Event(), measures=EdgeMeasures(), told=lambda *_: False, report=dict
    )
    link: Any = CloudLink.__new__(CloudLink)
    link._zone, link._client, link._taken = zone, SimpleNamespace(report=report), True
    monkeypatch.setattr("edge.cloud_link.APART", 0.0)
    monkeypatch.setattr("edge.cloud_link.asyncio.timeout", Timeout)
    with pytest.raises(UnavailableError):
        asyncio.run(link._report(lease))
    assert waits == [silent, silent]
