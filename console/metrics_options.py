"""The options of cloud, edge and device that say where their metrics are shown."""

from pathlib import Path
from typing import Annotated

import typer

At = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="HOST:PORT",
        help="Where to show metrics to Prometheus; port 0 takes any. Beyond loopback for keys of an operator or a"
        " monitor alone.",
    ),
]
Plain = Annotated[
    bool,
    typer.Option("--metrics-plain", help="Metrics in plain text beyond loopback too, for all who can reach the port."),
]
File = Annotated[
    Path | None,
    typer.Option(
        "--metrics-file", metavar="FILE", help="Where to say their address; the file metrics of --state by default."
    ),
]
