"""What an edge tells of its own work as it works; `metrics.py` keeps it, if somebody wants to know."""

from sgfusion.reports import RoundRecord
from sgfusion.wire.measures import Measures


class EdgeMeasures(Measures):
    """Forgets it all. Phases are `round`, and within it `own`, `peer` and `fuse`; then `evaluation`, `checkpoint`."""

    def finished(self, record: RoundRecord) -> None:
        """A round is finished, not yet on disk."""

    def saved(self, time: float) -> None:
        """The last checkpoint was written then, in seconds since 1970."""

    def told(self) -> None:
        """The cloud has taken a report."""
