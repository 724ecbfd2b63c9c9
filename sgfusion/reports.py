"""What zones report to the cloud, and how a run stands: the domain side of `cloud.proto`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sgfusion.evaluation import Metric, Score
from sgfusion.plan import ZoneState
from sgfusion.waiting import Waiting
from sgfusion.zone_trainer import RoundReport


@dataclass(frozen=True)
class Model:
    """A model as its weights are sent: all that edges know of it."""

    fingerprint: str
    length: int
    metric: Metric
    bins: int
    edges: tuple[float, ...] = field(default=(), compare=False)
    """Where its bins begin and end, for people; empty from who is of an earlier version, which makes no other model."""


@dataclass(frozen=True)
class RoundRecord:
    """A round, and what only a cluster knows of it."""

    report: RoundReport
    devices_left_out: Mapping[str, str]
    """The zone's own devices that gave no gradient, and why."""
    device_gradients: int
    bytes_sent: int
    loss: float
    """`F_z(θ)` at the weights that the round began with."""


@dataclass(frozen=True)
class ZoneEvaluation:
    """The zone's model after a round, on the held-out samples of its devices. Round 0 is before training."""

    round: int
    validation: Score
    test: Score
    best: bool
    """Whether it was then the best on the validation samples."""


NOT_YET = "has not attended since the edge started"
"""Why a device of the roster is missing that may be starting, as its edge did."""


@dataclass(frozen=True)
class Attendance:
    """The devices of a zone."""

    expected: int = 0
    """How many the edge was told to expect; 0 if it was not told."""
    attending: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    """Those that were there once and are not now, or have not answered in time, and why."""
    departures: int = 0
    """Streams of its devices that have ended since the edge's process began; 0 also from one that does not count."""
    other_versions: int = 0
    """How many of those attending say that their software is of another version than the edge's."""

    def missed(self, *, overdue: bool) -> dict[str, str]:
        """Whom somebody should look for, and why. Who has not come yet since the edge started is starting too, and only
        counted, unless the zone has waited for too long.
        """
        return {device: why for device, why in self.missing.items() if overdue or why != NOT_YET}


def by_reason(whys: Mapping[str, str], most: int = 3) -> str:
    """`u1, u2 and 22 more (its stream has ended); u7 (…)`, what befell most of them first: a lost host is one line. So
    many names are said of a reason, and so many reasons.
    """
    named: dict[str, list[str]] = {}
    for name, why in whys.items():
        named.setdefault(why, []).append(name)
    groups = sorted(named.items(), key=lambda group: -len(group[1]))
    told = [
        ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "") + f" ({why})"
        for why, names in groups[:most]
    ]
    if more := sum(len(names) for _, names in groups[most:]):
        told.append(f"and {more} more for other reasons")
    return "; ".join(told)


def duration(seconds: float) -> str:
    """Roughly, as a person would say it."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


@dataclass(frozen=True)
class ZoneReport:
    """What an edge tells the cloud, at least every third of its lease."""

    zone: str
    state: ZoneState
    round: int
    rounds: tuple[RoundRecord, ...] = ()
    evaluations: tuple[ZoneEvaluation, ...] = ()
    attendance: Attendance = Attendance()
    overdue: str = ""
    refusals: Mapping[str, int] = field(default_factory=dict)
    plan: int = 0
    diverged: str = ""
    version: str = ""
    """Of the edge's software; empty from an earlier one, which does not say."""
    waiting: Waiting | None = None
    """What its round waits for, if that takes unusually long."""


@dataclass(frozen=True)
class ZoneStatus:
    """A zone as the console sees it."""

    number: int
    zone: str
    address: str
    state: ZoneState
    round: int = 0
    attendance: Attendance = Attendance()
    drawn: tuple[int, ...] = ()
    left_out: Mapping[int, str] = field(default_factory=dict)
    loss: float = 0.0
    first: ZoneEvaluation | None = None
    last: ZoneEvaluation | None = None
    best: ZoneEvaluation | None = None
    overdue: str = ""
    refusals: Mapping[str, int] = field(default_factory=dict)
    plan: int = 0
    diverged: str = ""
    leased: bool = False
    attention: Mapping[int, float] = field(default_factory=dict)
    """`λ` of each zone that answered in its last round."""
    epsilon: float = 0.0
    """The largest ε that a device of its histogram has spent; 0 if histograms are not noised."""
    version: str = ""
    """Of its edge's software, by its last report; empty if that did not say."""
    waiting: Waiting | None = None
    """What its round waits for, if that takes unusually long."""
    unanswering: bool = False
    """Others wait for it, and its edge has fallen silent."""

    @property
    def standing(self) -> str:
        """Its state in the words that every view has."""
        return standing(self.state, unanswering=self.unanswering)


NOT_ANSWERING = "not answering"
STANDINGS = (*(state.value for state in ZoneState), NOT_ANSWERING)


def standing(state: ZoneState, *, unanswering: bool) -> str:
    """Where a zone stands, in a word or two for people: of one that answers nobody, nobody knows whether it trains."""
    return NOT_ANSWERING if unanswering else state.value


@dataclass(frozen=True)
class Event:
    """What happened, in words for people; `time` in seconds since 1970 by the cloud's clock."""

    time: float
    text: str


@dataclass(frozen=True)
class RunStatus:
    """How a run stands."""

    run: str
    rounds: int
    plan: int
    reason: str
    zones: tuple[ZoneStatus, ...]
    finished: bool
    overdue: str = ""
    refusals: Mapping[str, int] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    metric: Metric | None = None
    time: float = 0.0
    """When this was said, in seconds since 1970 by the cloud's clock."""
    version: str = ""
    """Of the cloud's software; empty from an earlier one, which does not say."""


@dataclass(frozen=True)
class PlanVersion:
    """A version of the plan that there is or was."""

    version: int
    reason: str
    zones: int
    """How many were in it."""
    time: float
    """When it was made, in seconds since 1970 by the cloud's clock."""


@dataclass(frozen=True)
class ZoneRecords:
    """All that a zone has reported, for a results folder."""

    zone: str
    rounds: tuple[RoundRecord, ...]
    evaluations: tuple[ZoneEvaluation, ...]
    parameters: int
    devices: int
    diverged: str = ""
    histogram: tuple[float, ...] = ()
    """`Y_z` as it was last submitted."""
    epsilon: float = 0.0
    """The largest ε that a device of that mean has spent; 0 if histograms are not noised."""
