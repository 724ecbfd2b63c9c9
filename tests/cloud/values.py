"""A run of a few zones, and values of everything that passes between edges and the cloud."""

import hashlib
import math
from collections.abc import Mapping

from hypothesis import strategies as st

from sgfusion.evaluation import Metric, Score
from sgfusion.plan import Branch, Draws, Peer, ZonePlan, ZoneState
from sgfusion.reports import (
    Attendance,
    Event,
    Model,
    RoundRecord,
    RunStatus,
    ZoneEvaluation,
    ZoneReport,
    ZoneStatus,
)
from sgfusion.runfile import RunFile, parse_run_file
from sgfusion.waiting import Waiting
from sgfusion.zone_trainer import RoundReport

NAMES = ("ash", "birch", "cedar", "elm", "fir")
RMSE = Metric("RMSE", "bpm", root=True, lower_is_better=True)
MODEL = Model("linear/6", 100, RMSE, 4)
THETA = hashlib.sha256(b"theta").digest()
MASSES: Mapping[str, tuple[float, ...]] = {
    "ash": (0.7, 0.1, 0.1, 0.1),
    "birch": (0.1, 0.7, 0.1, 0.1),
    "cedar": (0.1, 0.1, 0.7, 0.1),
    "elm": (0.1, 0.1, 0.1, 0.7),
    "fir": (0.4, 0.4, 0.1, 0.1),
    "gum": (0.1, 0.4, 0.4, 0.1),
}
"""Label histograms; gum's is of a zone that no run file names."""


def run_text(zones: tuple[str, ...] = NAMES, rounds: int = 20) -> str:
    return f"""
    name = "woods"
    seed = 5
    rounds = {rounds}
    [task]
    name = "linear"
    [data]
    source = "generated_zones"
    [zones]
    names = {list(zones)}
    [deadlines]
    zones = 300.0
    """


def a_run(*overrides: str, zones: tuple[str, ...] = NAMES, rounds: int = 20) -> RunFile:
    return parse_run_file(run_text(zones, rounds), overrides)


def a_round(number: int = 1, zone: int = 0, drawn: tuple[int, ...] = (1, 3), loss: float = 0.5) -> RoundRecord:
    """One in which the last of the drawn zones did not answer."""
    answered = drawn[:-1]
    report = RoundReport(
        zone=zone,
        round=number,
        drawn=drawn,
        attention=dict.fromkeys(answered, 1.0),
        left_out=dict.fromkeys(drawn[len(answered) :], "late"),
        rate=0.1,
        local_norm=1.5,
        peer_norms=dict.fromkeys(answered, 0.25),
        direction_norm=2.0,
        step_norm=0.2,
    )
    return RoundRecord(report, {"u3": "late"}, 7, 4096, loss)


def a_point(round: int, *, best: bool = False, total: float = 8.0) -> ZoneEvaluation:
    return ZoneEvaluation(round, Score(total, 4), Score(total / 2, 2), best)


def a_report(zone: str, state: ZoneState = ZoneState.TRAINING, round: int = 0, **rest: object) -> ZoneReport:
    return ZoneReport(zone, state, round, **rest)  # type: ignore[arg-type]


# What hypothesis makes of them

# Without characters that do not come off the wire as they are: tests/sgfusion/wire/test_words.py has those.
letters = st.characters(exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp"))
words = st.text(letters, max_size=12)
names = st.text(letters, min_size=1, max_size=12)
uint32 = st.integers(0, 2**32 - 1)
uint64 = st.integers(0, 2**64 - 1)
finite = st.floats(allow_nan=False, allow_infinity=False)
scores = st.builds(Score, st.floats(allow_nan=False), uint64)  # NaN is not equal to itself: it has a test of its own
metrics = st.builds(Metric, words, words, st.booleans(), st.booleans())
numbers = st.lists(uint32, max_size=4).map(tuple)
by_zone = st.dictionaries(uint32, finite, max_size=4)
counts = st.dictionaries(words, uint64, max_size=3)
evaluations = st.builds(ZoneEvaluation, uint32, scores, scores, st.booleans())
attendances = st.builds(
    Attendance, uint32, st.lists(words, max_size=3).map(tuple), st.dictionaries(words, words, max_size=3)
)
models = st.lists(finite, max_size=5, unique=True).flatmap(
    lambda edges: st.builds(
        Model,
        names,
        st.integers(1, 2**30),
        st.builds(Metric, names, words, st.booleans(), st.booleans()),
        st.just(len(edges) - 1) if len(edges) > 1 else st.integers(1, 100_000),
        st.just(tuple(sorted(edges)) if len(edges) > 1 else ()),
    )
)


def round_reports(zone: st.SearchStrategy[int]) -> st.SearchStrategy[RoundReport]:
    reasons = st.dictionaries(uint32, words, max_size=4)
    norms = dict.fromkeys(("rate", "local_norm", "direction_norm", "step_norm"), finite)
    return st.builds(
        RoundReport,
        zone=zone,
        round=uint32,
        drawn=numbers,
        attention=by_zone,
        left_out=reasons,
        peer_norms=by_zone,
        **norms,
    )


def round_records(zone: st.SearchStrategy[int]) -> st.SearchStrategy[RoundRecord]:
    return st.builds(
        RoundRecord, round_reports(zone), st.dictionaries(words, words, max_size=3), uint64, uint64, finite
    )


waits = st.none() | st.builds(Waiting, uint32, finite, numbers, st.lists(words, max_size=3).map(tuple), uint32)
states = st.sampled_from(ZoneState)
reports = st.builds(
    ZoneReport,
    zone=words,
    state=states,
    round=uint32,
    rounds=st.lists(round_records(st.just(-1)), max_size=3).map(tuple),
    evaluations=st.lists(evaluations, max_size=3).map(tuple),
    attendance=attendances,
    overdue=words,
    refusals=counts,
    plan=uint32,
    diverged=words,
    version=words,
    waiting=waits,
)
draws = st.builds(
    Draws,
    st.sampled_from(["each", "chosen", "fixed"]),
    st.lists(st.builds(Branch, finite, finite, numbers), max_size=3).map(tuple),
    uint32,
    numbers,
)
plans = st.builds(
    ZonePlan,
    uint32,
    uint32,
    words,
    draws,
    st.lists(st.builds(Peer, uint32, words, words, states), max_size=4).map(tuple),
)
points = st.none() | evaluations
zone_statuses = st.builds(
    ZoneStatus,
    number=uint32,
    zone=words,
    address=words,
    state=states,
    round=uint32,
    attendance=attendances,
    drawn=numbers,
    left_out=st.dictionaries(uint32, words, max_size=3),
    loss=finite,
    first=points,
    last=points,
    best=points,
    overdue=words,
    refusals=counts,
    plan=uint32,
    diverged=words,
    leased=st.booleans(),
    attention=by_zone,
    epsilon=finite,
    version=words,
    waiting=waits,
)
statuses = st.builds(
    RunStatus,
    run=words,
    rounds=uint32,
    plan=uint32,
    reason=words,
    zones=st.lists(zone_statuses, max_size=3).map(tuple),
    finished=st.booleans(),
    overdue=words,
    refusals=counts,
    events=st.lists(st.builds(Event, finite, words), max_size=3).map(tuple),
    metric=st.none() | metrics,
    time=finite,
    version=words,
)

NAN_SCORE = Score(math.nan, 3)
