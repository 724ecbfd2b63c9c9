"""`sgfusion cloud`: the cloud as a process of its own."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from console.metrics_options import At, Plain
from sgfusion.errors import InputError, MissingDependencyError, brought_by

if TYPE_CHECKING:
    from cloud.service import CloudService
    from sgfusion.runfile import RunFile

# As in main.py, what a command needs is imported as it runs.


def cloud(
    run_file: Annotated[Path, typer.Argument(metavar="RUN.toml", help="The run file; it names the zones.")],
    *,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, as in quorum.zones=0.8.")
    ] = None,
    state: Annotated[
        Path, typer.Option(metavar="DIR", help="All that it knows; started again with the same, it goes on.")
    ] = Path("state/cloud"),
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where to serve; port 0 takes any.")
    ] = "127.0.0.1:7070",
    certs: Annotated[Path | None, typer.Option(metavar="DIR", help="Its own ca.crt, tls.crt and tls.key.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Plain text; loopback addresses only.")] = False,
    page: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT|off",
            help="Where to serve the page. By default 127.0.0.1:7080, or any port if that is taken. Beyond loopback it"
            " asks for an operator's certificate or the token in the file page-token of --state.",
        ),
    ] = None,
    page_plain: Annotated[
        bool, typer.Option("--page-plain", help="Plain text, with the token, beyond loopback too: behind a proxy.")
    ] = False,
    alone: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A results folder that says what zones come to alone.")
    ] = None,
    lease: Annotated[
        float,
        typer.Option(min=0.1, max=86_400.0, metavar="SECONDS", help="Without a report a zone is lost after this."),
    ] = 30.0,
    metrics: At = None,
    metrics_plain: Plain = False,
) -> None:
    """Serve a run: its zones, its dendrogram, its plans and reports. Killed at any moment, it loses nothing."""
    from sgfusion.wire.logs import log_format, setup_logging  # noqa: PLC0415

    setup_logging("sgfusion.cloud")  # before gRPC is imported: it looks at the environment then
    import numba  # noqa: F401, PLC0415 (missing, it should be missed now and not when all zones have come)

    from cloud.main import run_cloud  # noqa: PLC0415
    from sgfusion.runfile import load_run_file  # noqa: PLC0415
    from sgfusion.wire.channel import Keys  # noqa: PLC0415
    from sgfusion.wire.endpoint import endpoint_of  # noqa: PLC0415
    from sgfusion.wire.identity import Identity  # noqa: PLC0415

    if insecure == (certs is not None):
        raise InputError("give --certs DIR (made by `sgfusion certs`), or --insecure on a loopback address")
    run = load_run_file(run_file, overrides or ())
    keys = None if certs is None else Keys.load(certs, Identity("cloud"))
    endpoint = endpoint_of(metrics, certs, plain=metrics_plain)

    def serving(address: str) -> None:
        if log_format() == "text":  # its log says it too, and a log of JSON is nothing but JSON
            print(f"cloud of {run.name}: serves at {address}", flush=True)

    if page == "off" and (page_plain or alone is not None):
        raise InputError("--page-plain and --alone are of the page, and --page off serves none: leave them out")
    shown = None if page == "off" else _page(run, page, state, certs, alone, plain=page_plain)
    asyncio.run(
        run_cloud(
            run,
            state=state,
            listen=listen,
            keys=keys,
            lease=lease,
            metrics=endpoint,
            page=shown,
            serving=serving,
        )
    )


def _page(
    run: "RunFile", address: str | None, state: Path, certs: Path | None, alone: Path | None, *, plain: bool
) -> "Callable[[CloudService], Coroutine[Any, Any, None]]":
    """What serves the page, its place already taken."""
    try:
        from cloud.page.beside import known_alone, serve_page  # noqa: PLC0415
        from cloud.page.server import take_place  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError(
            f"the page cannot be served ({error}): {brought_by('cloud')}; or give --page off"
        ) from error
    zones = known_alone(alone, run)
    place = take_place(address, state=state, certs=certs, plain=plain)
    return lambda service: serve_page(service, place, state, zones)
