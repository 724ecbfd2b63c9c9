"""Metrics of a host of devices: who attends, what they compute and how long. Never of one device (docs/metrics.md)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import get_args

from device.compute import Compute
from device.measures import DeviceMeasures, Outcome
from sgfusion.errors import ContractError, IdentityError, SilentError, UnavailableError, UnprovenError
from sgfusion.wire.attending import AskKind
from sgfusion.wire.channel import Keys
from sgfusion.wire.endpoint import Endpoint
from sgfusion.wire.metrics import Described, Metrics, Values, counter
from sgfusion.wire.metrics_server import MetricsServer

ZONE = ("zone",)
HOSTED = Described("sgfusion_device_hosted", "gauge", ZONE, "Devices in this process; one that roams is in each zone.")
ATTENDING = Described("sgfusion_device_attending", "gauge", ZONE, "Those of them that their zone's edge has taken in.")
REFUSALS = Described(
    "sgfusion_device_refusals_total",
    "counter",
    ("zone", "reason"),
    "Times that a device could not attend, or its stream broke, by the kind of error, as its edge or gRPC said.",
)
DURATIONS = Described(
    "sgfusion_device_phase_duration_seconds",
    "histogram",
    ("phase",),
    "direction (a gradient, or local steps), evaluation, initial (first weights), queueing (for a thread).",
)
ANSWERS = Described(
    "sgfusion_device_answers_total",
    "counter",
    ("kind", "outcome"),
    "Answers by kind of question and outcome: computed, remembered (asked again), failed.",
)
COMPUTATIONS = Described(
    "sgfusion_device_computations", "gauge", ("state",), "Pieces of work: waiting for a thread, or running."
)
EXPECTED = (UnavailableError, SilentError, UnprovenError, IdentityError, ContractError)
"""Why devices cannot attend, as a rule."""
DESCRIBED = (HOSTED, ATTENDING, REFUSALS, DURATIONS, ANSWERS, COMPUTATIONS)


class DeviceMetrics(DeviceMeasures, Metrics):
    """What a host measures and shows."""

    def __init__(self, zones: Sequence[str], compute: Compute, *, keys: Sequence[Keys], state: Path) -> None:
        """`zones` has each device's zone once for each device."""
        super().__init__("device", durations=DURATIONS, refusals=None, keys=keys, state=state)
        self._compute = compute
        self._hosted = Counter(zones)
        self._attending: Counter[str] = Counter()
        self._refused = counter(REFUSALS, self.registry)
        self._answers = counter(ANSWERS, self.registry)
        for zone in self._hosted:
            self._retries.labels("edge", zone)  # from 0 on
            for kind in EXPECTED:
                self._refused.labels(zone, kind.__name__)
        for kind, outcome in product(get_args(AskKind), get_args(Outcome)):
            self._answers.labels(kind, outcome)  # so that the first failure is a rise

    def attends(self, zone: str) -> None:
        """One more."""
        self._attending[zone] += 1

    def left(self, zone: str) -> None:
        """One less."""
        self._attending[zone] -= 1

    def refused(self, zone: str, reason: str) -> None:
        """One more."""
        self._refused.labels(zone, reason).inc()

    def answered(self, kind: AskKind, outcome: Outcome) -> None:
        """One more."""
        self._answers.labels(kind, outcome).inc()

    def seen(self) -> Iterable[tuple[Described, Values]]:
        """How the host stands."""
        yield HOSTED, {(zone,): count for zone, count in self._hosted.items()}
        yield ATTENDING, {(zone,): self._attending[zone] for zone in self._hosted}
        yield COMPUTATIONS, {(state,): count for state, count in self._compute.queue().items()}


def shown_at(
    endpoint: Endpoint, compute: Compute, zones: Sequence[str], *, keys: Sequence[Keys], state: Path
) -> MetricsServer:
    """The host's measures are kept from now on, and shown there once that is started."""
    compute.measures = metrics = DeviceMetrics(zones, compute, keys=keys, state=state)
    return MetricsServer(endpoint, metrics, state)
