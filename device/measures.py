"""What a host of devices tells of its own work as it works; `metrics.py` keeps it, if somebody wants to know."""

from typing import Literal

from sgfusion.wire.attending import AskKind
from sgfusion.wire.measures import Measures

Outcome = Literal["computed", "remembered", "failed"]


class DeviceMeasures(Measures):
    """Forgets it all. Phases are the kinds of questions, and `queueing`: from a question to the first thread for it."""

    def attends(self, zone: str) -> None:
        """An edge has taken one of the host's devices in."""

    def left(self, zone: str) -> None:
        """The stream of one that was in has ended."""

    def refused(self, zone: str, reason: str) -> None:
        """A device could not attend, or its stream broke: with this kind of error, mostly the edge's."""

    def answered(self, kind: AskKind, outcome: Outcome) -> None:
        """A device has an answer: a new one, one from memory, or that it cannot."""
