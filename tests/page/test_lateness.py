"""A round is on the page within a second of its end, at 115 zones: in a real browser, as benchmarks/page.py has it.

It is judged where the machine has the time that a page needs: a round counts if, around it, nobody else took the cores.
All that count are judged together, so a page that is late on a calm machine fails however often it is in time, and a
good one on a busy machine does not. Where too few count nothing is known, and the test is skipped; it fails if
`SGFUSION_CALM=1` says that nobody else is on this machine.
"""

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.page import MOST_SECONDS, ZONES, look
from benchmarks.page_browser import Seen, Sight
from benchmarks.page_edges import EVALUATED, ROUND_SECONDS
from cloud.page import server
from cloud.page.assets import STATIC
from edge import cloud_link
from tests.page.browser import chromium
from tests.page.room import PROMPT, Room, ours, taken, watched

WITHIN = 120.0
"""Seconds in which the machine may have the time that a page needs."""
ROUNDS = 4 * ZONES * EVALUATED
"""That have to count: four turns' on a calm machine. Of evaluations a fifth."""
IN_TIME = 0.95
"""Of those that count. A page with news once a second comes to four of five."""
CORES = 1.75
"""That others leave: two, but for what a machine does at rest."""
AROUND = 1.0
"""Seconds before a round's end, for what was late then holds up what follows, and after it."""


def counting(seen: Iterable[Seen], room: Room) -> list[float]:
    """How late those were that the machine had room for."""
    return [each.late for each in seen if room.within(each.ended - AROUND, each.ended + AROUND, cores=CORES)]


def timely(lateness: list[float]) -> float:
    return sum(late < MOST_SECONDS for late in lateness) / len(lateness)


def test_rounds_are_seen_within_a_second(tmp_path: Path) -> None:
    chromium()  # or it is skipped

    async def sights() -> tuple[list[float], list[float], str]:
        end = time.monotonic() + WITHIN
        found: list[Sight] = []
        async with watched(tmp_path) as room, aclosing(look(ZONES, EVALUATED * ROUND_SECONDS, turns=100)) as turns:
            async for sight in turns:
                found.append(sight)
                table = counting((each for sight in found for each in sight.table), room)
                curves = counting((each for sight in found for each in sight.curves), room)
                if (len(table) >= ROUNDS and len(curves) >= ROUNDS / EVALUATED) or time.monotonic() > end:
                    break
        said = (
            f"{len(table)} rounds and {len(curves)} evaluations count, and {room.share(CORES):.0%} of the time had room"
        )
        return table, curves, said

    table, curves, said = asyncio.run(sights())
    if len(table) < ROUNDS or len(curves) < ROUNDS / EVALUATED:
        required = os.environ.get("SGFUSION_CALM") == "1"
        (pytest.fail if required else pytest.skip)(f"others take this machine's cores or its disk: {said}")
    assert min(timely(table), timely(curves)) >= IN_TIME, f"{timely(table):.3f}, {timely(curves):.3f}: {said}"


def calm(since: float = 0.0, until: float = 100.0, left: float = 2.0) -> Room:
    """Looked at twice a second, as if nothing else ran."""
    halves = [since + number / 2 for number in range(int(2 * (until - since)))]
    return Room([(at, at + 0.5, left) for at in halves], felt=until)


def test_what_is_late_on_a_calm_machine_counts() -> None:
    seen = [Seen(10.0 + number / 10, 1.5 if number % 5 == 0 else 0.4) for number in range(100)]
    assert timely(counting(seen, calm())) == 0.8


def test_what_is_late_while_others_take_the_cores_does_not() -> None:
    """Nor where a pulse was late, nor what nobody looked at."""
    room = calm()
    room.cores[40] = (20.0, 20.5, CORES - 0.01)
    room.late.append((50.0, 50.0 + PROMPT))
    ends = [0.5, 18.9, 19.1, 21.4, 21.6, 48.9, 49.1, 51.2, 51.4, 99.5, 200.0]
    assert counting([Seen(end, end) for end in ends], room) == [18.9, 21.6, 48.9, 51.4]
    assert counting([Seen(50.0, 2.0)], calm(left=CORES - 0.01)) == []
    assert counting([Seen(50.0, 2.0)], Room()) == []
    assert room.share(CORES) == pytest.approx(1 - 0.5 / 100)


def test_what_we_take_ourselves_is_no_excuse(tmp_path: Path) -> None:
    burn = "import time\nwhile time.process_time() < 0.5: pass\nprint()\ninput()"
    before, mine = taken(), ours()
    with subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()  # it is still there
        assert 0.45 < ours() - mine < taken() - before + 0.1  # the system counts in ticks
        child.communicate(b"\n")

    async def looked() -> Room:
        async with watched(tmp_path) as room, asyncio.timeout(60):
            while len(room.cores) < 3 or room.felt < room.cores[-1][1]:
                await asyncio.sleep(0.05)
        return room

    room = asyncio.run(looked())
    assert all(a[1] == b[0] for a, b in pairwise(room.cores))
    room.late.clear()
    assert room.within(room.cores[0][0], room.cores[-1][1], cores=-1.0)
    assert not room.within(room.cores[0][0], room.cores[-1][1], cores=(os.cpu_count() or 1) + 1)


def test_all_that_is_waited_on_purpose_is_less_than_a_second() -> None:
    """Whatever the machine: an edge gathers rounds, a page gathers news, a chart is not drawn all the time."""
    (drawing,) = re.findall(r"^const EVERY = (\d+);", (STATIC / "charts.js").read_text("utf-8"), re.MULTILINE)
    assert cloud_link.APART + server.EVERY + int(drawing) / 1000 < MOST_SECONDS
