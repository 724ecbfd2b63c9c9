"""What a round costs on the wire, beside plain gRPC and beside Flower; and a whole cluster beside bare compute.

First, rounds in which nothing is computed: one edge, 64 devices, 0.1 MB each way, in four client processes with
sixteen devices each. Ours, plain gRPC streams and Flower's gRPC path are all up at once and take turns, five rounds at
a time; a ratio is the median of the turns' own. Plain text is compared with plain text, TLS with TLS (both ends have
certificates). Flower's streams know no certificates of clients, so Flower is measured in plain text.

Then the demonstration's run on a local cluster, beside bare torch (`benchmarks/overhead.py` says what is counted).
"""

import argparse
import math
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from benchmarks import add_limits
from benchmarks.flower_venv import NoFlowerError, flower_python
from benchmarks.noop.side import Layout, Side, flower, ours, plain
from benchmarks.overhead import overhead
from benchmarks.simulator import EXPERIMENTS, Ratio
from console.certs import make_certificates
from sgfusion.runfile import load_run_file
from sgfusion.wire.identity import Identity

TURNS = 25
ROUNDS = 5
"""In a turn; its figure is their median."""
CLUSTER_TURNS = 5
OURS, OURS_TLS, PLAIN, PLAIN_TLS, FLOWER = "ours", "ours, TLS", "plain gRPC", "plain gRPC, TLS", "Flower"


@dataclass(frozen=True)
class Limit:
    """What a ratio may be at most."""

    ours: str
    other: str
    most: float


LIMITS = (Limit(OURS, PLAIN, 2.0), Limit(OURS_TLS, PLAIN_TLS, 2.0), Limit(OURS, FLOWER, 0.5))
CLUSTER_MOST = 1.2


def noop_rounds(layout: Layout, turns: int, flower_by: Path | None) -> dict[str, tuple[float, ...]]:
    """Seconds of a round, by system and turn."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        certs = Path(folder)
        devices = (Identity("device", f"d{number:03}") for number in range(layout.devices))
        make_certificates(certs, [Identity("edge", "noop"), *devices], days=2, renew=False, now=datetime.now(UTC))
        sides: dict[str, Side] = {
            OURS: ours(layout),
            PLAIN: plain(layout),
            OURS_TLS: ours(layout, certs),
            PLAIN_TLS: plain(layout, certs),
        }
        if flower_by is not None:
            sides[FLOWER] = flower(layout, flower_by)
        for side in sides.values():
            stack.enter_context(side).rounds(ROUNDS)  # warms it up
        took: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(turns):
            for name, side in sides.items():
                took[name].append(statistics.median(side.rounds(ROUNDS)))
    return {name: tuple(seconds) for name, seconds in took.items()}


def noop_ratios(took: Mapping[str, tuple[float, ...]]) -> list[tuple[Ratio, float]]:
    """With their limits; of the systems that were measured."""
    return [
        (Ratio(f"{limit.ours} / {limit.other}", took[limit.ours], took[limit.other]), limit.most)
        for limit in LIMITS
        if limit.ours in took and limit.other in took
    ]


def _row(ratio: Ratio, most: float) -> tuple[str, ...]:
    turns = sorted(ratio.of_turns)
    sides = (f"{1000 * statistics.median(side):,.1f}" for side in (ratio.ours, ratio.bare))
    wanted = f"at most {most:.2f}" if math.isfinite(most) else "to compare"
    return ratio.name, *sides, f"{ratio.value:.2f}", f"{turns[0]:.2f} to {turns[-1]:.2f}", wanted


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table; the exit code, 1 if a ratio is beyond its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS, help="of the no-op rounds; 0 leaves them out")
    parser.add_argument("--cluster-turns", type=int, default=CLUSTER_TURNS, help="of the cluster; 0 leaves it out")
    parser.add_argument("--devices", type=int, default=Layout.devices)
    parser.add_argument("--weights", type=int, default=Layout.weights)
    parser.add_argument("--run", type=Path, default=EXPERIMENTS / "demo.toml", help="that the cluster trains")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of that run")
    parser.add_argument(
        "--flower", choices=("auto", "required", "off"), default="auto", help="required: a failure if it is not there"
    )
    add_limits(parser)
    given = parser.parse_args(arguments)
    screen = Console()
    found: list[tuple[Ratio, float]] = []
    without_flower = ""
    if given.turns:
        flower_by = None
        if given.flower != "off":
            screen.print("Flower, from pip's index if it is not there yet ...", highlight=False)
            try:
                flower_by = flower_python()
            except NoFlowerError as error:
                without_flower = str(error)
        screen.print("no-op rounds ...", highlight=False)
        found += noop_ratios(noop_rounds(Layout(given.devices, weights=given.weights), given.turns, flower_by))
    if given.cluster_turns:
        screen.print("a cluster, and bare compute ...", highlight=False)
        wall, cpu = overhead(load_run_file(given.run, given.set), given.cluster_turns)
        found += [(wall, CLUSTER_MOST), (cpu, math.inf)]
    heads = [Column(head, justify="right") for head in ("ms", "beside, ms", "ratio", "over turns")]
    table = Table(Column("what", no_wrap=True), *heads, "wanted", title="Turns taken side by side: medians")
    for ratio, most in found:
        table.add_row(*_row(ratio, most))
    screen.print(table)
    if without_flower:
        screen.print(f"NOT COMPARED WITH FLOWER: {without_flower}", highlight=False, markup=False, soft_wrap=True)
    beyond = [ratio.name for ratio, most in found if ratio.value > most] if given.limits else []
    return 1 if beyond or (without_flower and given.flower == "required") else 0


if __name__ == "__main__":
    sys.exit(main())
