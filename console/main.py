"""The `sgfusion` command."""

import atexit
import gc
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from console import operate, services
from console.cloud import cloud
from console.doctor.command import doctor
from console.join import join
from console.view import view
from sgfusion.errors import MissingDependencyError, RunFileError, SGFusionError, brought_by

# What a command needs is imported as it runs: torch takes seconds, and `--help` should not.

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

OPTIONAL = frozenset(
    {
        "h3",
        "matplotlib",
        "numba",
        "opendp",
        "plotly",
        "pyarrow",
        "reverse_geocoder",
        "scipy",
        "shapely",
        "starlette",
        "torch",
        "uvicorn",
    }
)
"""Packages of `sgfusion[experiments]` that the package itself does not bring."""

METHODS = (
    "sgfusion", "chi-sgfusion", "top-k-sgfusion", "d-zgd", "sgeofl", "delta-z", "fedavg", "ifca", "fedsem", "feddelta",
    "random", "shuffled", "all",
)  # fmt: skip
"""The names in `simulator.methods.registry`, which needs torch; a test keeps the two the same."""

Backend = Literal["process", "ray"]
RunPath = Annotated[Path, typer.Argument(metavar="RUN.toml", help="The run file.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, as in hrg.schedule=paper.")
]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="Results folder; results/<name> by default.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes; by default as many as there are cores.")]
SimulateWorkers = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Processes. By default one zone is trained in this one, then the others by all cores if that takes long.",
    ),
]


def _print_version(wanted: bool) -> None:  # noqa: FBT001 (typer calls it)
    if wanted:
        print(version("sgfusion"))
        raise typer.Exit


@app.callback()
def _root(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """One model per zone; alike zones share gradients."""


@app.command()
def simulate(
    run_file: RunPath,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help=f"One of {', '.join(METHODS)}. By default what the run file's sampler means."
        ),
    ] = None,
    overrides: Overrides = None,
    out: Out = None,
    workers: SimulateWorkers = None,
) -> None:
    """Train one run by one method, and write its models and results. Started again after a kill, it goes on."""
    import_from_here()
    from console.simulate import load_run  # noqa: PLC0415 (see above)
    from console.simulate import simulate as train_and_write  # noqa: PLC0415

    run, chosen = load_run(run_file, overrides or (), method)
    screen = Console()
    with _stopped_by_hand(screen):
        train_and_write(run, chosen, out or Path("results") / run.name, workers, screen)


@app.command()
def experiment(
    suite_file: Annotated[Path, typer.Argument(metavar="SUITE.toml", help="The suite file.")],
    *,
    overrides: Overrides = None,
    out: Out = None,
    workers: Workers = None,
    backend: Annotated[Backend, typer.Option(help="Processes of this machine, or a Ray cluster.")] = "process",
    address: Annotated[
        str | None, typer.Option(help="The Ray cluster's; without it, Ray is started on this machine.")
    ] = None,
    seeds: Annotated[str | None, typer.Option(metavar="1,2", help="Only these seeds of the suite.")] = None,
    entries: Annotated[str | None, typer.Option(metavar="A,B", help="Only these entries.")] = None,
    data: Annotated[str | None, typer.Option(metavar="A,B", help="Only these data.")] = None,
) -> None:
    """Compare methods over seeds and data, and write the report. Started again, it goes on where it was."""
    import_from_here()
    from console.experiment import Asked, make_pool  # noqa: PLC0415 (see above)
    from console.experiment import experiment as run_suite  # noqa: PLC0415

    asked = Asked(suite_file, tuple(overrides or ()), _numbers(seeds), _names(entries), _names(data), out)
    screen = Console()
    with _stopped_by_hand(screen):
        finished = run_suite(asked, lambda: make_pool(backend, workers, address), screen)
    if not finished:
        raise typer.Exit(1)


