"""What the cloud tells of its own work as it works; `metrics.py` keeps it, if somebody wants to know."""

from sgfusion.wire.measures import Measures


class CloudMeasures(Measures):
    """Forgets it all. Phases are `fit` (a dendrogram), `store` (a batch on disk) and `report` (from call to answer)."""

    def reported(self, rounds: int) -> None:
        """So many rounds were reported, and are on disk."""
