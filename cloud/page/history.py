"""What zones have been through, as the page draws it: a row a round and a row an evaluation, each made into JSON once.

Rows are kept as text: a message takes the new ones as they are, and all of them together cost no more than joining.
"""

import json
import math
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sgfusion.evaluation import Metric, Score

MOST_ROWS = 1000
"""Rounds of a zone that are drawn, and evaluations: of a longer run every second, third … one. And of evaluations
between those that were the best until then, which models were kept for.
"""
MOST_LEFT_OUT = 20
"""Peers of a zone of which it is told in how many rounds they were left out: those of the latest."""
WINDOW = 60.0
"""Seconds over which rounds a minute are counted."""
SHORTEST = 2.0
"""Seconds of them without which there is no telling."""
Homophily = Callable[[str, Iterable[str]], float | None]
"""How far a zone is from the zones that it drew."""


def number(value: float | None) -> float | None:
    """As the page gets it: nine digits, so that it rounds as a table of the console does; JSON has no NaN."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.9g}")


def value_of(metric: Metric | None, scores: Iterable[Score]) -> float | None:
    """The metric over the labels of all; None where there are none."""
    if metric is None:
        return None
    found = list(scores)
    return number(metric.value(math.fsum(s.total for s in found), sum(s.count for s in found)))


@dataclass(frozen=True)
class LeftOut:
    """A peer that a zone went on without, in so many rounds; the last of them, and why it was then."""

    rounds: int
    last: int
    why: str


@dataclass
class _Trail:
    """One zone's rows, by round."""

    rounds: dict[int, str] = field(default_factory=dict)
    drawn: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Of the same rounds: another plan has other distances to them."""
    evaluations: dict[int, str] = field(default_factory=dict)
    bests: list[int] = field(default_factory=list)
    """Rounds of evaluations that are kept for being the best until then alone, in order."""
    counted: int = 0
    """The rounds that are in the sums below, a bit each: those of before a restart are read while new ones come."""
    bytes: int = 0
    left_out: dict[int, LeftOut] = field(default_factory=dict)

    def leave_out(self, peer: int, round: int, why: str) -> None:
        """Count it; the last reason is that of the latest round."""
        before = self.left_out.get(peer, LeftOut(0, -1, ""))
        last = max((before.last, before.why), (round, why), key=lambda each: each[0])
        self.left_out[peer] = LeftOut(before.rounds + 1, *last)


@dataclass
class News:
    """Rows that were not told yet; of one round the latest."""

    rounds: dict[str, dict[int, str]] = field(default_factory=dict)
    evaluations: dict[str, dict[int, str]] = field(default_factory=dict)
    pooled: dict[int, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.rounds or self.evaluations or self.pooled)

    def series(self) -> str:
        """JSON: SERIES by zone."""
        zones = dict.fromkeys((*self.evaluations, *self.rounds))
        return _object((zone, _series(self.evaluations.get(zone, {}), self.rounds.get(zone, {}))) for zone in zones)


class History:
    """All rows; of a run of very many `rounds`, or with evaluations `every` few, some: of all zones the same ones."""

    def __init__(self, zones: Iterable[str], rounds: int, every: int) -> None:
        self._trails = {zone: _Trail() for zone in zones}
        self._rounds, self._every = rounds, every
        self._step = max(1, math.ceil(rounds / MOST_ROWS))
        self._evaluation_step = max(1, math.ceil(rounds / every / MOST_ROWS))
        self._homophily: Homophily = lambda *_: None
        self._judged = True
        self._scores: dict[int, dict[str, tuple[Score, Score]]] = {}
        self._pooled: dict[int, str] = {}
        self.news = News()

    def add_zone(self, zone: str) -> None:
        """A zone that was not there before."""
        self._trails.setdefault(zone, _Trail())

    def judge_by(self, homophily: Homophily) -> None:
        """Rounds are judged by these distances from now on, all of them: who reads them later has no others. They are
        written anew when somebody wants them: plans come and go while nobody looks.
        """
        self._homophily = homophily
        self._judged = False

    def _judge(self) -> None:
        if self._judged:
            return
        self._judged = True
        for zone, trail in self._trails.items():
            for round in trail.drawn:
                self._write_round(zone, trail, round)

    def add_round(
        self, zone: str, round: int, *, drawn: Iterable[str], left_out: Mapping[int, str], sent: int | None = None
    ) -> bool:
        """A finished round; whether it was not known before. One that is reported again replaces itself."""
        trail = self._trails[zone]
        new = not trail.counted >> round & 1
        if new:
            trail.counted |= 1 << round
            trail.bytes += sent or 0
            for peer, why in left_out.items():
                trail.leave_out(peer, round, why)
        if round % self._step == 0 or round in (1, self._rounds):
            trail.drawn[round] = tuple(drawn)
            self._write_round(zone, trail, round)
        return new

    def _write_round(self, zone: str, trail: _Trail, round: int) -> None:
        drawn = trail.drawn[round]
        apart = number(self._homophily(zone, drawn))
        row = f"[{round},{len(drawn)},{'null' if apart is None else apart}]"  # a plan has all of them written anew
        if trail.rounds.get(round) != row:
            trail.rounds[round] = row
            self.news.rounds.setdefault(zone, {})[round] = row

    def add_evaluation(
        self, zone: str, round: int, validation: float | None, test: float | None, *, best: bool
    ) -> None:
        """The zone's model after a round, in the metric's unit."""
        trail = self._trails[zone]
        if not self._keeps_evaluation(round) and not (best and _make_room(trail, round)):
            return
        row = json.dumps([round, number(validation), number(test), int(best)], separators=(",", ":"))
        if trail.evaluations.get(round) != row:
            trail.evaluations[round] = row
            self.news.evaluations.setdefault(zone, {})[round] = row

    def add_scores(self, zone: str, round: int, validation: Score, test: Score) -> None:
        """The same as sums, which the pooled metric is made of."""
        if not self._keeps_evaluation(round):
            return
        self._scores.setdefault(round, {})[zone] = (validation, test)

    def pool(self, zones: Sequence[str], metric: Metric | None, rounds: Iterable[int] | None = None) -> None:
        """The metric over all of these zones, at those of `rounds` (or of all) that every one of them evaluated."""
        if metric is None or not zones:
            return
        for round in sorted(self._scores if rounds is None else set(rounds)):
            scores = self._scores.get(round, {})
            if all(zone in scores for zone in zones):
                values = [value_of(metric, (scores[zone][split] for zone in zones)) for split in (0, 1)]
                self.add_pooled(round, *values)

    def add_pooled(self, round: int, validation: float | None, test: float | None) -> None:
        """A row of the pooled metric."""
        row = json.dumps([round, number(validation), number(test)], separators=(",", ":"))
        if self._pooled.get(round) != row:
            self._pooled[round] = row
            self.news.pooled[round] = row

    def _keeps_evaluation(self, round: int) -> bool:
        return round == self._rounds or round // self._every % self._evaluation_step == 0

    def bytes_of(self, zone: str) -> int:
        """Bytes of weights and directions that were sent for its rounds."""
        return self._trails[zone].bytes

    def left_out_of(self, zone: str) -> Mapping[int, LeftOut]:
        """Peers that it went on without in any round, by number; of very many, those of the latest rounds."""
        found = self._trails[zone].left_out
        latest = sorted(found, key=lambda peer: found[peer].last)[-MOST_LEFT_OUT:]
        return {peer: found[peer] for peer in sorted(latest)}

    @property
    def bytes(self) -> int:
        """Of all zones."""
        return sum(trail.bytes for trail in self._trails.values())

    def take_news(self) -> News:
        """What was added since this was last asked for."""
        self._judge()
        news, self.news = self.news, News()
        return news

    def drop_news(self) -> None:
        """Nobody wants them."""
        self.news = News()

    def series(self) -> str:
        """JSON: every zone's SERIES."""
        self._judge()
        return _object((zone, _series(trail.evaluations, trail.rounds)) for zone, trail in self._trails.items())

    def pooled(self) -> str:
        """JSON: the pooled rows."""
        return _rows(self._pooled)


