"""Devices that are gone from a zone, and back: one event a transition, however many devices and reports it takes.

Told by `tick`, once the number has settled: of a host that dies, streams end one by one. Not while devices gather, nor
after an edge or the cloud has come back, until devices had time to do so too; nor, when a zone has ended, of more than
that those are back who were told to be gone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sgfusion.reports import Attendance, by_reason
from sgfusion.wire.cloud_messages import short

SETTLED = 1.0
"""Seconds without a change after which a number of devices counts."""
COMING_BACK = 10.0
"""Seconds for devices to find an edge that was started anew: they try at intervals of up to five."""


@dataclass(frozen=True)
class Absence:
    """How many of a zone's devices are gone, and what of it was told."""

    gone: int = 0
    since: float = 0.0
    """When it was last another number."""
    quiet_until: float = 0.0
    told: int = 0

    def seen(self, attendance: Attendance, now: float) -> "Absence":
        """By a zone's report."""
        gone = len(gone_of(attendance))
        return self if gone == self.gone else replace(self, gone=gone, since=now)

    def quiet(self, now: float) -> "Absence":
        """An edge, or the cloud, has come back."""
        return replace(self, quiet_until=now + COMING_BACK)

    def stored(self) -> "Absence":
        """What of it outlives the cloud: that those are back who were told to be gone is news after a restart too."""
        return Absence(gone=self.gone, told=self.told)

    def settled(self, now: float) -> bool:
        """Whether there is something that was not told, and it lasts."""
        return self.gone != self.told and now >= max(self.quiet_until, self.since + SETTLED)

    def text(self, attendance: Attendance) -> str:
        """What to tell: that more are gone than was told, or that all are back; empty if only some of them are."""
        gone = gone_of(attendance)
        total = len(attendance.attending) + len(gone)
        if not gone:
            return "its device attends again" if total == 1 else f"all {total} devices attend again"
        if len(gone) < self.told:
            return ""
        are = "is" if len(gone) == 1 else "are"
        # Reasons are the edge's own words: their number is bounded by their teller, their length here.
        return short(f"{len(gone)} of {total} devices {are} gone: {by_reason(gone)}")


def gone_of(attendance: Attendance) -> Mapping[str, str]:
    """Devices that were there once and have no open stream, and why; one that is only late has one."""
    here = set(attendance.attending)
    return {device: why for device, why in attendance.missing.items() if device not in here}
