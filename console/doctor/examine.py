"""All checks at once, each with a deadline of its own: nobody waits for what hangs."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from urllib.parse import urlsplit

from rich.console import Console

from console.doctor.certificates import (
    ANEW,
    BY_UP,
    ca_key_findings,
    certificate_findings,
    look_at_ca_keys,
    look_at_certificates,
)
from console.doctor.deployment import deployment_findings, look_at_deployment
from console.doctor.engine import engine_findings, look_at_engine
from console.doctor.findings import Finding, broken, by_cause, look, ok
from console.doctor.machine import host_findings, look_at_host
from console.doctor.patient import Patient
from console.doctor.ports import look_at_places, look_at_ports, place_findings, port_findings
from console.doctor.processes import look_at_processes, process_findings
from console.doctor.programs import Programs
from console.doctor.run_files import look_at_run, run_findings
from console.doctor.vantage import look_from, view_findings
from console.doctor.versions import installation_findings, look_at_installation
from console.reach import UNSEEN, USUAL, Reached, all_running, ended_early, may_load, state_of
from console.typed import typed
from sgfusion.errors import IdentityError, SGFusionError, UnavailableError
from sgfusion.wire.channel import is_loopback, split_address
from sgfusion.wire.service import PAGE, announced

WITHIN = 9.0
"""Seconds for all checks, which is more than any of them gives itself."""
QUIET = 2.0
"""Seconds before we say what we wait for."""
Check = Callable[[], list[Finding]]


def checks_of(patient: Patient, programs: Programs) -> dict[str, Check]:
    """By name, in the order in which they are told."""
    checks: dict[str, Check] = {
        "installation": lambda: installation_findings(look_at_installation()),
        "host": lambda: host_findings(look_at_host(patient.folders)),
    }
    if (certs := patient.certs) is not None:
        anew = BY_UP if patient.cluster is not None and certs.is_relative_to(patient.cluster) else ANEW
        checks["certificates"] = lambda: [
            *certificate_findings(certs, look_at_certificates(certs), datetime.now(UTC), patient.wanted, anew),
            *ca_key_findings(look_at_ca_keys(certs)),
        ]
    if listens := patient.listens:
        checks["ports"] = lambda: place_findings(look_at_places(listens), _dialled(patient))
    else:
        checks["ports"] = lambda: port_findings(look_at_ports(), _ports(patient))
    checks["engine"] = lambda: engine_findings(look_at_engine(programs))
    if (run := patient.run) is not None:
        checks["run file"] = lambda: run_findings(look_at_run(run, programs))
    if (cluster := patient.cluster) is not None:
        checks["processes"] = lambda: process_findings(look_at_processes(cluster))
    if (vantage := patient.vantage) is not None:
        checks["deployment"] = lambda: view_findings(look_from(vantage))
    if (reach := patient.reach) is not None:
        checks["deployment"] = lambda: _deployment(reach, patient)
    return checks


def _deployment(reach: Callable[[], Reached], patient: Patient) -> list[Finding]:
    cluster = patient.cluster
    try:
        reached = reach()
    except IdentityError as error:  # of our own keys: nobody was dialled yet
        remedy = BY_UP if patient.wanted is None else "what is said of certificates helps here too"
        return [broken("cloud", f"nobody can be asked by the keys that are there: {error}", remedy)]
    except SGFusionError as error:
        if cluster is not None and _is_over(error, cluster):
            shows = f"{typed('view', cluster)} shows its results"
            return [ok("cloud", f"no cluster runs in {cluster}: its run is over, and {shows}")]
        return [replace(look("cloud", str(error), _back(error, cluster)), of=frozenset({"cloud"}))]
    return deployment_findings(look_at_deployment(replace(reached, folder=None)))  # we look at its processes anyway


def _is_over(error: SGFusionError, cluster: Path) -> bool:
    """Whether it is that there is no cloud any more, and need not be one."""
    awaited = isinstance(error, UnavailableError) or ended_early(cluster)
    return not awaited and (cluster / "summary.json").exists()


def _back(error: SGFusionError, cluster: Path | None) -> str:
    """How a cloud comes back that is not there."""
    if cluster is not None and may_load(cluster):
        return "wait for it"
    if isinstance(error, UnavailableError):
        return "look again in a few seconds: it is being started"
    why = "" if cluster is None else ended_early(cluster)
    if why:
        return (
            "look as the user who started it" if why == UNSEEN else "type that sgfusion up again, with the same words"
        )
    return "start the cluster, or say where it is: --cloud HOST:PORT --certs DIR"


def _dialled(patient: Patient) -> set[int]:
    """Where those are whom we are told to dial, if they are on this host."""
    dialled = [] if patient.vantage is None else [address for _, address in patient.vantage.servers]
    with suppress(SGFusionError):
        dialled += [] if patient.reach is None else [patient.reach().address]
    return {split_address(address)[1] for address in dialled if is_loopback(address)}


def _ports(patient: Patient) -> set[int]:
    """The same, and the pages of local clouds that run."""
    found = _dialled(patient)
    for folder in {patient.cluster or USUAL, *all_running()}:
        with suppress(SGFusionError):
            page = urlsplit(announced(state_of(folder) / "cloud", PAGE) or "").port
            found |= {page} if page is not None else set()
    return found


def examine(checks: dict[str, Check], screen: Console, *, within: float = WITHIN) -> list[Finding]:
    """What all checks have found, in their order, a cause once. One that does not end in time has found just that."""
    done: SimpleQueue[tuple[str, list[Finding]]] = SimpleQueue()
    for name, check in checks.items():
        # A thread that hangs, say on a dead network disk, is left behind: no pool would let the process end.
        threading.Thread(target=_run, args=(name, check, done), daemon=True).start()
    found: dict[str, list[Finding]] = {}
    end = time.monotonic() + within
    with _progress(screen, checks, found, within):
        while len(found) < len(checks) and (left := end - time.monotonic()) > 0:
            try:
                name, findings = done.get(timeout=left)
            except Empty:
                break
            found[name] = findings
    late = {name: [_late(name, within)] for name in checks if name not in found}
    return by_cause([finding for name in checks for finding in {**found, **late}[name]])


def _late(name: str, within: float) -> Finding:
    return broken(name, f"not known after {within:g} s", "something hangs: a network disk, a name server, the engine?")


def _run(name: str, check: Check, done: "SimpleQueue[tuple[str, list[Finding]]]") -> None:
    try:
        done.put((name, check()))
    except Exception as error:  # noqa: BLE001 - a check that fails is a finding, and the others go on
        words = f"it could not be looked at: {type(error).__name__}: {error}"
        done.put((name, [broken(name, words, "please report this, with the output of sgfusion doctor --json")]))


@contextmanager
def _progress(
    screen: Console, checks: dict[str, Check], found: dict[str, list[Finding]], within: float
) -> Iterator[None]:
    """After a while, say what is waited for."""
    stop = threading.Event()

    def show() -> None:
        if stop.wait(QUIET):
            return
        with screen.status("") as status:
            while not stop.is_set():
                waits = ", ".join(name for name in checks if name not in found)
                told = f"still being looked at, for {within:g} s at most: {waits}"
                status.update(told)
                if not screen.is_terminal:
                    screen.print(told, highlight=False, soft_wrap=True)
                    return
                stop.wait(0.25)

    shower = threading.Thread(target=show, daemon=True)
    shower.start()
    try:
        yield
    finally:
        stop.set()
        shower.join(1.0)