@app.command()
def certs(
    run_file: RunPath,
    *,
    overrides: Overrides = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the CA is, or will be.")] = Path("certs"),
    zone: Annotated[list[str] | None, typer.Option(help="Only this zone's edge; may be repeated.")] = None,
    device: Annotated[list[str] | None, typer.Option(help="Only this device; may be repeated.")] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ZONE,ZONE",
            help="Put the keys of these zones' devices, which share a host, into devices-ZONE; may be repeated.",
        ),
    ] = None,
    days: Annotated[int, typer.Option(min=1, help="How long certificates are valid.")] = 365,
    renew: Annotated[bool, typer.Option("--renew", help="Make anew what is still valid too.")] = False,
    bundle: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Pack all that the host of --zone needs, its devices' keys too, for deploy/edge; - is stdout.",
        ),
    ] = None,
) -> None:
    """Make a CA and certificates for all that the run's data needs, or for the edges and devices that are named."""
    import_from_here()
    from console.bundle import for_bundle, write_bundle  # noqa: PLC0415 (see above)
    from console.certs import Asked  # noqa: PLC0415
    from console.certs import certs as make  # noqa: PLC0415
    from sgfusion.runfile import load_run_file  # noqa: PLC0415

    asked = Asked(zone or (), device or (), tuple(_names(zones) for zones in host or ()))
    run = load_run_file(run_file, overrides or ())
    now = datetime.now(UTC)
    if bundle is not None:
        run, asked = for_bundle(run, out, asked)
    make(run, out, asked, days=days, renew=renew, now=now, screen=Console(stderr=bundle == Path("-")))
    if bundle is not None:
        write_bundle(run, out, asked, bundle, now=now)


app.command()(cloud)
app.command()(services.edge)
app.command()(services.device)
app.command()(services.leave)
app.command()(operate.up)
app.command()(join)
app.command()(operate.follow)
app.command()(operate.compose)
app.command()(operate.status)
app.command()(operate.watch)
app.command()(doctor)
app.command()(operate.export)
app.command()(operate.predict)
app.command()(view)


@contextmanager
def _stopped_by_hand(screen: Console) -> Iterator[None]:
    """Ctrl-C is not an error."""
    try:
        yield
    except KeyboardInterrupt:
        screen.print("stopped. Finished jobs are kept: run the same command again to go on", highlight=False)
        raise typer.Exit(130) from None


def _names(listed: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in listed.split(",")) if listed else ()


def _numbers(listed: str | None) -> tuple[int, ...]:
    try:
        return tuple(map(int, _names(listed)))
    except ValueError:
        raise RunFileError(f"--seeds {listed!r}: give whole numbers, such as 1,2") from None


def import_from_here() -> None:
    """Let `module:name` in a run file be a module of the current folder; what is installed comes first."""
    if not {"", str(Path.cwd())} & set(sys.path):
        sys.path.append(str(Path.cwd()))


def main() -> None:
    """Run the command; an error of ours is a message, not a traceback."""
    atexit.register(gc.freeze)  # else the end looks through all objects of torch for cycles, which takes half a second
    try:
        app()
    except SGFusionError as error:
        _fail(str(error), error.discreet)
    except ImportError as error:
        _fail(str(_missing(error)))
    except OSError as error:
        named = f"{error.filename}: {error.strerror}" if error.filename else ""
        # Words that somebody's code has made up may hold anything: a log does not keep them.
        _fail(named or str(error), named or error.strerror or type(error).__name__)


def _missing(error: ImportError) -> MissingDependencyError:
    """What to install; an import that fails for another reason is raised as it is."""
    package = (error.name or "").partition(".")[0]
    if package not in OPTIONAL:
        raise error
    return MissingDependencyError(f"{package} cannot be imported ({error}): {brought_by('experiments')}")


def _fail(message: str, discreet: str = "") -> NoReturn:
    from sgfusion.wire.logs import is_logging  # noqa: PLC0415 (see above)

    if form := is_logging():  # a service: what it says is kept
        message = discreet or message
    if form == "json":
        logging.getLogger("sgfusion").critical("%s", message)
    else:
        Console(stderr=True).print(Text.assemble(("error: ", "red"), message), soft_wrap=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
