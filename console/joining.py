"""`sgfusion join`: one more zone for the cluster that `sgfusion up` runs, from another terminal.

The zone has processes of its own, an edge and a host of its devices, with their state beside that of the cluster:
`<out>/cluster/<run>/joined/<zone>`. Certificates and privacy ledgers are where the cluster has them, and beside its
list of who shows metrics where the zone has one of its own, `targets-<zone>.json`.
"""

import asyncio
import signal
import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from console.certs import make_certificates
from console.cluster import DAYS, LocalCluster
from console.formats import counted
from console.lone_devices import lone_devices
from console.looking import STOPPED
from console.notes import tell
from console.processes import condition, told
from console.reach import of_folder, state_of
from console.run_argument import with_zone
from console.targets import Targets, file_of
from console.watch import InFolder
from console.watching import FETCH_WITHIN, Watch
from device.sources.source import open_source
from device.sources.zone_name import meant_zone
from sgfusion.durable import replace_file
from sgfusion.errors import DataError, InputError, RunFileError, SGFusionError
from sgfusion.runfile import RunFile, checked, contract, load_run_file
from sgfusion.wire.channel import Keys, open_channel
from sgfusion.wire.cloud_rpc import CloudClient
from sgfusion.wire.identity import Identity, folder_of

LEAVE_WITHIN = 20.0
"""Seconds for the cloud to take note that the zone has left."""


class Joined(LocalCluster):
    """A zone's own processes beside a cluster that somebody else looks after."""

    command = "sgfusion join"

    def __init__(
        self, state: Path, run: RunFile, zone: str, devices: Sequence[str], *, lasting: Path, secure: bool
    ) -> None:
        self._cluster = state
        self.zone = zone
        self.edge = f"edge-{zone}"
        self._dialled: str | None = None
        """The cloud that its edge was started with."""
        folder = state / "joined" / folder_of(Path(), Identity("edge", zone)).name.removeprefix("edge-")
        super().__init__(folder, run, {zone: devices}, hosts=1, secure=secure, lasting=lasting, metrics=True)

    def prepare(self) -> None:
        """The run file as the zone's devices read it, and certificates of these alone."""
        replace_file(self.folder / "run.toml", self.run.to_toml().encode())
        if self.targets is not None:
            self.targets.forget()
        if self.secure:
            identities = [Identity("edge", self.zone), *(Identity("device", name) for name in self.devices[self.zone])]
            make_certificates(self._lasting / "certs", identities, days=DAYS, renew=False, now=datetime.now(UTC))

    def start(self) -> None:
        """The edge, then its devices; the cloud is there."""
        self.forget_addresses()
        self.start_service(self.edge)
        self.wait_for([self.edge])
        self.start_service("devices-0")

    def revive(self) -> list[str]:
        """Besides, the edge ends, to be started again, when the cloud is elsewhere: `up` that was stopped and typed
        again serves anywhere, and the edge would wait for it where it was.
        """
        told, cloud = super().revive(), self.address("cloud")
        if self._dialled is not None and cloud not in (None, self._dialled):
            self._dialled = cloud
            self.services[self.edge].signal(signal.SIGTERM)
            told.append(f"the cluster was started again, its cloud is at {cloud}: {self.edge} goes there")
        return told

    def forget_addresses(self) -> None:
        """The edge may serve anywhere. Where the cloud is, is not ours to forget."""
        (self._state(self.edge) / "address").unlink(missing_ok=True)

    async def leave(self) -> None:
        """Tell the cloud that the zone does not come back: else the others wait for it until a deadline."""
        me = Identity("edge", self.zone)
        keys = Keys.load(folder_of(self._lasting / "certs", me), me) if self.secure else None
        async with open_channel(self._place("cloud"), server=Identity("cloud"), me=me, keys=keys) as channel:
            await CloudClient(channel).leave(self.zone, timeout=LEAVE_WITHIN)

    def _edge(self, zone: str) -> list[str]:
        self._dialled = self._place("cloud")
        return super()._edge(zone)

    def _targets(self) -> Targets:
        """Without the cloud, which is in the cluster's list, as is another `devices-0`: one name is one process there.
        Nor would the zone alone do as a name, for a zone may be called 0.
        """
        said = {self.edge: self._said(self.edge), f"devices-of-{self.zone}": self._said("devices-0")}
        return Targets(self._lasting / file_of(self.folder.name), self.run.name, said)

    def _state(self, name: str) -> Path:
        return self._cluster / "cloud" if name == "cloud" else super()._state(name)


