"""Zones whose edges do not answer, before their leases run out: others wait for them, and nothing is heard of them.

Either alone is no proof. A zone that others wait for may have slow devices, and says so itself; one that is silent may
be in a long round. Only the cloud hears of both.
"""

from collections.abc import Iterable

from cloud.state import Zone
from sgfusion.plan import ZoneState

LEAST = 3.0
"""Seconds of silence that are not unusual, however often a zone reports."""
TIMES = 2.0
"""As long as it is usually silent between two reports: that is unusual."""
SURELY = 0.5
"""Of a lease: whoever is there has reported by then, for it does so every third of it."""


def fallen_silent(zones: Iterable[Zone], now: float, lease: float) -> set[str]:
    """Who does not answer any more, and was not known to."""
    known = list(zones)
    waited_for = {number for zone in known if zone.leased and zone.waiting for number in zone.waiting.zones}
    return {
        zone.name
        for zone in known
        if zone.number in waited_for
        and zone.leased
        and zone.said is ZoneState.TRAINING
        and not zone.unanswering
        and now - zone.heard > _patience(zone, lease)
    }


def _patience(zone: Zone, lease: float) -> float:
    surely = SURELY * lease
    if zone.waiting is not None:  # it has said why it does not answer, and has nothing to add
        return surely
    return min(surely, max(LEAST, TIMES * zone.pause))


def pause(zone: Zone, now: float) -> float:
    """How long the zone is usually silent, when it is heard of: as long as lately, a long silence ago counts less."""
    if zone.unanswering or not zone.leased or not zone.heard:
        return zone.pause / 2
    return max(now - zone.heard, zone.pause / 2)
