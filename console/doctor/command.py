"""`sgfusion doctor` on the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from sgfusion.errors import InputError

if TYPE_CHECKING:
    from console.doctor.examine import Patient

# As in main.py, what a command needs is imported as it runs.


def doctor(
    place: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR|RUN.toml]",
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
            envvar="SGFUSION_CERTS",
            help="A folder of certificates; with --cloud, the operator's, or the own one of an edge or a device.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The state of an edge; with its keys in --certs: its peers are looked at."),
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Plain text on loopback; with --cloud.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The findings, as JSON.")] = False,
) -> None:
    """Check this installation, and a deployment if one is named or runs in results/; say what is wrong and what to do.

    Always: Python, packages and extras; the clock; disk, memory and files; ports 7070 and 7080; Docker and Compose.
    With DIR: its processes, its certificates, its cloud, and every zone's edge, if a cluster runs there.
    With RUN.toml: its keys, its task and source, its data and zones.
    With --certs: CA, role, key, dates and permissions of each certificate there.
    With --cloud: whether the cloud answers, proves who it is and takes us for an operator; its clock and protocol; each
    zone's edge, dialled from here; versions; the servers' certificates; zones that are lost, late or wait.
    With --cloud and the keys of an edge or a device: whether the cloud is reached from that host, proves who it is and
    takes them; with --state, the same of the edge's peers.

    ✓ is fine, ! is worth a look, ✗ is broken: then it exits with 1. It takes at most ten seconds and changes nothing.
    """
    from console.doctor.examine import checks_of, examine  # noqa: PLC0415
    from console.doctor.findings import is_broken  # noqa: PLC0415
    from console.doctor.report import print_findings, to_json  # noqa: PLC0415

    patient = patient_of(place, cloud, certs, insecure=insecure, state=state)
    findings = examine(checks_of(patient), Console(stderr=True))
    if as_json:
        print(to_json(findings))
    else:
        print_findings(findings, Console())
    if is_broken(findings):
        raise typer.Exit(1)


def patient_of(
    place: Path | None, cloud: str | None, certs: Path | None, *, insecure: bool, state: Path | None = None
) -> "Patient":
    """What the command line names; refused if it makes no sense."""
    from console.doctor.certificates import identity_in  # noqa: PLC0415
    from console.doctor.examine import Patient  # noqa: PLC0415
    from console.doctor.vantage import Vantage  # noqa: PLC0415
    from console.folder_argument import refuse_absent  # noqa: PLC0415
    from console.reach import all_running, reach  # noqa: PLC0415
    from sgfusion.wire.identity import Identity, folder_of  # noqa: PLC0415

    if place is not None:
        refuse_absent(place, "file or folder")
    elif cloud is None and certs is None and state is None and len(here := all_running()) == 1:
        place = here[0]
    folder, run = (place, None) if place is not None and place.is_dir() else (None, place)
    if cloud is not None and insecure == (certs is not None):
        raise InputError(
            "give --certs DIR with --cloud, the folder of `sgfusion certs` for an operator or for this host's edge or"
            " device, or --insecure"
        )
    whose = identity_in(certs) if cloud is not None and certs is not None else None
    if state is not None and (whose is None or whose.role != "edge" or not state.is_dir()):
        raise InputError(
            f"--state {state}: give the folder of an edge's state, with --cloud, and with its own keys in --certs"
        )
    if cloud is not None and certs is not None and whose is not None and whose.role in ("edge", "device"):
        vantage = Vantage(cloud, certs, whose, state)
        return Patient(folder=state or Path("results"), certs=certs, wanted=whose, vantage=vantage, run=run)
    operator = Identity("operator")
    if cloud is not None and certs is not None and not (certs / "tls.crt").exists():
        certs = folder_of(certs, operator)
    looked = certs
    if certs is None and folder is not None and (folder / "cluster" / "certs").is_dir():
        looked = folder / "cluster" / "certs"
    there = cloud is not None or folder is not None
    return Patient(
        folder=folder or Path("results"),
        certs=looked,
        wanted=operator if cloud is not None and certs is not None else None,
        cluster=folder,
        reach=(lambda: reach(folder, cloud, certs, insecure=insecure)) if there else None,
        run=run,
    )