class TakingPart(Watch):
    """Looks on until the run has finished, which `up` may have `entered` while we did not hear the cloud.

    Of a run that could not be trained to its end `up` enters nothing: it is waited for until a deadline.
    """

    unserved = STOPPED

    def __init__(
        self,
        joined: Joined,
        screen: Console,
        *,
        before: float,
        entered: Callable[[], bool],
        frozen: Callable[[], Collection[str]] = frozenset,
    ) -> None:
        super().__init__(joined, screen, stops="Ctrl-C takes the zone out again", before=before, frozen=frozen)
        self._entered = entered

    def _ended(self) -> bool:
        return super()._ended() or self._entered()


def join(folder: Path, zone: str, overrides: Sequence[str], screen: Console) -> None:
    """Let the zone take part until the run has finished. Ctrl-C takes it out again."""
    reached = of_folder(folder)
    state = state_of(folder)
    run, devices = joining_run(state / "run.toml", zone, overrides)
    joined = Joined(state, run, zone, devices, lasting=folder / "cluster", secure=reached.keys is not None)
    if (there := told(joined.folder)) is not None and condition(there.keeper):
        raise InputError(f"zone {zone} has joined already: {there.keeper.name} (process {there.keeper.pid}) runs it")
    screen.print(
        f"zone {zone} with {counted(len(devices), 'device')} joins the cluster in {folder}. Ctrl-C takes it out again",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    if len(devices) == 1:  # else there is nothing to say, and the data need not be read for it
        samples = {zone: len(open_source(run, here=True).data(zone, devices[0]))}
        tell(lone_devices({zone: devices}, samples, run.zones.names if run.zones.by == "column" else ()), screen)
    began, cluster = time.monotonic(), InFolder(folder, state.name)
    old = cluster.finished()  # of results that `up` did not find whole. Looked for now: it may finish while we start
    try:
        joined.prepare()
        joined.start()
        took = time.monotonic() - began
        watch = TakingPart(
            joined, screen, before=took, entered=lambda: not old and cluster.finished(), frozen=cluster.frozen
        )
        asyncio.run(watch.until_finished())
        _until_fetched(joined)
    except SGFusionError as error:  # the place has a run's whole fingerprint in it: told only who needs it
        raise type(error)(f"{error}\nWhat each process says: {joined.folder / 'logs'}") from error
    except KeyboardInterrupt:
        joined.stop()
        _leave(joined, screen)
        raise
    finally:
        joined.stop()
    screen.print(
        f"The run has finished: {folder} will have the model of {zone} too",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def joining_run(path: Path, zone: str, overrides: Sequence[str]) -> tuple[RunFile, tuple[str, ...]]:
    """The cluster's run as the new zone's devices read it, and who they are."""
    cluster = load_run_file(path)
    if zone in cluster.zones.names:
        raise RunFileError(f"--zone {zone!r} is one of the run's own: sgfusion up has started it")
    given = load_run_file(path, overrides)
    if contract(given) != contract(cluster):
        raise RunFileError("--set: seed, task, histogram and update must stay those of the cluster")
    try:
        run = with_zone(given, zone)
        devices = open_source(run, here=True).devices(zone)
    except (DataError, RunFileError) as error:
        there = open_source(_with_all_zones(given)).zones()  # what is wrong with all of the data it says itself
        if zone in there:
            raise
        raise DataError(
            _not_there(zone, [name for name in there if name not in cluster.zones.names], cluster)
        ) from error
    return run, tuple(devices)


def _not_there(zone: str, others: Sequence[str], cluster: RunFile) -> str:
    """Of a zone without data: which one was meant comes first, for countries have many."""
    own, meant = meant_zone(zone, cluster.zones.names), meant_zone(zone, others)
    asked = (
        f" Did you mean {meant!r}?" if meant else f" Did you mean {own!r}? It is one of the run's own." if own else ""
    )
    can = f"These can join: {', '.join(others)}" if others else "It has no other zones that could join"
    return f"--zone {zone!r} is not in the data.{asked} {can}"


def _with_all_zones(run: RunFile) -> RunFile:
    document = run.model_dump(by_alias=True, exclude_none=True)
    document["zones"] |= {"names": [], "adjacent": None}
    return checked(RunFile, document, f"run {run.name!r} with all zones of its data")


def _until_fetched(joined: Joined) -> None:
    """`up` fetches the models now, this zone's from our edge, and then stops the cloud."""
    end = time.monotonic() + FETCH_WITHIN
    while joined.address("cloud") is not None and time.monotonic() < end:
        time.sleep(0.1)


def _leave(joined: Joined, screen: Console) -> None:
    try:
        asyncio.run(joined.leave())
        told = f"zone {joined.zone} has left the run. The same command takes it up again where it was"
    except SGFusionError as error:
        told = f"stopped, and the cloud could not be told that zone {joined.zone} has left: {error}"
    screen.print(told, highlight=False, markup=False, soft_wrap=True)
