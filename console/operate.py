"""`sgfusion up`, `status`, `export` and `predict`: a cluster and its models in an operator's hands."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer
from rich.console import Console

from console.asked_cloud import AskedCloud, of_environment
from console.interruption import interruptible

if TYPE_CHECKING:
    from console.trained_model import TrainedModel

# As in main.py, what a command needs is imported as it runs.

Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, as in hrg.schedule=paper.")
]
Folder = Annotated[
    Path | None,
    typer.Argument(
        metavar="[DIR]",
        help="The results folder of a cluster that sgfusion up runs; by default of the one that runs in results/.",
    ),
]
Cloud = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", envvar="SGFUSION_CLOUD", help="The address of a running cluster's cloud."),
]
Certs = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", envvar="SGFUSION_CERTS", help="The operator's ca.crt, tls.crt and tls.key; with --cloud."
    ),
]
Insecure = Annotated[bool, typer.Option("--insecure", help="Plain text on loopback; with --cloud.")]
Zone = Annotated[
    str | None, typer.Option(metavar="Z", help="The zone whose model it is; without it, an error lists them.")
]
Form = Literal["safetensors", "torchscript", "torch.export"]


def up(
    run_file: Annotated[Path, typer.Argument(metavar="RUN.toml", help="The run file.")],
    *,
    overrides: Overrides = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Results folder; results/<name> by default.")] = None,
    hosts: Annotated[
        int | None, typer.Option(min=1, help="Processes that devices share; by default as many as cores.")
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Plain text on loopback, no certificates.")] = False,
    alone: Annotated[bool, typer.Option(help="Train zones alone too, in the simulator, to compare with.")] = True,
    page: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT|off",
            help="Where the cloud serves its page. By default 127.0.0.1:7080, or any port if that is taken.",
        ),
    ] = None,
) -> None:
    """Train a run on a cluster of local processes: a cloud, an edge for each zone, their devices. Shows it live.

    Ctrl-C stops all of them; the same command then goes on where it was. The results folder is that of `simulate`.
    Once that is written and zones train alone, Ctrl-C leaves only this out, and SIGTERM still stops the command.
    """
    from console.main import import_from_here  # noqa: PLC0415
    from console.run_argument import load_one_run  # noqa: PLC0415
    from simulator.held_folder import held  # noqa: PLC0415

    import_from_here()
    screen = Console()
    run = load_one_run(run_file, overrides or ())
    folder = out or Path("results") / run.name
    screen.print(f"{run.name}: a cluster on this machine, in {folder}", highlight=False, soft_wrap=True)
    try:
        with interruptible(), held(folder):
            with screen.status("loading"):
                from console.up import Asked  # noqa: PLC0415 (torch takes seconds)
                from console.up import up as train_and_write  # noqa: PLC0415
                from simulator.pool import cores  # noqa: PLC0415
            asked = Asked(folder, hosts or cores(), secure=not insecure, alone=alone, page=page)
            train_and_write(run, asked, screen)
    except KeyboardInterrupt:
        screen.print(
            "stopped. Finished rounds are kept: run the same command again to go on", highlight=False, soft_wrap=True
        )
        raise typer.Exit(130) from None


def follow(
    context: typer.Context,
    run_file: Annotated[Path, typer.Argument(metavar="RUN.toml", help="The cluster's run file.")],
    *,
    overrides: Overrides = None,
    cloud: Cloud = None,
    certs: Certs = None,
    insecure: Insecure = False,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Results folder; results/<name> by default.")] = None,
    alone: Annotated[bool, typer.Option(help="Train zones alone too, in the simulator, to compare with.")] = True,
) -> None:
    """Watch a cluster that runs elsewhere to its end, as `up` does its own, and write the results folder.

    Ctrl-C ends the watching, not the run. Once results are written and zones train alone, it leaves only this out.
    """
    from console.main import import_from_here  # noqa: PLC0415
    from console.reach import reach  # noqa: PLC0415
    from console.run_argument import load_one_run  # noqa: PLC0415

    import_from_here()
    screen = Console()
    run = load_one_run(run_file, overrides or ())
    asked = AskedCloud(cloud, certs, insecure, of_environment(context)).meant()
    reached = reach(None, asked.cloud, asked.certs, insecure=asked.insecure)
    try:
        with interruptible():
            with screen.status("loading"):
                reached.refuse_a_stranger()
                from console.follow import follow as watch_and_write  # noqa: PLC0415 (torch takes seconds)
            whole = watch_and_write(run, reached, out or Path("results") / run.name, alone=alone, screen=screen)
    except KeyboardInterrupt:
        screen.print("no longer watching; that ends nothing else", highlight=False)
        _leave(130)
    if not whole:
        raise typer.Exit(1)


def compose(
    run_file: Annotated[Path, typer.Argument(metavar="RUN.toml", help="The run file.")],
    *,
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where docker-compose.yml goes; compose/<name> by default.")
    ] = None,
    hosts: Annotated[
        int | None, typer.Option(min=1, help="Containers that devices share; by default one a zone, at most 8.")
    ] = None,
    publish: Annotated[
        str | None,
        typer.Option(metavar="HOST[:PORT]", help="Open cloud and edges to other hosts, which reach this one so."),
    ] = None,
) -> None:
    """Write a compose file of the run's cluster in containers, for docker-compose 1.29 and docker compose 2."""
    from console.main import import_from_here  # noqa: PLC0415
    from console.run_argument import load_one_run  # noqa: PLC0415

    import_from_here()
    screen = Console()
    with screen.status("loading"):
        from console.compose import Asked, write_compose  # noqa: PLC0415
    run = load_one_run(run_file, overrides or ())
    asked = Asked(out or Path("compose") / run.name, hosts, publish)
    screen.print(write_compose(run, None if overrides else run_file, asked), highlight=False, soft_wrap=True)


