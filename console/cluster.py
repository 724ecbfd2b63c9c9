"""A whole cluster as processes of this machine: one cloud, an edge for each zone, and hosts of their devices.

::

    <folder>/run.toml                     the run, resolved: zones named, neighbours given
            /cloud/  /edges/<zone>/       their state: a cluster that is started again goes on
            /logs/<name>.log              what each process says
            /processes.json               who they are, while they run
    <lasting>/certs/                      a CA, and keys for every identity
             /devices/                    privacy ledgers
             /targets.json                where each process shows its metrics, if it does

Both folders are one unless `lasting` is given: of several runs over the same devices, each has state of its own, but a
device has one ledger. With a fresh one for each run it would release its labels again and again, ε unseen.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

from console.certs import CENTRAL, make_certificates
from console.processes import Known, Standstill, began, forget, how_it_ended, last_lines, tell
from console.targets import FILE, Targets
from sgfusion.durable import replace_file
from sgfusion.errors import UnavailableError
from sgfusion.runfile import RunFile
from sgfusion.wire.channel import Keys, split_address
from sgfusion.wire.identity import Identity, folder_of
from sgfusion.wire.service import ADDRESS, METRICS, PAGE, PARENT, announced

DAYS = 365
OFF = "off"
"""Of a page: none."""
START_WITHIN = 120.0
"""Seconds for a process to serve: a loaded machine takes long to load Python's packages."""
STOP_WITHIN = 10.0
"""Seconds for a process to end by itself after SIGTERM."""
SETTLED = 60.0
"""Seconds after which a process that was started anew counts as well."""
MOST_RESTARTS = 20
"""Of one process that ends again and again: what it says is then more useful than one more try."""
MOST_ERRORS = 3
"""Of one that ends with an error of ours: what it refuses now it will refuse again, unless its state was held."""


