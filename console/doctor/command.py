"""`sgfusion doctor` on the command line."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

# As in main.py, what a command needs is imported as it runs.
# `parser=Path`: by itself typer asks the disk for each path as it reads the command line, and waits for ever if that is
# dead.


def doctor(
    context: typer.Context,
    place: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR|RUN.toml]",
            parser=Path,
            help="A run file, or the results folder of sgfusion up; by default that of the one that runs in results/.",
        ),
    ] = None,
    *,
    cloud: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", envvar="SGFUSION_CLOUD", help="The address of a running cluster's cloud."),
    ] = None,
    certs: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=Path,
            envvar="SGFUSION_CERTS",
            help="A folder of certificates; with --cloud, the operator's or an edge's own; with --edge, a device's.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=Path,
            help="A service's state folder: its disk. With --cloud and an edge's keys: its peers too.",
        ),
    ] = None,
    listens: Annotated[
        list[str] | None,
        typer.Option(
            "--listen",
            metavar="HOST:PORT",
            help="Where a service is to listen, tried in place of ports 7070 and 7080; repeated.",
        ),
    ] = None,
    edges: Annotated[
        list[str] | None,
        typer.Option("--edge", metavar="ZONE=HOST:PORT", help="An edge that devices of this host call; repeated."),
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Plain text on loopback; with --cloud.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The findings, as JSON.")] = False,
) -> None:
    """Check this installation, and a deployment if one is named or runs in results/; say what is wrong and what to do.

    Always: Python, packages and extras; the clock; disk, memory and files; ports 7070 and 7080, or with
    --listen those that services are to have; Docker and Compose.
    With DIR: its processes, its certificates, its cloud, and every zone's edge, if a cluster runs there.
    With RUN.toml: its keys, its task and source, its data and zones.
    With --state: the disk of that folder, be it the cloud's, an edge's or that of a host of devices.
    With --certs: CA, role, key, dates and permissions of each certificate there.
    With --cloud: whether the cloud answers, proves who it is and takes us for an operator; its clock and protocol; each
    zone's edge, dialled from here; versions; the servers' certificates; zones that are lost, late or wait.
    With --cloud and the keys of an edge: whether the cloud is reached from that host, proves who it is and takes them;
    its clock and version; with --state, the same of the edge's peers. With --edge and the keys of a device: the same of
    these edges.

    ✓ is fine, ! is worth a look, ✗ is broken: then it exits with 1.
    It looks for twelve seconds at most, and changes nothing.
    """
    from console.asked_cloud import of_environment  # noqa: PLC0415
    from console.doctor.examine import checks_of, examine  # noqa: PLC0415
    from console.doctor.findings import is_broken  # noqa: PLC0415
    from console.doctor.patient import Asked, patient_in_time  # noqa: PLC0415
    from console.doctor.programs import Programs  # noqa: PLC0415
    from console.doctor.report import print_findings, to_json  # noqa: PLC0415

    asked = Asked(
        place, cloud, certs, state, tuple(edges or ()), insecure, tuple(listens or ()), of_environment(context)
    )
    patient, unseen = patient_in_time(asked)
    with Programs() as programs:
        findings = [*unseen, *examine(checks_of(patient, programs), Console(stderr=True))]
    if as_json:
        print(to_json(findings))
    else:
        print_findings(findings, Console())
    if is_broken(findings):
        raise typer.Exit(1)