def status(
    context: typer.Context,
    folder: Folder = None,
    *,
    cloud: Cloud = None,
    certs: Certs = None,
    insecure: Insecure = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
) -> None:
    """Say how a run stands: zones, rounds, devices, what is overdue, what was refused, the last events."""
    from console.reach import reach, running  # noqa: PLC0415
    from console.status import status as ask_and_print  # noqa: PLC0415

    asked = AskedCloud(cloud, certs, insecure, of_environment(context)).meant(folder=folder)
    local = folder or (running() if asked.cloud is None else None)
    ask_and_print(reach(local, asked.cloud, asked.certs, insecure=asked.insecure), as_json=as_json, screen=Console())


def watch(
    context: typer.Context,
    folder: Folder = None,
    *,
    cloud: Cloud = None,
    certs: Certs = None,
    insecure: Insecure = False,
) -> None:
    """Show a running cluster live until its run has finished: zones, rounds, devices late or gone, events.

    It goes on through restarts of the cloud. Ctrl-C ends the watching, not the run. Without a terminal it prints lines.
    """
    from console.reach import reach, running  # noqa: PLC0415
    from console.watch import once_there  # noqa: PLC0415
    from console.watch import watch as show  # noqa: PLC0415

    asked = AskedCloud(cloud, certs, insecure, of_environment(context)).meant(folder=folder)
    screen = Console()
    try:
        with interruptible():
            local = None if asked.cloud is not None else folder or once_there(running, screen)
            show(local, lambda: reach(local, asked.cloud, asked.certs, insecure=asked.insecure), screen)
    except KeyboardInterrupt:
        screen.print("no longer watching; that ends nothing else", highlight=False)
        _leave(130)


def export(
    context: typer.Context,
    place: Annotated[
        Path, typer.Argument(metavar="DIR|RUN.toml", help="A results folder; with --cloud, the cluster's run file.")
    ],
    *,
    zone: Zone = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to; exported/<zone> by default.")] = None,
    form: Annotated[
        Form, typer.Option("--format", help="The program, besides the weights; safetensors is the weights alone.")
    ] = "torchscript",
    cloud: Cloud = None,
    certs: Certs = None,
    insecure: Insecure = False,
    last: Annotated[
        bool, typer.Option("--last", help="Of a running cluster, the last model and not the best.")
    ] = False,
) -> None:
    """Write a zone's model for other programs: weights by name, a program that torch loads, and MODEL_CARD.md.

    From a results folder, or from the edge of a running cluster: with --last or --cloud. Its output is the model's to
    the bit, which is checked. A torch.export program of an LSTM takes sequences of the run's length alone.
    """
    from console.export import export as write  # noqa: PLC0415
    from console.folder_argument import refuse_absent  # noqa: PLC0415
    from console.main import import_from_here  # noqa: PLC0415

    import_from_here()
    refuse_absent(place, "file or folder")
    asked = AskedCloud(cloud, certs, insecure, of_environment(context)).meant(folder=place if place.is_dir() else None)
    model = _model(place, zone, asked, last=last)
    write(model, out or Path("exported") / model.zone, form, Console())


def predict(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A results folder.")],
    *,
    zone: Zone = None,
    given: Annotated[Path | None, typer.Option("--input", metavar="FILE", help="A .csv or .npz with samples.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="Where to; else the first are printed.")] = None,
) -> None:
    """Predict with a zone's model, in the task's units; without --input, on the zone's own test samples.

    Samples are in the units of the run's data. A CSV file has a column for each feature: those of data.features for
    a table, of device/tasks/flights.py for flights, distance, altitude and elapsed (km, m, minutes) for heart rates,
    else x0, x1 and so on. Of sequences a row is a step, and a column sample says whose; context has columns
    previous_distance, previous_altitude, previous_elapsed, previous_since_last (hours) and previous_heart_rate. An .npz
    has x[N, F] or x[N, T, F], and context[N, T, C].
    """
    from console.main import import_from_here  # noqa: PLC0415
    from console.predict import predict as compute  # noqa: PLC0415
    from console.trained_model import from_results  # noqa: PLC0415

    import_from_here()
    compute(from_results(folder, zone), given, out, Console())


def _leave(code: int) -> NoReturn:
    """End the process as it is: whoever stopped it should not wait for torch to be taken apart, object by object."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _model(place: Path, zone: str | None, asked: AskedCloud, *, last: bool) -> "TrainedModel":
    from console.reach import reach  # noqa: PLC0415
    from console.run_argument import load_one_run  # noqa: PLC0415
    from console.trained_model import from_cluster, from_results, run_of_cluster  # noqa: PLC0415

    if asked.cloud is None and not last:
        return from_results(place, zone)
    run = load_one_run(place, ()) if place.is_file() else run_of_cluster(place)
    local = place if place.is_dir() else None
    reached = reach(local, asked.cloud, asked.certs, insecure=asked.insecure)
    return from_cluster(reached, run, zone, "last" if last else "best")
