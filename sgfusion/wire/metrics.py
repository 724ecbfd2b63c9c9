"""What a service shows Prometheus: a registry of its own, what all tiers show alike, and how the rest is told.

Names are `sgfusion_…`, in base units. Labels are few: zones have one, devices never. Imported only with `--metrics`.

  look() on the event loop: copies small numbers ──► text() in a thread: the exposition format
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cryptography import x509
from prometheus_client import CollectorRegistry, Counter, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from sgfusion.wire.channel import Keys
from sgfusion.wire.disk import Disk
from sgfusion.wire.measures import Hop, Measures, Traffic
from sgfusion.wire.status import REASONS, Refusals
from sgfusion.wire.version import version

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Seconds: from a step of a small model to a round that waits for its deadline."""
Values = Mapping[tuple[str, ...], float]
"""By the values of the labels, in their order."""


@dataclass(frozen=True)
class Described:
    """A metric: what docs/metrics.md says of it, and what Prometheus is told."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str


BUILD = Described(
    "sgfusion_build_info", "gauge", ("service", "version"), "Which tier it is, and of which version. Always 1."
)
CERTIFICATE = Described(
    "sgfusion_certificate_expiry_timestamp_seconds",
    "gauge",
    ("certificate",),
    "When it ends, in seconds since 1970: its own certificate (of many, the first to end), and the CA's.",
)
SENT = Described(
    "sgfusion_rpc_sent_bytes_total", "counter", ("rpc", "side"), "Bytes of messages sent, without gRPC's own."
)
RECEIVED = Described(
    "sgfusion_rpc_received_bytes_total", "counter", ("rpc", "side"), "Bytes of messages received, without gRPC's own."
)
REFUSALS = Described(
    "sgfusion_refusals_total",
    "counter",
    ("reason",),
    "Calls that it refused, by the kind of error; device hosts serve nobody, and have none.",
)
RETRIES = Described(
    "sgfusion_retries_total",
    "counter",
    ("hop", "zone"),
    "Times that somebody was tried again, by who it was; zone is the service's own.",
)
FREE = Described(
    "sgfusion_state_free_bytes",
    "gauge",
    (),
    "Free for it on the file system of its state; of a disk that hangs, as last known.",
)
SIZE = Described("sgfusion_state_size_bytes", "gauge", (), "Size of the file system of its state.")
COMMON = (BUILD, CERTIFICATE, SENT, RECEIVED, REFUSALS, RETRIES, FREE, SIZE)
"""What every tier shows. Beside these, `process_…` and `python_info` are those of every Python program."""


class Metrics(Measures, Collector):
    """One service's metrics. Tiers say what they see in `seen`, and count in methods of their own."""

    def __init__(
        self, tier: str, *, durations: Described, refusals: Refusals | None, keys: Sequence[Keys], state: Path
    ) -> None:
        self.traffic = self._bytes = Traffic()
        self.refusals = refusals
        self.registry = CollectorRegistry()
        self._durations = histogram(durations, self.registry)
        self._retries = counter(RETRIES, self.registry)
        self._disk = Disk(state)
        self._fixed: list[tuple[Described, Values]] = [
            (BUILD, {(tier, version()): 1.0}),
            (CERTIFICATE, _ends(keys)),
        ]
        self._seen: list[tuple[Described, Values]] = []
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.registry.register(self)

    # What it is told

    def phase(self, name: str) -> AbstractContextManager[object]:
        """Around a phase of the work."""
        return self._durations.labels(*self._constant(), name).time()

    def took(self, name: str, seconds: float) -> None:
        """A phase that was timed elsewhere."""
        self._durations.labels(*self._constant(), name).observe(seconds)

    def retried(self, hop: Hop, zone: str) -> None:
        """Somebody is tried again."""
        self._retries.labels(hop, zone).inc()

    def _constant(self) -> tuple[str, ...]:
        """Labels that all durations of this service have before the phase."""
        return ()

    # What it shows

    def seen(self) -> Iterable[tuple[Described, Values]]:
        """What there is to see of the service now; on its event loop, so it has to be quick."""
        return ()

    def look(self) -> None:
        """See how things stand; on the event loop, where nothing changes meanwhile."""
        # From 0 on: of a counter that begins with its first event, Prometheus does not see that event as a rise.
        refused = dict.fromkeys(REASONS, 0) | self.refusals.counts() if self.refusals is not None else {}
        self._seen = [
            *self._fixed,
            (SENT, dict(self._bytes.sent)),
            (RECEIVED, dict(self._bytes.received)),
            (REFUSALS, {(reason,): count for reason, count in refused.items()}),
            *self.seen(),
        ]

    def text(self) -> bytes:
        """All of it as of the last look, in the text format; in a thread, for it takes a while."""
        return generate_latest(_Visible(self.registry))

    def describe(self) -> Iterable[Metric]:
        """Nothing: asked for when it is registered, before there is anything to see."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """What was seen, and the disk, which may take its time."""
        space = self._disk.space()
        free: Values = {} if space is None else {(): space.free}
        size: Values = {} if space is None else {(): space.size}
        for what, values in (*self._seen, (FREE, free), (SIZE, size)):
            made = Metric(what.name.removesuffix("_total"), what.help, what.kind)
            for labels, value in values.items():
                made.add_sample(what.name, dict(zip(what.labels, labels, strict=True)), value)
            yield made


class _Visible(Collector):
    """A registry without the times at which its counters were made: they double the series, and nobody asks."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric


def histogram(what: Described, registry: CollectorRegistry) -> Histogram:
    """A histogram of durations."""
    return Histogram(what.name, what.help, what.labels, buckets=BUCKETS, registry=registry)


def counter(what: Described, registry: CollectorRegistry) -> Counter:
    """A counter."""
    return Counter(what.name, what.help, what.labels, registry=registry)


def _ends(keys: Sequence[Keys]) -> Values:
    if not keys:
        return {}
    own = (x509.load_pem_x509_certificate(each.certificate) for each in keys)
    authorities = (x509.load_pem_x509_certificate(ca) for ca in {each.ca for each in keys})
    return {
        ("own",): min(certificate.not_valid_after_utc.timestamp() for certificate in own),
        ("ca",): min(certificate.not_valid_after_utc.timestamp() for certificate in authorities),
    }