@dataclass(eq=False)
class Service:
    """One process of the cluster, which may be started anew."""

    name: str
    command: Callable[[], Sequence[str]]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    restarts: int = 0
    wanted: bool = False
    since: float = 0.0
    known: Known | None = None
    """The process as others may know it."""

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start it; its output is added to its log."""
        restarts = 0 if self.known is None else self.known.restarts + 1
        code = None if self.process is None else self.process.poll()
        ended, said = ("", "") if code is None else (how_it_ended(code), self.last_words())
        self.log.parent.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, PARENT: str(os.getpid()), "PYTHONUNBUFFERED": "1"}
        command = self.command()
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(  # noqa: S603 (our own interpreter and command)
                [sys.executable, "-m", "console.main", *command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,  # Ctrl-C is for the console, which then stops them in order
            )
        self.wanted, self.since = True, time.monotonic()
        zones = tuple(zone for option, zone in pairwise(command) if option == "--zone")
        pid = self.process.pid
        self.known = Known(self.name, pid, began(pid), time.time(), restarts, ended, said, zones)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it is there."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def last_words(self, lines: int = 5) -> str:
        """The end of its log."""
        return last_lines(self.log, lines)


@dataclass(eq=False)
class LocalCluster:
    """The processes of one run. `devices` are the ids of each zone's, in the order of zones."""

    folder: Path
    run: RunFile
    devices: Mapping[str, Sequence[str]]
    hosts: int = 2
    secure: bool = True
    lasting: Path | None = None
    """Where certificates and ledgers are, if not in the folder."""
    page: str | None = OFF
    """Where the cloud serves its page; None: at its usual place."""
    alone: Path | None = None
    """A results folder that says what zones come to alone, for the page."""
    metrics: bool = False
    """Whether all processes show metrics, on the loopback device; `targets` says where."""
    command: ClassVar[str] = "sgfusion up"
    """Who looks after the processes, as people know it."""
    services: dict[str, Service] = field(default_factory=dict)
    _places: dict[str, str] = field(default_factory=dict)
    """Where services were when they last said so."""
    _still: Standstill = field(default_factory=Standstill)

    def __post_init__(self) -> None:
        self._lasting = self.lasting or self.folder
        self.hosts = max(1, min(self.hosts, len(self.devices)))
        self._add("cloud", self._cloud)
        for zone in self.devices:
            self._add(f"edge-{zone}", partial(self._edge, zone))
        for number in range(self.hosts):
            self._add(f"devices-{number}", partial(self._host, number))
        self.targets = self._targets() if self.metrics else None

    def prepare(self) -> None:
        """Write the run file and the certificates."""
        replace_file(self.folder / "run.toml", self.run.to_toml().encode())
        if self.targets is not None:
            self.targets.forget()
        if self.secure:
            names = sorted({device for ids in self.devices.values() for device in ids})
            identities = [*CENTRAL, *(Identity("edge", zone) for zone in self.devices)]
            identities += [Identity("device", name) for name in names]
            make_certificates(self._lasting / "certs", identities, days=DAYS, renew=False, now=datetime.now(UTC))

    def forget_addresses(self) -> None:
        """Serve anywhere: of a cluster that was stopped, ports may be others' by now."""
        for name in self.services:
            if not name.startswith("devices-"):
                (self._state(name) / ADDRESS).unlink(missing_ok=True)

    def start(self) -> None:
        """Start all: the cloud, then edges, then devices, each when it can reach those before it."""
        self.start_service("cloud")
        self.wait_for(["cloud"])
        edges = [f"edge-{zone}" for zone in self.devices]
        for name in edges:
            self.start_service(name)
        self.wait_for(edges)
        for number in range(self.hosts):
            self.start_service(f"devices-{number}")

    def start_service(self, name: str) -> None:
        """Start one, where it was before: those who know its address find it there again."""
        if self.address(name) is not None:
            (self._state(name) / ADDRESS).unlink(missing_ok=True)
        self.services[name].start()
        with suppress(OSError):  # a full disk: people can do without it, and zones not without their processes
            tell(self.folder, self.command, [service.known for service in self.services.values() if service.known])

    def wait_for(self, names: Iterable[str], within: float = START_WITHIN) -> None:
        """Until these have said where they serve."""
        end = time.monotonic() + within
        for name in names:
            while self.address(name) is None:
                service = self.services[name]
                if not service.alive:
                    raise UnavailableError(f"{name} has ended before it served:\n{service.last_words()}")
                if time.monotonic() > end:
                    raise UnavailableError(f"{name} does not serve within {within:.0f} s:\n{service.last_words()}")
                time.sleep(0.02)

    def address(self, name: str) -> str | None:
        """Where a service is, once it says so."""
        address = announced(self._state(name))
        if address is not None:
            self._places[name] = address  # one that ends in order takes its address back
        return address

    def page_url(self) -> str | None:
        """Where the cloud's page is, once it says so."""
        url = announced(self._state("cloud"), PAGE)
        if url is not None:
            self._places[PAGE] = url.partition("//")[2].rstrip("/")
        return url

    @property
    def page_place(self) -> str | None:
        """`host:port` of the page, as it was last said."""
        return self._places.get(PAGE)

    def revive(self) -> list[str]:
        """Start again what has ended by itself, which goes on where it was; what there is to tell of it."""
        if self.targets is not None:
            self.targets.look()
        told = [*self._moved_page(), *self._frozen()]
        for service in self.services.values():
            if not service.wanted or service.alive:
                continue
            if time.monotonic() - service.since > SETTLED:
                service.restarts = 0
            refused = service.process is not None and service.process.returncode == 1
            if service.restarts >= (MOST_ERRORS if refused else MOST_RESTARTS):
                raise UnavailableError(
                    f"{service.name} has ended {service.restarts + 1} times:\n{service.last_words()}"
                )
            if time.monotonic() - service.since < min(5.0, 0.2 * 2**service.restarts):
                continue
            service.restarts += 1
            self.start_service(service.name)
            how = f" {service.known.ended}" if service.known is not None and service.known.ended else ""
            told.append(f"{service.name} has ended{how}: started again")
        return told

    def _moved_page(self) -> list[str]:
        """Where the page is now, if that is not where it was."""
        before, url = self._places.get(PAGE), self.page_url()
        return [f"page: {url}"] if before not in (None, self._places.get(PAGE)) else []

    def _frozen(self) -> list[str]:
        """Who was stopped by a signal, and who goes on again; it has not ended, so it is not started anew."""
        return self._still.news(
            lambda: [s.known for s in self.services.values() if s.known is not None and s.wanted and s.alive],
            time.monotonic(),
        )

    def stop(self) -> None:
        """End all at once, for each loses nothing by the others' end; by force what does not end by itself."""
        for service in self.services.values():
            service.wanted = False
            service.signal(signal.SIGCONT)
            service.signal(signal.SIGTERM)
        end = time.monotonic() + STOP_WITHIN
        for service in self.services.values():
            if service.process is None:
                continue
            try:
                service.process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                service.process.kill()
                service.process.wait()
        forget(self.folder)
        if self.targets is not None:
            self.targets.forget()

    def operator(self) -> Keys | None:
        """The keys of the console; None if the cluster has none."""
        return None if self.operator_folder is None else Keys.load(self.operator_folder)

    @property
    def operator_folder(self) -> Path | None:
        """Where they are."""
        return folder_of(self._lasting / "certs", Identity("operator")) if self.secure else None

    # Commands

    def _add(self, name: str, command: Callable[[], Sequence[str]]) -> None:
        self.services[name] = Service(name, command, self.folder / "logs" / f"{name}.log")

    def _state(self, name: str) -> Path:
        return self.folder / "cloud" if name == "cloud" else self.folder / "edges" / name.removeprefix("edge-")

    def _listen(self, name: str) -> str:
        """Where it was before, so that a restarted service is found where it was; anywhere the first time."""
        return self._places.get(name, "127.0.0.1:0")

    def _place(self, name: str) -> str:
        """Where others find it: where it is, or was and will be again."""
        return self.address(name) or self._places[name]

    def _keys(self, identity: Identity) -> list[str]:
        return ["--certs", str(folder_of(self._lasting / "certs", identity))] if self.secure else ["--insecure"]

    def _cloud(self) -> list[str]:
        place = ["--state", str(self._state("cloud")), "--listen", self._listen("cloud")]
        more = [*self._keys(Identity("cloud")), *self._page(), *self._metrics()]
        return ["cloud", str(self.folder / "run.toml"), *place, *more]

    def _page(self) -> list[str]:
        """Where it was before, too: who has it open finds it again. Anywhere on this machine if that port is somebody
        else's by now: a cloud must not stay away for its page.
        """
        where = self._places.get(PAGE, self.page)
        if PAGE in self._places and not _is_free(self._places[PAGE]):
            where = "127.0.0.1:0"
        alone = [] if self.alone is None or where == OFF else ["--alone", str(self.alone)]
        return [*([] if where is None else ["--page", where]), *alone]

    def _edge(self, zone: str) -> list[str]:
        name = f"edge-{zone}"
        place = ["--state", str(self._state(name)), "--listen", self._listen(name)]
        known = ["--cloud", self._place("cloud"), "--devices", str(len(self.devices[zone]))]
        return ["edge", "--zone", zone, *place, *known, *self._keys(Identity("edge", zone)), *self._metrics()]

    def _host(self, number: int) -> list[str]:
        zones = list(self.devices)[number :: self.hosts]
        edges = [part for zone in zones for part in ("--edge", f"{zone}={self._place(f'edge-{zone}')}")]
        hosted = [part for zone in zones for part in ("--zone", zone)]
        keys = ["--certs", str(self._lasting / "certs")] if self.secure else ["--insecure"]
        place = ["--state", str(self._lasting / "devices"), "--threads", "1"]
        told = ["--metrics-file", str(self._said(f"devices-{number}") / METRICS)] if self.metrics else []
        return ["device", str(self.folder / "run.toml"), *edges, *hosted, *place, *keys, *self._metrics(), *told]

    def _metrics(self) -> list[str]:
        return ["--metrics", "127.0.0.1:0"] if self.metrics else []

    def _targets(self) -> Targets:
        return Targets(self._lasting / FILE, self.run.name, {name: self._said(name) for name in self.services})

    def _said(self, name: str) -> Path:
        """The folder in which it says where its metrics are; hosts share that of their ledgers, so not there."""
        return self.folder / "hosts" / name if name.startswith("devices-") else self._state(name)


def _is_free(address: str) -> bool:
    host, port = split_address(address)
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError:
        return False
    return True
