"""What the cloud knows of a run: values only. `coordinator.py` says how they change, `store.py` keeps them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from cloud.absences import Absence
from sgfusion.plan import ZoneState
from sgfusion.reports import Attendance, Event, Model, RoundRecord, ZoneEvaluation
from sgfusion.runfile import RunFile
from sgfusion.waiting import Waiting

Histogram = tuple[float, ...]
LEASE = 30.0
"""Seconds without a report after which a zone counts as lost, unless the operator says otherwise."""
EVENTS = 200
"""Events that are kept."""
ENDED = (ZoneState.DONE, ZoneState.DIVERGED)


@dataclass(frozen=True)
class Zone:
    """A zone of the run. Invariant: one that was never enrolled is EXPECTED and has nothing but its name and number."""

    name: str
    number: int
    """Its own for ever, also after it has left: others draw by it."""
    address: str = ""
    said: ZoneState = ZoneState.EXPECTED
    """Where it stands by its own words; `state` adds what only the cloud knows."""
    left: bool = False
    lost: float | None = None
    """Since when its lease is over; also of one that has `left` for that, and not of one that said that it leaves."""
    heard: float = 0.0
    """When it was last heard of. Not stored: nobody can report to a cloud that is not there, so leases begin anew."""
    life: int = 0
    """The process that enrolled it last; 0 if that did not say."""
    histogram: Histogram = ()
    devices: int = 0
    """`m_z`, those in the histogram."""
    epsilon: float = 0.0
    """The largest ε that one of them has spent."""
    round: int = 0
    """The last round that was reported."""
    drawn: tuple[int, ...] = ()
    left_out: Mapping[int, str] = field(default_factory=dict)
    attention: Mapping[int, float] = field(default_factory=dict)
    """`λ` of each zone that answered in that round."""
    loss: float = 0.0
    first: ZoneEvaluation | None = None
    last: ZoneEvaluation | None = None
    best: ZoneEvaluation | None = None
    attendance: Attendance = field(default_factory=Attendance)
    overdue: str = ""
    refusals: Mapping[str, int] = field(default_factory=dict)
    plan: int = 0
    """The version of the plan that it trains by."""
    diverged: str = ""
    version: str = ""
    """Of its edge's software; empty if that does not say."""
    waiting: Waiting | None = None
    """What its round waits for by its last report, if that takes unusually long. Not stored: a zone says it again."""
    absence: Absence = field(default_factory=Absence)
    """What was told of devices that are gone."""
    pause: float = 0.0
    """Seconds that it is usually silent between two reports (`silence.py`). Not stored."""
    unanswering: bool = False
    """Others wait for it, and its edge has fallen silent; until it is heard of, or lost. Not stored."""

    @property
    def enrolled(self) -> bool:
        """Whether an edge has ever spoken for it."""
        return self.said is not ZoneState.EXPECTED

    @property
    def missed(self) -> bool:
        """Whether it was lost in the middle of its work, and has neither come back nor left by its own word since."""
        return self.lost is not None and self.said not in ENDED

    @property
    def leased(self) -> bool:
        """Whether it is there: enrolled, neither lost nor left."""
        return self.enrolled and self.lost is None and not self.left

    @property
    def state(self) -> ZoneState:
        """Where it stands, as others see it: who has left or is lost cannot be asked for gradients."""
        if self.left:
            return ZoneState.LEFT
        return self.said if self.lost is None else ZoneState.LOST

    def waiting_at(self, now: float) -> Waiting | None:
        """What its round waits for, and for how long by now."""
        wait = self.waiting
        return None if wait is None else replace(wait, seconds=wait.seconds + max(0.0, now - self.heard))

    def stored(self) -> "Zone":
        """What of it outlives the cloud."""
        return replace(self, heard=0.0, waiting=None, absence=self.absence.stored(), pause=0.0, unanswering=False)


@dataclass(frozen=True)
class Contract:
    """What all zones must have alike, fixed by the first that submitted a histogram."""

    model: Model
    initial: bytes
    """SHA-256 of `θ⁰`."""
    zone: str
    """Whose it was."""


@dataclass(frozen=True)
class Fit:
    """A dendrogram to be made. Invariant: a zone's place in `zones` is by its number, and its row in `histograms`."""

    version: int
    reason: str
    zones: tuple[str, ...]
    histograms: tuple[Histogram, ...]


@dataclass(frozen=True)
class Plan:
    """A version of the dendrogram, and what it was made from."""

    version: int
    reason: str
    zones: tuple[str, ...]
    histograms: tuple[Histogram, ...]
    tree: str
    """The text of `dendrogram.json`."""
    time: float

    @cached_property
    def planned(self) -> Mapping[str, Histogram]:
        """The histograms by zone: every report asks for them, of every zone."""
        return dict(zip(self.zones, self.histograms, strict=True))


@dataclass(frozen=True)
class Failure:
    """A fit that gave no tree; not tried again until the zones are others."""

    zones: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class State:
    """All of it. Replaced as a whole, never changed: what others see is the state that was last written to disk."""

    run: RunFile
    started: float
    """When the run's first cloud started, in seconds since 1970: deadlines survive restarts."""
    lease: float
    zones: Mapping[str, Zone]
    """In the order of their numbers."""
    contract: Contract | None = None
    plan: Plan | None = None
    fitting: Fit | None = None
    """Not stored: a fit that a kill ends is due again, and the same seed gives the same tree."""
    failure: Failure | None = None
    """Not stored."""
    events: tuple[Event, ...] = ()
    ticked: float = 0.0

    def with_zone(self, zone: Zone) -> "State":
        """The state with that zone as it is now."""
        return replace(self, zones=MappingProxyType({**self.zones, zone.name: zone}))

    @property
    def ended(self) -> bool:
        """All zones of the plan are DONE, DIVERGED or LEFT, not all LEFT, and no other is on its way into a plan."""
        if self.plan is None:
            return False
        here = [zone for zone in self.zones.values() if not zone.left and zone.said not in ENDED]
        coming = any(zone.name in self.plan.planned or (zone.leased and not zone.overdue) for zone in here)
        return not coming and any(self.zones[name].said in ENDED for name in self.plan.zones)


@dataclass(frozen=True)
class Change:
    """What one event has changed: to be on disk before anybody is told."""

    state: State
    zones: tuple[Zone, ...] = ()
    contract: Contract | None = None
    plan: Plan | None = None
    events: tuple[Event, ...] = ()
    zone: str = ""
    """Whose rounds and evaluations they are."""
    rounds: tuple[RoundRecord, ...] = ()
    evaluations: tuple[ZoneEvaluation, ...] = ()

    @property
    def to_store(self) -> bool:
        """Whether there is anything to write: a report that only renews a lease costs no disk."""
        return bool(self.zones or self.contract or self.plan or self.events or self.rounds or self.evaluations)


def first_state(run: RunFile, *, started: float, lease: float = LEASE) -> State:
    """Before anybody has come."""
    zones = {name: Zone(name, number) for number, name in enumerate(run.zones.names)}
    return State(run, started, lease, MappingProxyType(zones), ticked=started)
