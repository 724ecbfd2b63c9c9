"""An edge's metrics: its rounds and their phases, its devices, its peers, its link to the cloud (docs/metrics.md)."""

import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from edge.measures import EdgeMeasures
from edge.zone import Zone
from sgfusion.plan import ZoneState
from sgfusion.reports import RoundRecord
from sgfusion.wire.channel import Keys
from sgfusion.wire.endpoint import Endpoint
from sgfusion.wire.metrics import Described, Metrics, Values, counter, histogram
from sgfusion.wire.metrics_server import MetricsServer

ZONE = ("zone",)
ROUNDS = Described("sgfusion_edge_rounds_total", "counter", ZONE, "Rounds finished since the edge started.")
ROUND = Described("sgfusion_edge_round", "gauge", ZONE, "The last finished round.")
UNSAVED = Described("sgfusion_edge_rounds_unsaved", "gauge", ZONE, "Finished rounds that are not on disk yet.")
ROUND_TIME = Described("sgfusion_edge_round_duration_seconds", "histogram", ZONE, "Whole rounds, without evaluations.")
DURATIONS = Described(
    "sgfusion_edge_phase_duration_seconds",
    "histogram",
    ("zone", "phase"),
    "Of a round: own (the zone's devices), peer (one drawn zone), fuse (and step). After it: evaluation, checkpoint.",
)
CHECKPOINT = Described(
    "sgfusion_edge_checkpoint_timestamp_seconds", "gauge", ZONE, "When its last checkpoint was written."
)
DEVICES = Described(
    "sgfusion_edge_devices",
    "gauge",
    ("zone", "state"),
    "Devices by state: attending, late (here, but did not answer in time), gone (was here once).",
)
EXPECTED = Described("sgfusion_edge_devices_expected", "gauge", ZONE, "Devices that the edge was told to wait for.")
NEEDED = Described("sgfusion_edge_devices_needed", "gauge", ZONE, "Devices that the quorum asks for.")
DEVICES_OUT = Described(
    "sgfusion_edge_devices_left_out_total", "counter", ZONE, "Devices that gave no gradient, added up over rounds."
)
DRAWN = Described("sgfusion_edge_peers_drawn_total", "counter", ZONE, "Zones drawn, added up over rounds.")
PEERS_OUT = Described(
    "sgfusion_edge_peers_left_out_total", "counter", ZONE, "Zones drawn that gave no gradient, added up over rounds."
)
UNRELIABLE = Described(
    "sgfusion_edge_peers_unreliable", "gauge", ZONE, "Zones that let a whole budget pass, and have not answered since."
)
QUESTIONS = Described(
    "sgfusion_edge_questions", "gauge", ("zone", "state"), "Questions to its devices: waiting for their turn, or asked."
)
UNTOLD = Described("sgfusion_edge_records_untold", "gauge", ZONE, "Rounds and evaluations that the cloud lacks.")
REPORTED = Described(
    "sgfusion_edge_reported_timestamp_seconds",
    "gauge",
    ZONE,
    "When the cloud last took a report; before the first, when the edge started.",
)
PLAN = Described("sgfusion_edge_plan_version", "gauge", ZONE, "Version of the plan that it trains by; 0 before one.")
STATE = Described("sgfusion_edge_zone_state", "gauge", ("zone", "state"), "1 for the state that the zone is in.")
OVERDUE = Described("sgfusion_edge_overdue", "gauge", ZONE, "1 while it waits for devices beyond a deadline.")
DESCRIBED = (
    ROUNDS, ROUND, UNSAVED, ROUND_TIME, DURATIONS, CHECKPOINT, DEVICES, EXPECTED, NEEDED, DEVICES_OUT, DRAWN, PEERS_OUT,
    UNRELIABLE, QUESTIONS, UNTOLD, REPORTED, PLAN, STATE, OVERDUE,
)  # fmt: skip
STATES = (ZoneState.GATHERING, ZoneState.WAITING, ZoneState.TRAINING, ZoneState.DONE, ZoneState.DIVERGED)
"""Those that an edge knows of itself."""


class EdgeMetrics(EdgeMeasures, Metrics):
    """What one zone's edge measures and shows."""

    def __init__(self, zone: Zone, *, keys: Sequence[Keys], state: Path) -> None:
        super().__init__("edge", durations=DURATIONS, refusals=zone.refusals, keys=keys, state=state)
        self._zone = zone
        self._rounds, self._drawn, self._peers_out, self._devices_out = (
            counter(each, self.registry).labels(zone.zone) for each in (ROUNDS, DRAWN, PEERS_OUT, DEVICES_OUT)
        )
        self._whole = histogram(ROUND_TIME, self.registry).labels(zone.zone)
        self._saved: float | None = None
        self._reported = time.time()
        for hop in ("cloud", "peer", "device"):
            self._retries.labels(hop, zone.zone)  # from 0 on

    def phase(self, name: str) -> AbstractContextManager[object]:
        """A round, or a phase of it."""
        return self._whole.time() if name == "round" else super().phase(name)

    def _constant(self) -> tuple[str, ...]:
        return (self._zone.zone,)

    def finished(self, record: RoundRecord) -> None:
        """A round more."""
        self._rounds.inc()
        self._drawn.inc(len(record.report.drawn))
        self._peers_out.inc(len(record.report.left_out))
        self._devices_out.inc(len(record.devices_left_out))

    def saved(self, time: float) -> None:
        """The last checkpoint is of then."""
        self._saved = time

    def told(self) -> None:
        """The cloud is there."""
        self._reported = time.time()

    def seen(self) -> Iterable[tuple[Described, Values]]:
        """How the zone stands."""
        zone, name = self._zone, self._zone.zone
        round = zone.round if zone.last is None else zone.last[0]
        yield ROUND, {(name,): round}
        yield UNSAVED, {(name,): max(0, round - zone.round)}
        yield CHECKPOINT, {} if self._saved is None else {(name,): self._saved}
        yield EXPECTED, {(name,): zone.expected}
        yield UNTOLD, {(name,): zone.untold}
        yield REPORTED, {(name,): self._reported}
        yield PLAN, {(name,): zone.plan_in_use}
        yield STATE, {(name, state.value): float(zone.state is state) for state in STATES}
        if not zone.enrolled.is_set():  # who its devices are is known once it has the run
            yield from ((what, {}) for what in (DEVICES, NEEDED, UNRELIABLE, QUESTIONS, OVERDUE))
            return
        devices = zone.devices
        yield DEVICES, {(name, state): count for state, count in devices.census().items()}
        yield NEEDED, {(name,): devices.needed(zone.expected if zone.roster is None else len(devices.members))}
        yield UNRELIABLE, {(name,): len(zone.peers.unreliable)}
        yield QUESTIONS, {(name, state): count for state, count in devices.queue().items()}
        yield OVERDUE, {(name,): float(bool(zone.overdue or devices.waiting_for()))}


def shown_at(endpoint: Endpoint, zone: Zone, *, keys: Keys | None, state: Path) -> MetricsServer:
    """The edge's measures are kept from now on, and shown there once that is started."""
    zone.measures = metrics = EdgeMetrics(zone, keys=() if keys is None else (keys,), state=state)
    return MetricsServer(endpoint, metrics, state)
