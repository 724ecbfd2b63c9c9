"""What the page costs the cloud, and how soon it shows a round: 115 zones end a round in every second.

Three real clouds are up at once and take turns: without a page, with one that nobody looks at, and with viewers. This
process plays all edges, with links that gather and report as a real edge's do, and all viewers. Cost is the CPU time of
the cloud's process over a turn, as a share of a core, beside that of the same turn without a page; lateness is from a
round's end, when it is on the edge's disk, to the message, at one of the viewers, that has the round. Then a real
Chromium looks at a cloud of its own: from the round's end until it is in the table, and its evaluation on the curves.
The exit code is 1 if a page costs 5 % of a core or more, if a round came to a viewer after a second, or if more than
one in a hundred was seen after a second.
"""

import argparse
import asyncio
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
from rich.console import Console
from rich.table import Column, Table

from benchmarks import add_limits
from benchmarks.page_browser import Looker, Sight
from benchmarks.page_edges import EVALUATED, ROUND_SECONDS, Edges, run_text
from sgfusion.errors import UnavailableError
from sgfusion.wire.service import PAGE, announced

ZONES = 115
VIEWERS = 5
SECONDS = 6.0
"""Of a turn: short, so that the three of a turn meet the same machine."""
TURNS = 9
MOST_SHARE = 0.05
"""Of a core."""
MOST_SECONDS = 1.0
STARTED_WITHIN = 120.0
LOOKS = 6
"""Turns of the browser's, of five rounds each: then every zone is evaluated once in each."""
OFF, IDLE, WATCHED = "no page", "page, nobody looks", "page, viewers"


@dataclass
class Side:
    """One cloud and what was measured of it."""

    name: str
    viewers: int = 0
    shares: list[float] = field(default_factory=list)
    """CPU seconds a second, by turn."""
    lateness: list[float] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Of a core."""
        return statistics.median(self.shares)

    def more_than(self, other: "Side") -> tuple[float, float]:
        """By how much of a core, and by what factor, in the median of the turns' own. A turn may be too short for the
        system to have counted any CPU of the other: then the factor is infinite.
        """
        pairs = list(zip(self.shares, other.shares, strict=True))
        factors = (a / b if b else math.inf for a, b in pairs)
        return statistics.median(a - b for a, b in pairs), statistics.median(factors)


class Cloud:
    """A cloud's process."""

    def __init__(self, folder: Path, text: str, *arguments: str) -> None:
        folder.mkdir(parents=True)
        (folder / "run.toml").write_text(text, "utf-8")
        self._state, self._log = folder / "state", folder / "log"
        command = [sys.executable, "-m", "console.main", "cloud", str(folder / "run.toml"), "--insecure"]
        command += ["--state", str(self._state), "--listen", "127.0.0.1:0", "--lease", "600", *arguments]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603 (our own)

    def said(self, file: str) -> str:
        """What it announces, once it does."""
        end = time.monotonic() + STARTED_WITHIN
        while (found := announced(self._state, file)) is None:
            if self.process.poll() is not None or time.monotonic() > end:
                raise UnavailableError(f"a cloud does not serve:\n{self._log.read_text('utf-8')}")
            time.sleep(0.05)
        return found

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()


