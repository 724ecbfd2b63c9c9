"""A page that is told by hand how a run stands, for what a cluster does only once in a while."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from tests.cloud.page.sites import Served, Talk, served

ZONES = ("ash", "birch", "elm")
ROUNDS = 20


def a_zone(number: int, **said: Any) -> dict[str, Any]:
    """A zone's status after two rounds, in which it drew the next one."""
    return {
        "number": number, "name": ZONES[number], "state": "training", "round": 2, "attending": 2, "expected": 2,
        "late": {}, "gone": {}, "attention": {str((number + 1) % 3): 1.0}, "left_out": {}, "left_out_so_far": {},
        "best": {"round": 0, "validation": 4.0, "test": 5.0}, "overdue": "", "refusals": {}, "leased": True,
        "diverged": "", "bytes": 1000, **said,
    }  # fmt: skip


def a_picture() -> dict[str, Any]:
    """Three zones that have trained two of twenty rounds."""
    head = {
        "time": 1.7e9, "plan": 1, "reason": "", "finished": False, "overdue": "", "refusals": {},
        "rounds_per_minute": None, "bytes": 3000, "kept": None,
    }  # fmt: skip
    places = [(0.1, 0.1), (0.9, 0.1), (0.5, 0.9)]
    zone = {"place": None, "histogram": None, "devices": 2, "epsilon": 0.0, "before": 5.0, "alone": None}
    return {
        "run": {
            "name": "told", "seed": 1, "rounds": ROUNDS, "task": "linear", "sampler": "hrg", "sharpness": 1.0,
            "epsilon": "off", "budget": None, "every": 2, "live": True, "title": "SGFusion", "synthetic": True,
            "version": "0.0.0", "started": None, "comparing": False,
        },
        "metric": {"name": "RMSE", "unit": "", "lower_is_better": True}, "edges": [], "tree": None, "plans": [],
        "zones": [{"number": n, "name": name, "at": places[n], **zone} for n, name in enumerate(ZONES)],
        "status": {**head, "zones": [a_zone(number) for number in range(3)]},
        "series": {name: {"evaluations": [[0, 4.0, 5.0, 1]], "rounds": [[1, 1, 0.5], [2, 1, 0.5]]} for name in ZONES},
        "pooled": [[0, 4.0, 5.0]], "events": [],
    }  # fmt: skip


class Told(Talk):
    """A `Source` of what a test says. `rounds` are the answers to /api/round; of others it knows nothing, and fails."""

    def __init__(self) -> None:
        super().__init__()
        self.document = a_picture()
        self.rounds: dict[int, dict[str, Any]] = {}
        self.asked: list[int] = []

    def picture(self) -> str:
        return json.dumps(self.document)

    async def round(self, number: int) -> str:
        self.asked.append(number)
        return json.dumps(self.rounds[number])


class Hand:
    """Says on the stream what changes, and puts it into the picture."""

    def __init__(self, site: Served, source: Told) -> None:
        self.url, self.source, self._site = site.place.url, source, site

    def zone(self, number: int, series: Mapping[str, Any] | None = None, **said: Any) -> None:
        """A zone has changed."""
        status = self.source.document["status"]
        status["zones"][number] |= said
        self._say({"status": {**status, "zones": [status["zones"][number]]}, "series": series or {}, "pooled": []})

    def head(self, **said: Any) -> None:
        """The run has."""
        status = self.source.document["status"]
        status |= said
        self._say({"status": {**status, "zones": []}, "series": {}, "pooled": []})

    def stop(self) -> None:
        """The page's server ends."""
        self._site.stop()

    def _say(self, message: Mapping[str, Any]) -> None:
        self._site.say(("status", json.dumps(message)))


@contextmanager
def told(**status: Mapping[str, Any]) -> Iterator[Hand]:
    """The page of that run, with the status of some zones otherwise."""
    source: list[Told] = []

    def make() -> Talk:
        source.append(Told())
        for name, said in status.items():
            source[0].document["status"]["zones"][ZONES.index(name)] |= deepcopy(dict(said))
        return source[0]

    with served(make=make) as site:
        yield Hand(site, source[0])
