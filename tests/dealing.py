"""How tests are dealt to workers (`--dist loadscope`): what takes long first, and few at a time to the engine.

Tests across containers wait most of the time, for a fault to last or for a container to start, while those of clusters
compute: beside each other they fill the cores. But an engine that many want things of at once does nothing in time. So
its tests are in lanes, each the work of one worker.
"""

from pathlib import PurePosixPath

from xdist.scheduler import LoadScopeScheduling

LANES = (("test_edge_elsewhere.py", "test_observe.py"), ("test_faults.py",))
"""Files of tests/containers that one worker has, one after the other; a last lane has all others. About as long."""
LONG = ("cluster", "metrics", "repository", "kubernetes", "benchmarks", "cloud")
"""Folders whose tests start processes: each test is dealt by itself, and before all others, whose files stay whole."""
TOGETHER = ("cluster/test_logs.py", "repository/test_distribution.py", "kubernetes/test_overlay.py")
"""Files of theirs whose tests share what takes long."""


class Dealing(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Whole lanes and files to one worker. Groups by mark (`--dist loadgroup`) would do, but xdist 3.8 hangs them on
    what pytest 9.2 no longer reads.
    """

    def _split_scope(self, nodeid: str) -> str:
        return whose(nodeid)


def turn(nodeid: str) -> int:
    """When a test is begun: the lower, the sooner."""
    folder = _place(nodeid).parts[0]
    if folder == "containers":
        return -1
    return LONG.index(folder) if folder in LONG else len(LONG)


def whose(nodeid: str) -> str:
    """Tests of one answer have one worker."""
    place = _place(nodeid)
    if place.parts[0] == "containers":
        return f"lane {next((number for number, lane in enumerate(LANES) if place.name in lane), len(LANES))}"
    alone = place.parts[0] in LONG and str(place) not in TOGETHER
    return nodeid if alone else str(place)


def _place(nodeid: str) -> PurePosixPath:
    return PurePosixPath(nodeid.partition("::")[0]).relative_to("tests")
