"""What holds of the cloud's decisions whatever happens, in whatever order, with a restart at any point."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cloud import coordinator
from cloud.state import Change, Fit
from cloud.store import Store
from sgfusion.errors import NotEnrolledError
from sgfusion.plan import ZoneState
from tests.cloud.values import MASSES, MODEL, THETA, a_point, a_report, a_round, a_run

RUN = a_run("quorum.zones=0.6", "deadlines.zones=50.0", zones=("ash", "birch", "cedar"))
zones = st.sampled_from(["ash", "birch", "cedar", "gum"])
said = st.sampled_from([ZoneState.TRAINING, ZoneState.TRAINING, ZoneState.DONE, ZoneState.DIVERGED])


class Cloud(RuleBasedStateMachine):
    """A cloud whose every change is stored, and which may be killed between any two."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.now = 1000.0
        self.store = Store(self.folder)
        self.state = self.store.load(RUN, self.now, 10.0)
        self.fit: Fit | None = None
        self.version = 0
        self.rounds: dict[str, set[int]] = {}

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)

    def take(self, change: Change) -> None:
        if change.to_store:
            self.store.save([change])
        self.state = change.state

    @rule(zone=zones, port=st.integers(1, 2))
    def enrol(self, zone: str, port: int) -> None:
        self.take(coordinator.enrol(self.state, zone, f"h:{port}", self.now))

    @rule(zone=zones, other=st.sampled_from(sorted(MASSES)))
    def histogram(self, zone: str, other: str) -> None:
        before = self.state
        try:
            change, drifted = coordinator.histogram(
                self.state, zone, MASSES[other], self.now, devices=2, model=MODEL, initial=THETA
            )
        except NotEnrolledError:
            assert before.zones.get(zone) is None or not before.zones[zone].enrolled or before.zones[zone].left
            return
        self.take(change)
        if drifted and self.fit is None and not self.state.ended:
            assert coordinator.due(self.state, self.now) is not None

    @rule(zone=zones, state=said, round=st.integers(1, 20))
    def report(self, zone: str, state: ZoneState, round: int) -> None:
        report = a_report(zone, state, round, rounds=(a_round(round),), evaluations=(a_point(round),))
        try:
            change = coordinator.report(self.state, report, self.now)
        except NotEnrolledError:
            return
        self.take(change)
        self.rounds.setdefault(zone, set()).add(round)

    @rule(zone=zones)
    def leave(self, zone: str) -> None:
        try:
            self.take(coordinator.leave(self.state, zone, self.now))
        except NotEnrolledError:
            return

    @rule(seconds=st.sampled_from([1.0, 4.0, 4.0, 4.0, 60.0]))
    def time_goes_by(self, seconds: float) -> None:
        self.now += seconds
        self.take(coordinator.tick(self.state, self.now))

    @precondition(lambda self: self.fit is None)
    @rule()
    def a_fit_begins(self) -> None:
        self.fit = coordinator.due(self.state, self.now)
        if self.fit is not None:
            self.state = coordinator.begin(self.state, self.fit)

    @precondition(lambda self: self.fit is not None)
    @rule()
    def a_fit_ends(self) -> None:
        assert self.fit is not None
        self.take(coordinator.fitted(self.state, self.fit, "{}", self.now))
        self.fit = None

    @rule()
    def killed(self) -> None:
        due_again = coordinator.due(replace(self.state, fitting=None, failure=None), self.now)
        self.store.close()
        self.store = Store(self.folder)
        back = coordinator.resumed(self.store.load(RUN, self.now, 10.0), self.now)
        assert back == coordinator.resumed(replace(self.state, fitting=None, failure=None), self.now)
        assert coordinator.due(back, self.now) == due_again
        self.state, self.fit = back, None
        for zone, rounds in self.rounds.items():
            assert {record.report.round for record in self.store.rounds(zone)} == rounds

    @invariant()
    def versions_only_rise(self) -> None:
        version = 0 if self.state.plan is None else self.state.plan.version
        assert version in (self.version, self.version + 1)
        self.version = version

    @invariant()
    def a_plan_holds_zones_with_histograms_in_the_order_of_numbers(self) -> None:
        for made in (self.state.plan, self.state.fitting):
            if made is not None:
                assert all(made.histograms)
                assert len(made.zones) == len(made.histograms) >= 1
                numbers = [self.state.zones[name].number for name in made.zones]
                assert numbers == sorted(set(numbers))

    @invariant()
    def numbers_are_places(self) -> None:
        assert [zone.number for zone in self.state.zones.values()] == list(range(len(self.state.zones)))
        assert tuple(self.state.zones)[:3] == RUN.zones.names

    @invariant()
    def one_fit_at_a_time(self) -> None:
        if self.state.fitting is not None:
            assert coordinator.due(self.state, self.now) is None


TestCloud = Cloud.TestCase
TestCloud.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