def pooled_rows(rows: Mapping[int, str]) -> str:
    """JSON: rows in the order of rounds."""
    return _rows(rows)


class Pace:
    """Rounds a minute over the last minute. Invariant: entries are in the order of time, one a second at most."""

    def __init__(self) -> None:
        self._seconds: deque[tuple[float, int]] = deque()
        self._began: float | None = None

    def add(self, now: float, rounds: int) -> None:
        """So many zones' rounds have ended."""
        if self._began is None:
            self._began = now
            return  # when the first was begun nobody knows
        if self._seconds and now - self._seconds[-1][0] < 1.0:
            before, count = self._seconds.pop()
            self._seconds.append((before, count + rounds))
        else:
            self._seconds.append((now, rounds))

    def per_minute(self, now: float, zones: int) -> float | None:
        """Rounds of the run a minute: those of all zones by the number of zones; None before it can be told."""
        while self._seconds and now - self._seconds[0][0] > WINDOW:
            self._seconds.popleft()
        if self._began is None or not zones or now - self._began < SHORTEST:
            return None
        seconds = min(WINDOW, now - self._began)
        return round(sum(count for _, count in self._seconds) / zones * 60.0 / seconds, 1)


def _make_room(trail: _Trail, round: int) -> bool:
    """Whether there is room for the best of that round: it is among the latest, and the earliest makes way for it."""
    if round in trail.evaluations:
        return True
    insort(trail.bests, round)
    if len(trail.bests) <= MOST_ROWS:
        return True
    early = trail.bests.pop(0)
    trail.evaluations.pop(early, None)
    return early != round


def _rows(rows: Mapping[int, str]) -> str:
    return f"[{','.join(rows[round] for round in sorted(rows))}]"


def _series(evaluations: Mapping[int, str], rounds: Mapping[int, str]) -> str:
    return f'{{"evaluations":{_rows(evaluations)},"rounds":{_rows(rounds)}}}'


def _object(items: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{json.dumps(key)}:{text}" for key, text in items) + "}"
