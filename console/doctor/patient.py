"""What `sgfusion doctor` is to look at: what the command line names, refused if it makes no sense.

To know that, keys and folders are looked into, before any check has begun: so that has a deadline of its own.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

from console.asked_cloud import AskedCloud
from console.doctor.certificates import Certificate, holds_keys, look_at_keys
from console.doctor.findings import Finding, broken
from console.doctor.vantage import Vantage
from console.edge_argument import edges_of
from console.folder_argument import refuse_absent
from console.reach import CLOUD, OPERATOR, USUAL, Reached, all_running, reach
from sgfusion.errors import InputError
from sgfusion.wire.channel import is_loopback, split_address
from sgfusion.wire.identity import Identity, folder_of

WITHIN = 3.0
"""Seconds for the folders that are named to be looked into; a disk that needs more is in trouble."""


@dataclass(frozen=True)
class Asked:
    """The command line."""

    place: Path | None = None
    cloud: str | None = None
    certs: Path | None = None
    state: Path | None = None
    edges: Sequence[str] = ()
    insecure: bool = False
    listens: Sequence[str] = ()
    environment: frozenset[str] = frozenset()
    """Options that nobody typed, as in `AskedCloud`."""

    def meant(self) -> "Asked":
        """Without what the environment says of another cluster than was typed."""
        folder = self.place if self.place is not None and self.place.is_dir() else None
        given = AskedCloud(self.cloud, self.certs, self.insecure, self.environment)
        whom = given.meant(folder=folder, edge=next(iter(self.edges), None), looks_at_keys=True)
        return replace(self, cloud=whom.cloud, certs=whom.certs, environment=frozenset())


@dataclass(frozen=True)
class Patient:
    """What is to be looked at, besides the installation and this host."""

    certs: Path | None = None
    wanted: Identity | None = None
    """Whose the certificates should be; None if it is a folder of many."""
    reach: Callable[[], Reached] | None = None
    """A cluster's cloud; an error of ours if there is none."""
    cluster: Path | None = None
    """The results folder of a local cluster, whose processes are looked at."""
    vantage: Vantage | None = None
    """From where a deployment is looked at by who is no operator."""
    run: Path | None = None
    state: Path | None = None
    """A service's folder, whose disk is looked at."""
    listens: Sequence[str] = ()
    """Where services are to listen; if none is given, the usual ports are looked at."""

    @property
    def folders(self) -> list[Path]:
        """Those whose disks are looked at: where results go, unless only a service's state was named."""
        return [path for path in (self.cluster, self.state) if path is not None] or [USUAL]


def patient_in_time(asked: Asked, within: float = WITHIN) -> tuple[Patient, list[Finding]]:
    """The patient; or, if a folder hangs or is closed to us, one of whom nothing was named, and that it is so."""
    for address in asked.listens:  # needs no disk, and is looked at whatever becomes of folders
        split_address(address)
    patient: Future[Patient] = Future()

    def look() -> None:
        try:
            patient.set_result(patient_of(asked))
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            patient.set_exception(error)

    # As that of a check, the thread is left behind if it hangs: no pool would let the process end.
    threading.Thread(target=look, daemon=True).start()
    try:
        return patient.result(within), []
    except TimeoutError:
        return Patient(listens=asked.listens), [_hangs(asked, within)]
    except PermissionError as error:
        said = f"{error.filename} cannot be looked into ({error.strerror})"
        return Patient(listens=asked.listens), [
            broken("folders", said, "look as the user whose folder it is, or let this one read it")
        ]


def _hangs(asked: Asked, within: float) -> Finding:
    named = [str(path) for path in (asked.place, asked.certs, asked.state) if path is not None] or [str(USUAL)]
    which = "it" if len(named) == 1 else "one of them"
    return broken(
        "folders",
        f"{' and '.join(named)} could not be looked into within {within:g} s: {which} hangs",
        "is that a network disk that is away, or a file that is none, as a pipe? Give a folder that can be read",
    )


