"""Devices that are gone from a zone, and back: one event a transition, however many devices and reports it takes.

Told by `tick`, once the number has settled: of a host that dies, streams end one by one. Who is back before that was
gone for a moment, which is an event too, for a round may have waited for it; of those no more than one in `APART`. Not
while devices gather, nor after an edge or the cloud has come back, until devices had time to do so too; nor, when a
zone has ended, of more than that those are back who were told to be gone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sgfusion.reports import Attendance, by_reason, duration
from sgfusion.wire.words import short

SETTLED = 1.0
"""Seconds without a change after which a number of devices counts."""
UNSETTLED = 10.0
"""Seconds after which it is told that devices come and go, if they never settle."""
APART = 60.0
"""Seconds between two events that devices were gone for a moment: a line that fails again and again is one matter."""
COMING_BACK = 10.0
"""Seconds for devices to find an edge that was started anew: they try at intervals of up to five."""


@dataclass(frozen=True)
class Absence:
    """How many of a zone's devices are gone, and what of it was told."""

    gone: int = 0
    since: float = 0.0
    """When devices last went or came."""
    quiet_until: float = 0.0
    told: int = 0
    departures: int | None = None
    """The edge's own count of streams that have ended; None before it was heard."""
    ended: int = 0
    """How many have of which nothing was told."""
    began: float = 0.0
    """When the first of those did."""
    passing_told: float | None = None
    """When it was last told that devices were gone for a moment."""

    def seen(self, attendance: Attendance, now: float) -> "Absence":
        """By a zone's report, of this moment: who went and came since the last one is only counted."""
        gone, counted = len(gone_of(attendance)), attendance.departures
        before = counted if self.departures is None else self.departures
        # Another process of the edge begins to count anew; one of an earlier version does not count.
        ended = max(gone - self.gone, counted - before if counted >= before else counted, 0)
        if gone == self.gone and not ended:
            return replace(self, departures=counted)
        seen = replace(self, gone=gone, since=now, departures=counted)
        if now < self.quiet_until:
            return seen
        return replace(seen, ended=self.ended + ended, began=self.began if self.ended else now)

    def quiet(self, now: float) -> "Absence":
        """An edge, or the cloud, has come back."""
        return replace(self, quiet_until=now + COMING_BACK, ended=0)

    def unmissed(self) -> "Absence":
        """The zone is not at work: who was gone for a moment held up nothing."""
        return replace(self, ended=0)

    def stored(self) -> "Absence":
        """What of it outlives the cloud: that those are back who were told to be gone is news after a restart too."""
        return Absence(gone=self.gone, told=self.told)

    def settled(self, now: float) -> bool:
        """Whether there is something that was not told, and it lasts, or is over."""
        if now < self.quiet_until:
            return False
        calm = now >= self.since + SETTLED
        return (calm and self.gone != self.told) or self._passing(now, calm=calm)

    def _passing(self, now: float, *, calm: bool) -> bool:
        if not self.ended or self.gone != self.told:
            return False
        due = self.passing_told is None or now >= self.passing_told + APART
        return due and (calm or now >= self.began + UNSETTLED)

    def after(self, now: float) -> "Absence":
        """When what is settled was told."""
        passing = now if self.gone == self.told else self.passing_told
        return replace(self, told=self.gone, ended=0, passing_told=passing)

    def text(self, attendance: Attendance, now: float) -> str:
        """What to tell: that more are gone than was told, that all are back, or were gone for a moment, or who is gone
        while others come and go; empty if only some of them are back.
        """
        gone = gone_of(attendance)
        total = len(attendance.attending) + len(gone)
        are = "is" if len(gone) == 1 else "are"
        # Reasons are the edge's own words: their number is bounded by their teller, their length here.
        absent = f"{len(gone)} of {total} devices {are} gone: {by_reason(gone)}"
        if self.gone == self.told:
            if gone:  # perhaps others than were told, or the same again: who starts, and ends, and starts
                streams = "a stream" if self.ended == 1 else f"{self.ended} streams"
                return short(f"{absent}; {streams} ended meanwhile")
            if self.ended == 1:
                return "a device was gone for a moment, and attends again"
            within = f" within {duration(now - self.began)}" if now - self.began >= UNSETTLED else ""
            return f"devices were gone for a moment, and attend again: {self.ended} streams ended{within}"
        if not gone:
            return "its device attends again" if total == 1 else f"all {total} devices attend again"
        if len(gone) < self.told:
            return ""
        return short(absent)


def gone_of(attendance: Attendance) -> Mapping[str, str]:
    """Devices that were there once and have no open stream, and why; one that is only late has one."""
    here = set(attendance.attending)
    return {device: why for device, why in attendance.missing.items() if device not in here}
