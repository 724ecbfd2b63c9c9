"""`sgfusion edge` and `sgfusion device`: the tiers as processes of their own."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from console.metrics_options import At, File, Plain
from sgfusion.errors import InputError

# As in main.py, what a command needs is imported as it runs.

Insecure = Annotated[bool, typer.Option("--insecure", help="Plain text; loopback addresses only.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, as in hrg.schedule=paper.")
]


def edge(
    *,
    zone: Annotated[str, typer.Option(metavar="Z", help="The zone that this is the edge of.")],
    cloud: Annotated[str, typer.Option(metavar="HOST:PORT", help="The cloud's address.")] = "127.0.0.1:7070",
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where to serve; port 0 takes any.")] = "127.0.0.1:0",
    advertise: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where others reach it, if that is not where it listens.")
    ] = None,
    state: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Checkpoints and what it was told; state/edge-<zone> by default.")
    ] = None,
    certs: Annotated[Path | None, typer.Option(metavar="DIR", help="Its own ca.crt, tls.crt and tls.key.")] = None,
    insecure: Insecure = False,
    devices: Annotated[int, typer.Option(min=1, help="Devices to wait for before the zone's histogram is made.")] = 1,
    metrics: At = None,
    metrics_plain: Plain = False,
) -> None:
    """Serve one zone: its devices, its rounds, its peers. The run file comes from the cloud. Killed, it resumes."""
    from sgfusion.wire.logs import setup_logging  # noqa: PLC0415

    setup_logging("sgfusion.edge", zone=zone)  # before gRPC is imported: it looks at the environment then
    from edge.main import run_edge  # noqa: PLC0415
    from sgfusion.wire.channel import Keys  # noqa: PLC0415
    from sgfusion.wire.endpoint import endpoint_of  # noqa: PLC0415
    from sgfusion.wire.identity import Identity, folder_of  # noqa: PLC0415

    own = _checked(certs, insecure=insecure)
    keys = None if own is None else Keys.load(own, Identity("edge", zone))
    folder = state or folder_of(Path("state"), Identity("edge", zone))
    endpoint = endpoint_of(metrics, own, plain=metrics_plain)
    asyncio.run(
        run_edge(
            zone,
            cloud=cloud,
            state=folder,
            listen=listen,
            advertise=advertise,
            keys=keys,
            expected=devices,
            metrics=endpoint,
        )
    )


def leave(
    *,
    zone: Annotated[str, typer.Option(metavar="Z", help="The zone that leaves.")],
    cloud: Annotated[str, typer.Option(metavar="HOST:PORT", help="The cloud's address.")] = "127.0.0.1:7070",
    certs: Annotated[Path | None, typer.Option(metavar="DIR", help="The keys of the zone's edge.")] = None,
    insecure: Insecure = False,
) -> None:
    """Take a zone out of the run: the next plan is without it. Stop its edge first; it may enrol again later."""
    from sgfusion.wire.channel import Keys, open_channel  # noqa: PLC0415
    from sgfusion.wire.cloud_rpc import CloudClient  # noqa: PLC0415
    from sgfusion.wire.identity import Identity  # noqa: PLC0415

    own = _checked(certs, insecure=insecure)
    keys = None if own is None else Keys.load(own, Identity("edge", zone))

    async def say() -> None:
        async with open_channel(cloud, server=Identity("cloud"), me=Identity("edge", zone), keys=keys) as channel:
            await CloudClient(channel).leave(zone, timeout=20)

    asyncio.run(say())
    print(f"zone {zone} has left the run")


def device(
    run_file: Annotated[Path, typer.Argument(metavar="RUN.toml", help="The run file.")],
    *,
    overrides: Overrides = None,
    edges: Annotated[
        list[str], typer.Option("--edge", metavar="ZONE=HOST:PORT", help="An edge's address; one is enough to roam.")
    ],
    zones: Annotated[list[str] | None, typer.Option("--zone", metavar="Z", help="Only data of these zones.")] = None,
    devices: Annotated[
        list[str] | None, typer.Option("--device", metavar="ID", help="Only these devices; all by default.")
    ] = None,
    state: Annotated[Path, typer.Option(metavar="DIR", help="The privacy ledgers.")] = Path("state/device"),
    certs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="What holds a folder device-<id> for each device.")
    ] = None,
    insecure: Insecure = False,
    release: Annotated[
        str, typer.Option(metavar="NAME", help="Release histograms of new data under this name: costs ε again.")
    ] = "",
    threads: Annotated[int | None, typer.Option(min=1, help="Threads that compute; by default one a core.")] = None,
    metrics: At = None,
    metrics_plain: Plain = False,
    metrics_file: File = None,
) -> None:
    """Be one device, or many: private histogram, gradients and evaluations on request. Reconnects for ever."""
    from sgfusion.wire.logs import setup_logging  # noqa: PLC0415

    setup_logging("sgfusion.device")  # before gRPC is imported: it looks at the environment then
    from console.edge_argument import edges_of  # noqa: PLC0415
    from console.main import import_from_here  # noqa: PLC0415
    from device.main import Hosted, run_devices  # noqa: PLC0415
    from sgfusion.runfile import load_run_file  # noqa: PLC0415
    from sgfusion.wire.endpoint import endpoint_of  # noqa: PLC0415
    from simulator.pool import cores  # noqa: PLC0415

    import_from_here()
    run = load_run_file(run_file, overrides or ())
    root = _checked(certs, insecure=insecure)
    hosted = Hosted(tuple(zones or ()), tuple(devices or ()))
    known = edges_of(edges)
    # Their certificates are for clients alone, so there is none to serve metrics with.
    endpoint = endpoint_of(metrics, None, plain=metrics_plain, file=metrics_file)
    asyncio.run(
        run_devices(
            run,
            hosted,
            edges=known,
            state=state,
            certs=root,
            threads=threads or cores(),
            release=release,
            metrics=endpoint,
        )
    )


def _checked(certs: Path | None, *, insecure: bool) -> Path | None:
    """The folder of keys; None if there are to be none, which has to be said."""
    if insecure == (certs is not None):
        raise InputError("give --certs DIR (made by `sgfusion certs`), or --insecure on a loopback address")
    return certs