def patient_of(asked: Asked) -> Patient:
    """What is named; without a deadline."""
    if asked.place is not None:
        refuse_absent(asked.place, "file or folder")
    asked = asked.meant()
    edges = edges_of(asked.edges)
    _refuse_addresses(asked, edges)
    _refuse_no_folder(asked.state)
    place = asked.place
    # A state folder and where to listen say nothing of whom to ask.
    if replace(asked, state=None, listens=()) == Asked() and len(here := all_running()) == 1:
        place = here[0]
    folder, run = (place, None) if place is not None and place.is_dir() else (None, place)
    _refuse_beside(asked, folder)
    keys = [] if asked.certs is None else _keys_in(asked.certs, devices=bool(edges))
    vantage = _vantage(asked, edges, keys)
    if vantage is not None:
        whose = vantage.me if vantage.keys == asked.certs else None
        found = Patient(certs=asked.certs, wanted=whose, vantage=vantage, run=run)
    elif edges:  # whose keys cannot be read dials nobody
        found = Patient(certs=asked.certs, run=run)
    else:
        found = _with_operator(asked, folder, run)
    return replace(found, state=asked.state, listens=asked.listens)


def _refuse_no_folder(state: Path | None) -> None:
    """One that is not there yet is made by the service, and its disk can be looked at before."""
    if state is not None and state.exists() and not state.is_dir():
        raise InputError(f"--state {state} is no folder: give the one that the service has as its --state")


def _refuse_beside(asked: Asked, folder: Path | None) -> None:
    """What would count for nothing beside the rest, and is not of `AskedCloud`."""
    if folder is not None and asked.edges:
        raise InputError(
            f"--edge {asked.edges[0]} is looked at as from a device's host, and {folder} by its own operator's keys:"
            " give one of the two"
        )
    if asked.cloud is not None and asked.insecure == (asked.certs is not None):
        raise InputError(
            "give --certs DIR with --cloud, the folder of `sgfusion certs` for an operator or for this host's edge,"
            " or --insecure"
        )


def _refuse_addresses(asked: Asked, edges: Mapping[str, str]) -> None:
    """Those that nobody can dial: what would become of that is no finding of a deployment."""
    for address in edges.values():
        split_address(address)
    if asked.cloud is not None:
        split_address(asked.cloud)
        if asked.insecure and not is_loopback(asked.cloud):
            raise InputError(f"--insecure is for loopback addresses alone, not {asked.cloud}: give --certs DIR")


def _keys_in(certs: Path, *, devices: bool) -> list[Certificate]:
    """The folder of keys itself, or where there are to be devices' those of each in one of `sgfusion device`."""
    if holds_keys(certs):
        return [look_at_keys(certs)]
    return [look_at_keys(folder) for folder in sorted(certs.glob("device-*"))] if devices else []


def _vantage(asked: Asked, edges: Mapping[str, str], keys: Sequence[Certificate]) -> Vantage | None:
    """That of an edge or a device, if these are the keys of one; an operator's are on the cloud's host alone.

    Of keys that tell nobody whose they are nothing is refused: what ails them is a finding.
    """
    role = "device" if edges else "edge"
    own = next(((each.folder, who) for each in keys if (who := each.whose) is not None and who.role == role), None)
    unknown = any(each.whose is None for each in keys)
    if edges and own is None and not unknown:
        given = "there is no --certs" if asked.certs is None else f"{asked.certs} has the keys of no device"
        raise InputError(
            f"--edge {asked.edges[0]} is for devices, and {given}: give the keys of one, or the folder that holds its"
            " device-<id>"
        )
    if own is not None and edges:
        return Vantage(tuple((Identity("edge", zone), address) for zone, address in edges.items()), *own)
    if own is not None and asked.cloud is not None:
        return Vantage(((CLOUD, asked.cloud),), *own, asked.state)
    if asked.cloud is not None and keys and (who := keys[0].whose) is not None and who.role == "device":
        raise InputError(
            f"{asked.certs} holds the keys of {who}, which calls edges and not the cloud:"
            " give --edge ZONE=HOST:PORT, as sgfusion device has it"
        )
    return None


def _with_operator(asked: Asked, folder: Path | None, run: Path | None) -> Patient:
    """What an operator looks at, or who has no keys of a cluster."""
    cloud, certs = asked.cloud, asked.certs
    if cloud is not None and certs is not None and not holds_keys(certs) and folder_of(certs, OPERATOR).is_dir():
        certs = folder_of(certs, OPERATOR)
    looked = certs
    if certs is None and folder is not None and (folder / "cluster" / "certs").is_dir():
        looked = folder / "cluster" / "certs"
    there = cloud is not None or folder is not None
    return Patient(
        certs=looked,
        wanted=OPERATOR if cloud is not None and certs is not None else None,
        cluster=folder,
        reach=(lambda: reach(folder, cloud, certs, insecure=asked.insecure)) if there else None,
        run=run,
    )