class Viewer:
    """A browser's stream. One that `notes` keeps when each round of each zone came; others only take their bytes."""

    def __init__(self, url: str, *, notes: bool) -> None:
        self._host, self._port = url.removeprefix("http://").rstrip("/").split(":")
        self._notes = notes
        self.came: dict[tuple[str, int], float] = {}
        self.bytes = 0

    async def watch(self) -> None:
        """Read until cancelled."""
        reader, writer = await asyncio.open_connection(self._host, int(self._port), limit=1 << 26)
        try:
            writer.write(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await writer.drain()
            kind = b""
            while line := await reader.readline():
                self.bytes += len(line)
                if line.startswith(b"event: "):
                    kind = line[7:].strip()
                elif self._notes and kind == b"status" and line.startswith(b"data: "):
                    self._note(json.loads(line[6:]))
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    def _note(self, message: Mapping[str, Mapping[str, Mapping[str, list[list[float]]]]]) -> None:
        now = time.monotonic()
        for zone, series in message["series"].items():
            for row in series["rounds"]:
                self.came.setdefault((zone, int(row[0])), now)


async def turn(side: Side, cloud: Cloud, edges: Edges, seconds: float) -> None:
    """Rounds for so long, with the side's viewers."""
    viewers = [Viewer(cloud.said(PAGE), notes=number == 0) for number in range(side.viewers)]
    watching = [asyncio.create_task(viewer.watch()) for viewer in viewers]
    await asyncio.sleep(1.0)  # they are connected, and what came before is told
    before = cloud.cpu()
    ended = await edges.train_for(seconds)
    # By the time that these rounds should take: a machine that is late with them has the same work to do.
    side.shares.append((cloud.cpu() - before) / seconds)
    await asyncio.sleep(1.5)  # the last rounds are told
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    if viewers:
        missing = [each for each in ended if each not in viewers[0].came]
        if missing:
            raise UnavailableError(f"{len(missing)} rounds never came to a viewer, {missing[0]} among them")
        side.lateness += [viewers[0].came[each] - then for each, then in ended.items()]


async def measure(zones: int, viewers: int, seconds: float, turns: int) -> list[Side]:
    """All sides, side by side."""
    sides = [Side(OFF), Side(IDLE), Side(WATCHED, viewers)]
    with tempfile.TemporaryDirectory(prefix="sgfusion-benchmark-") as folder:
        clouds: dict[str, Cloud] = {}
        async with AsyncExitStack() as stack:
            text = run_text(zones)
            for number, side in enumerate(sides):
                arguments = ("--page", "off" if side.name == OFF else "127.0.0.1:0")
                clouds[side.name] = Cloud(Path(folder) / str(number), text, *arguments)
                stack.callback(clouds[side.name].stop)
            edges = {
                side.name: await stack.enter_async_context(Edges(clouds[side.name].said("address"), zones))
                for side in sides
            }
            for number in range(turns):
                first = number % len(sides)  # who comes after whom made some per cent
                for side in (*sides[first:], *sides[:first]):
                    await turn(side, clouds[side.name], edges[side.name], seconds)
    return sides


async def look(zones: int, seconds: float, turns: int) -> AsyncGenerator[Sight]:
    """What a browser shows of a cloud of its own, turn by turn."""
    with tempfile.TemporaryDirectory(prefix="sgfusion-benchmark-") as folder:
        cloud = Cloud(Path(folder) / "looked-at", run_text(zones), "--page", "127.0.0.1:0")
        try:
            async with Edges(cloud.said("address"), zones) as edges, Looker(cloud.said(PAGE)) as looker:
                for _ in range(turns):
                    yield await looker.watch(edges, seconds)
        finally:
            cloud.stop()


async def looked(zones: int, turns: int) -> dict[str, list[float]]:
    """The lateness of all turns together, by where it was seen."""
    sights = [sight async for sight in look(zones, EVALUATED * ROUND_SECONDS, turns)]
    return {
        "table": [each.late for sight in sights for each in sight.table],
        "curves": [each.late for sight in sights for each in sight.curves],
    }


def beyond(sides: Sequence[Side], seen: Mapping[str, Sequence[float]]) -> list[str]:
    """What is more than it may be."""
    off, *shown = sides
    found = [
        f"{side.name}: {100 * more:.1f} % of a core, at most {100 * MOST_SHARE:.0f} are wanted"
        for side in shown
        if (more := side.more_than(off)[0]) >= MOST_SHARE
    ]
    late = [side for side in sides if side.lateness and max(side.lateness) >= MOST_SECONDS]
    found += [f"{side.name}: a round came after {max(side.lateness):.2f} s" for side in late]
    most = {where: float(np.percentile(lateness, 99)) for where, lateness in seen.items()}
    return found + [
        f"browser, {where}: 99 % were seen within {value:.2f} s"
        for where, value in most.items()
        if value >= MOST_SECONDS
    ]


def table_of(sides: Sequence[Side]) -> Table:
    """For people."""
    heads = [
        Column(head, justify="right") for head in ("% of a core", "more", "ratio", "median s", "99 % s", "worst s")
    ]
    table = Table("cloud", *heads, title="Turns taken side by side: medians; then from a round's end to the viewer")
    for side in sides:
        late = side.lateness
        figures = [statistics.median(late), float(np.percentile(late, 99)), max(late)] if late else []
        difference, ratio = side.more_than(sides[0])
        more = [f"{100 * difference:+.1f}", f"{ratio:.2f}"] if side.name != OFF else ["", ""]
        table.add_row(side.name, f"{100 * side.share:.1f}", *more, *(f"{value:.2f}" for value in figures))
    return table


def seen_table(seen: Mapping[str, Sequence[float]]) -> Table:
    """For people."""
    heads = [Column(head, justify="right") for head in ("rounds", "median s", "99 % s", "worst s")]
    table = Table("browser", *heads, title="From a round's end until it is seen")
    for where, late in seen.items():
        figures = (statistics.median(late), float(np.percentile(late, 99)), max(late))
        table.add_row(where, str(len(late)), *(f"{value:.2f}" for value in figures))
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table; the exit code, 1 if something is beyond its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--zones", type=int, default=ZONES)
    parser.add_argument("--viewers", type=int, default=VIEWERS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a turn")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--looks", type=int, default=LOOKS, help="turns of the browser's; 0 where there is no chromium")
    add_limits(parser)
    given = parser.parse_args(arguments)
    screen = Console()
    screen.print(f"{given.zones} zones, {given.viewers} viewers ...", highlight=False)
    with asyncio.Runner() as runner:  # one loop for both: gRPC goes on calling the first one after its end
        sides = runner.run(measure(given.zones, given.viewers, given.seconds, given.turns))
        screen.print(table_of(sides))
        seen = runner.run(looked(given.zones, given.looks)) if given.looks else {}
    if seen:
        screen.print(seen_table(seen))
    found = beyond(sides, seen) if given.limits else []
    for line in found:
        screen.print(line, highlight=False, style="red")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
