"""Which keys may change without making another run of it: a service that comes back goes on with its progress."""

from sgfusion.runfile import Deadlines, Quorum, RunFile


def without_places(run: RunFile) -> RunFile:
    """The run without its zones' places: they say how a map looks, and nothing is computed from them."""
    return run.model_copy(update={"zones": run.zones.model_copy(update={"places": None})})


def training_of(run: RunFile) -> RunFile:
    """The run as it trains: nor does it matter who is waited for, and how long."""
    return without_places(run).model_copy(update={"quorum": Quorum(), "deadlines": Deadlines()})
