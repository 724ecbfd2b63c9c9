"""The cloud's decisions, rule by rule; time is a number."""

from dataclasses import dataclass, field, replace

import pytest

from cloud import coordinator
from cloud.coordinator import begin, due, failed, fitted, overdue, resumed, tick
from cloud.state import EVENTS, Change, Contract, Fit, State, first_state
from cloud.status import run_status
from sgfusion.errors import ContractError, InputError, NotEnrolledError
from sgfusion.plan import ZoneState
from sgfusion.reports import Attendance, Model
from sgfusion.waiting import Waiting
from sgfusion.wire.words import LONGEST_TEXT
from tests.cloud.values import MASSES, MODEL, NAMES, RMSE, THETA, a_point, a_report, a_round, a_run


@dataclass
class Run:
    """A coordinator that is told what happens, second by second; its fits end at once."""

    state: State = field(default_factory=lambda: first_state(a_run(), started=0.0))
    now: float = 0.0

    def take(self, change: Change) -> Change:
        self.state = change.state
        return change

    def enrol(self, *names: str) -> None:
        for name in names:
            self.take(coordinator.enrol(self.state, name, f"{name}:1", self.now))

    def histogram(self, name: str, mass: tuple[float, ...] | None = None) -> bool:
        mass = MASSES[name] if mass is None else mass
        change, drifted = coordinator.histogram(self.state, name, mass, self.now, devices=3, model=MODEL, initial=THETA)
        self.take(change)
        return drifted

    def report(self, name: str, state: ZoneState = ZoneState.TRAINING, round: int = 0, **rest: object) -> Change:
        return self.take(coordinator.report(self.state, a_report(name, state, round, **rest), self.now))

    def arrive(self, *names: str) -> None:
        self.enrol(*names)
        for name in names:
            self.histogram(name)

    def pass_time(self, seconds: float, alive: tuple[str, ...] = ()) -> None:
        """Second by second; those alive are heard of."""
        for _ in range(int(seconds)):
            self.now += 1
            for name in alive:
                self.report(name, self.state.zones[name].said)
            self.take(tick(self.state, self.now))

    def fit(self) -> Fit:
        fit = due(self.state, self.now)
        assert fit is not None
        self.state = begin(self.state, fit)
        self.take(fitted(self.state, fit, "{}", self.now))
        return fit

    def state_of(self, name: str) -> ZoneState:
        return self.state.zones[name].state

    @property
    def idle(self) -> bool:
        return due(self.state, self.now) is None

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.state.events]


@pytest.fixture
def run() -> Run:
    return Run()


@pytest.fixture
def planned(run: Run) -> Run:
    """All five zones are in the first plan."""
    run.arrive(*NAMES)
    run.fit()
    return run


def with_run(*overrides: str) -> Run:
    return Run(first_state(a_run(*overrides), started=0.0))


# The first plan


def test_all_zones_have_reported(run: Run) -> None:
    run.arrive(*NAMES[:4])
    assert run.idle
    run.arrive("fir")
    fit = run.fit()
    assert fit == Fit(1, "all 5 zones have reported", NAMES, tuple(MASSES[name] for name in NAMES))
    assert run.idle


def test_the_tree_is_in_the_order_of_numbers_not_of_arrival(run: Run) -> None:
    run.arrive(*reversed(NAMES))
    assert run.fit().zones == NAMES


def test_without_a_quorum_nothing_is_due_and_it_says_who_is_missing(run: Run) -> None:
    run.arrive("ash", "birch", "cedar", "elm")
    run.pass_time(299, alive=NAMES[:4])
    assert overdue(run.state, run.now) == ""
    run.pass_time(2, alive=NAMES[:4])
    assert run.idle
    text = (
        "4 of 5 zones have reported after 300 s, missing: fir; quorum.zones = 1.0."
        " Start its edge, or lower quorum.zones"
    )
    assert overdue(run.state, run.now) == text
    assert run.texts.count(text) == 1
    run.arrive("fir")
    assert overdue(run.state, run.now) == ""
    assert run.fit().reason == "all 5 zones have reported"


def test_several_missing_have_edges(run: Run) -> None:
    run.pass_time(301)
    assert overdue(run.state, run.now) == (
        "0 of 5 zones have reported after 300 s, missing: ash, birch, cedar, elm, fir; quorum.zones = 1.0."
        " Start their edges, or lower quorum.zones"
    )


def test_a_quorum_waits_for_the_deadline_and_then_names_the_missing() -> None:
    run = with_run("quorum.zones=0.6")
    run.arrive("ash", "cedar", "elm")
    run.enrol("fir")  # there, with no histogram: as good as missing
    run.pass_time(299, alive=("ash", "cedar", "elm", "fir"))
    assert run.idle
    run.pass_time(1, alive=("ash", "cedar", "elm", "fir"))
    fit = run.fit()
    assert fit.reason == "3 of 5 zones have reported after 300 s, missing: birch, fir"
    assert fit.zones == ("ash", "cedar", "elm")
    assert overdue(run.state, run.now) == ""


@pytest.mark.parametrize(("share", "needed"), [(0.6, 3), (0.61, 4), (0.01, 1), (1.0, 5), (0.2, 1), (0.7, 4)])
def test_a_quorum_is_rounded_up(share: float, needed: int) -> None:
    run = with_run(f"quorum.zones={share}")
    run.arrive(*NAMES[: needed - 1])
    run.now = 301.0
    assert run.idle
    run.arrive(NAMES[needed - 1])
    assert run.idle == (needed == 5 and share < 1)


def test_seven_tenths_of_ten_are_seven() -> None:
    names = tuple(f"z{number}" for number in range(10))
    run = Run(first_state(a_run("quorum.zones=0.7", zones=names), started=0.0))
    run.enrol(*names)
    for name in names[:7]:
        run.histogram(name, (1.0, 0.0, 0.0, 0.0))
    run.now = 301.0
    assert not run.idle


def test_the_deadline_counts_from_the_runs_first_start_not_from_a_restart() -> None:
    run = with_run("quorum.zones=0.4")
    run.arrive("ash", "birch")
    run.now = 290.0
    run.state = resumed(replace(run.state), run.now)
    assert run.idle
    run.now = 300.0
    assert not run.idle


def test_a_zone_that_left_before_the_first_plan_is_not_in_it() -> None:
    run = with_run("quorum.zones=0.8")
    run.arrive(*NAMES)
    run.take(coordinator.leave(run.state, "elm", 1.0))
    assert run.idle
    run.now = 300.0
    assert run.fit().zones == ("ash", "birch", "cedar", "fir")


def test_a_lost_zone_that_has_reported_is_in_the_first_plan(run: Run) -> None:
    run.arrive(*NAMES[:4])
    run.pass_time(40, alive=("ash", "birch", "cedar"))
    assert run.state_of("elm") is ZoneState.LOST
    run.arrive("fir")
    assert run.fit().zones == NAMES


def test_a_run_of_one_zone(run: Run) -> None:
    run = Run(first_state(a_run(zones=("ash",)), started=0.0))
    run.arrive("ash")
    assert run.fit().reason == "its only zone has reported"


# Later versions


def test_a_late_zone_joins() -> None:
    run = with_run("quorum.zones=0.8")
    run.arrive(*NAMES[:4])
    run.now = 300.0
    assert run.fit().zones == NAMES[:4]
    run.enrol("fir")
    assert run.idle
    run.histogram("fir")
    fit = run.fit()
    assert (fit.version, fit.reason, fit.zones) == (2, "zone fir joined", NAMES)


def test_a_new_name_joins_with_the_next_number(planned: Run) -> None:
    planned.arrive("gum")
    assert planned.state.zones["gum"].number == 5
    fit = planned.fit()
    assert (fit.version, fit.reason, fit.zones) == (2, "zone gum joined", (*NAMES, "gum"))


def test_a_new_name_may_be_in_the_first_plan_but_is_not_waited_for(run: Run) -> None:
    run.arrive("gum", *NAMES[:4])
    assert run.idle
    run.arrive("fir")
    assert run.fit().zones == (*NAMES, "gum")


def test_a_zone_leaves(planned: Run) -> None:
    planned.take(coordinator.leave(planned.state, "birch", 1.0))
    fit = planned.fit()
    assert (fit.version, fit.reason) == (2, "zone birch left")
    assert fit.zones == ("ash", "cedar", "elm", "fir")
    assert planned.state_of("birch") is ZoneState.LEFT
    assert planned.idle


def test_leaving_twice_is_leaving(planned: Run) -> None:
    planned.take(coordinator.leave(planned.state, "birch", 1.0))
    change = planned.take(coordinator.leave(planned.state, "birch", 2.0))
    assert not change.to_store


def test_who_has_left_comes_back_by_enrolling(planned: Run) -> None:
    planned.take(coordinator.leave(planned.state, "birch", 1.0))
    planned.fit()
    with pytest.raises(NotEnrolledError, match="'birch' has left the run: enrol it anew"):
        planned.report("birch")
    planned.enrol("birch")
    fit = planned.fit()
    assert (fit.version, fit.reason, fit.zones) == (3, "zone birch joined", NAMES)
    assert planned.state.zones["birch"].number == 1


def test_a_lost_zone_keeps_its_place_until_it_counts_as_left(planned: Run) -> None:
    others = ("ash", "birch", "cedar", "elm")
    planned.pass_time(30, alive=others)
    assert planned.state_of("fir") is ZoneState.WAITING
    planned.pass_time(1, alive=others)
    assert planned.state_of("fir") is ZoneState.LOST
    assert not planned.state.zones["fir"].leased
    assert "zone fir is lost: nothing was heard of it for 30 s" in planned.texts
    planned.pass_time(300, alive=others)
    assert planned.idle
    assert planned.state.plan is not None
    assert "fir" in planned.state.plan.zones
    planned.pass_time(1, alive=others)
    assert planned.state_of("fir") is ZoneState.LEFT
    assert "zone fir counts as left: it has been lost for 300 s" in planned.texts
    assert planned.fit().reason == "zone fir left"


@pytest.mark.parametrize("by", ["enrolling", "reporting"])
def test_a_lost_zone_comes_back_without_a_new_plan(planned: Run, by: str) -> None:
    planned.pass_time(60, alive=NAMES[:4])
    assert planned.state_of("fir") is ZoneState.LOST
    if by == "enrolling":
        planned.enrol("fir")
    else:
        planned.report("fir", ZoneState.TRAINING)
    assert planned.state.zones["fir"].leased
    assert planned.idle


def test_a_zone_drifts(planned: Run) -> None:
    near, far = (0.69, 0.11, 0.1, 0.1), (0.6, 0.2, 0.1, 0.1)  # 0.014 and 0.141 away
    assert not planned.histogram("ash", near)
    assert planned.idle
    assert planned.histogram("ash", far)
    fit = planned.fit()
    assert (fit.version, fit.reason) == (2, "zone ash drifted by 0.1414")
    assert fit.histograms[0] == far
    assert planned.idle
    assert not planned.histogram("ash", (0.55, 0.25, 0.1, 0.1))


def test_drift_adds_up_over_small_steps(planned: Run) -> None:
    assert not planned.histogram("ash", (0.65, 0.15, 0.1, 0.1))
    assert planned.histogram("ash", (0.6, 0.2, 0.1, 0.1))


def test_drift_is_measured_as_distances_are() -> None:
    run = with_run("hrg.metric=manhattan", "hrg.drift=0.19")
    run.arrive(*NAMES)
    run.fit()
    assert run.histogram("ash", (0.6, 0.2, 0.1, 0.1))
    assert run.fit().reason == "zone ash drifted by 0.2"


def test_changes_during_a_fit_give_one_more_after_it(run: Run) -> None:
    run.arrive(*NAMES)
    first = due(run.state, run.now)
    assert first is not None
    run.state = begin(run.state, first)
    run.arrive("gum")
    run.take(coordinator.leave(run.state, "ash", 1.0))
    run.histogram("birch", (0.3, 0.5, 0.1, 0.1))
    assert run.idle
    run.take(fitted(run.state, first, "{}", 2.0))
    assert run.state.plan is not None
    assert run.state.plan.zones == NAMES
    second = run.fit()
    assert second.reason == "zone gum joined, zone ash left, zone birch drifted by 0.2828"
    assert second.zones == ("birch", "cedar", "elm", "fir", "gum")
    assert run.idle


def test_a_killed_fit_is_due_again_and_is_the_same(run: Run) -> None:
    run.arrive(*NAMES)
    fit = due(run.state, run.now)
    assert fit is not None
    run.state = begin(run.state, fit)
    stored = resumed(replace(run.state, fitting=None), 50.0)  # fits are not stored
    assert due(stored, 50.0) == fit


def test_a_failed_fit_is_said_and_waits_for_other_zones(run: Run) -> None:
    run.arrive(*NAMES)
    fit = due(run.state, run.now)
    assert fit is not None
    run.state = begin(run.state, fit)
    run.take(failed(run.state, fit, "no neighbours", 1.0))
    text = "no plan 1 (all 5 zones have reported): no neighbours"
    assert overdue(run.state, 1.0) == text
    assert run.texts[-1] == text
    assert run.idle
    run.arrive("gum")
    assert run.fit().version == 1
    assert overdue(run.state, 1.0) == ""


def test_a_given_tree_does_not_drift() -> None:
    run = with_run("hrg.from=dendrogram.json")
    run.arrive(*NAMES)
    run.fit()
    assert not run.histogram("ash", (0.0, 0.0, 0.0, 1.0))
    assert run.idle


def test_when_all_are_done_leaving_makes_no_plan_and_joining_does(planned: Run) -> None:
    for name in NAMES:
        planned.report(name, ZoneState.DONE, round=20)
    assert planned.state.ended
    planned.take(coordinator.leave(planned.state, "ash", 1.0))
    planned.histogram("birch", (1.0, 0.0, 0.0, 0.0))
    assert planned.idle
    planned.arrive("gum")
    assert planned.fit().reason == "zone gum joined, zone ash left, zone birch drifted by 1.149"
    assert not planned.state.ended


def test_when_everybody_has_left_there_is_nothing_to_fit(planned: Run) -> None:
    for name in NAMES:
        planned.take(coordinator.leave(planned.state, name, 1.0))
    assert planned.idle
    assert not planned.state.ended  # nobody has trained to the end
    assert "all zones have left" in coordinator.overdue(planned.state, 2.0)


# Zones


def test_enrolment(run: Run) -> None:
    run.enrol("cedar")
    zone = run.state.zones["cedar"]
    assert (zone.number, zone.address, zone.state, zone.leased) == (2, "cedar:1", ZoneState.GATHERING, True)
    assert run.texts == ["zone cedar enrolled at cedar:1"]
    change = run.take(coordinator.enrol(run.state, "cedar", "cedar:1", 5.0))
    assert not change.to_store
    run.take(coordinator.enrol(run.state, "cedar", "cedar:2", 6.0))
    assert run.texts[1:] == ["zone cedar moved to cedar:2"]


def test_a_restarted_edge_is_told_from_one_that_lost_its_connection(run: Run) -> None:
    for life, address in (
        (7, "cedar:1"),
        (7, "cedar:1"),
        (8, "cedar:1"),
        (9, "cedar:2"),
        (0, "cedar:2"),
        (9, "cedar:2"),
    ):
        run.take(coordinator.enrol(run.state, "cedar", address, 1.0, life=life))
    assert run.texts[1:] == [
        "zone cedar: its edge was started anew",
        "zone cedar moved to cedar:2: its edge was started anew",
    ]


def test_a_restarted_edge_is_where_it_was(planned: Run) -> None:
    planned.report("ash", ZoneState.DONE, round=20)
    planned.enrol("ash")
    assert planned.state_of("ash") is ZoneState.DONE


@pytest.mark.parametrize("name", ["ash", "nobody"])
def test_who_has_not_enrolled_is_told_to(run: Run, name: str) -> None:
    for call in (
        lambda: run.histogram(name, MASSES["ash"]),
        lambda: run.report(name),
        lambda: coordinator.leave(run.state, name, 0.0),
    ):
        with pytest.raises(NotEnrolledError, match=rf"zone '{name}' is not enrolled: enrol it first"):
            call()


def test_the_number_of_zones_is_bounded(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr(coordinator, "MOST_ZONES", 6)
    run.enrol("gum", *NAMES)
    with pytest.raises(InputError, match="zone 'oak': the run has 6 zones, and more are not taken"):
        run.enrol("oak")


def test_what_a_zone_waits_for_is_known_until_it_reports_otherwise_or_is_not_heard_of(planned: Run) -> None:
    wait = Waiting(3, 4.0, (1,), ("u1",))

    def waits() -> Waiting | None:
        return planned.state.zones["ash"].waiting_at(planned.now)

    planned.report("ash")
    change = planned.report("ash", waiting=wait)
    assert not change.to_store, "nothing of it outlives the cloud"
    assert waits() == wait
    planned.now += 2
    assert waits() == replace(wait, seconds=6.0)
    planned.report("ash")
    assert waits() is None
    planned.report("ash", waiting=wait)
    planned.enrol("ash")
    assert waits() is None, "another life knows nothing of it"
    planned.report("ash", waiting=wait)
    planned.pass_time(31)
    assert planned.state_of("ash") is ZoneState.LOST
    assert waits() is None


def test_a_report(planned: Run) -> None:
    change = planned.report(
        "birch",
        round=2,
        rounds=(a_round(1, zone=-1), a_round(2, zone=-1, drawn=(0, 4), loss=0.25)),
        evaluations=(a_point(0), a_point(2, best=True)),
        plan=1,
        refusals={"InputError": 1},
        version="0.1.0",
    )
    zone = planned.state.zones["birch"]
    assert zone.version == "0.1.0"
    assert (zone.round, zone.drawn, zone.left_out, zone.loss) == (2, (0, 4), {4: "late"}, 0.25)
    assert zone.attention == {0: 1.0}
    assert (zone.first, zone.last, zone.best) == (a_point(0), a_point(2, best=True), a_point(2, best=True))
    assert (zone.plan, zone.refusals, zone.state) == (1, {"InputError": 1}, ZoneState.TRAINING)
    assert [record.report.zone for record in change.rounds] == [1, 1]  # its own number
    assert change.zone == "birch"


def test_a_repeated_round_does_not_set_the_zone_back(planned: Run) -> None:
    planned.report("ash", round=3, rounds=(a_round(2), a_round(3)), evaluations=(a_point(0), a_point(3, best=True)))
    planned.report("ash", round=2, rounds=(a_round(2),), evaluations=(a_point(2),))
    zone = planned.state.zones["ash"]
    assert (zone.round, zone.last, zone.best) == (3, a_point(3, best=True), a_point(3, best=True))


def test_a_heartbeat_costs_no_disk(planned: Run) -> None:
    planned.report("ash")
    assert not planned.report("ash").to_store
    planned.now += 20
    planned.report("ash")
    assert planned.state.zones["ash"].heard == planned.now


def test_ends_and_what_is_overdue_are_events(planned: Run) -> None:
    planned.report("ash", overdue="device u3 has not answered for 60 s")
    planned.report("ash", overdue="device u3 has not answered for 70 s")
    planned.report("ash", ZoneState.DIVERGED, round=3, diverged="its weights are not finite")
    planned.report("birch", ZoneState.DONE, round=20)
    assert planned.texts[-3:] == [
        "zone ash: device u3 has not answered for 60 s",
        "zone ash is diverged: its weights are not finite",
        "zone birch is done",
    ]


def test_finished_is_when_all_of_the_plan_are_done_diverged_or_left(planned: Run) -> None:
    for name, state in zip(
        NAMES[:4], (ZoneState.DONE, ZoneState.DIVERGED, ZoneState.DONE, ZoneState.DONE), strict=True
    ):
        planned.report(name, state)
        assert not planned.state.ended
    planned.take(coordinator.leave(planned.state, "fir", 1.0))
    assert planned.state.ended


def test_a_zone_that_is_done_stays_done_when_its_edge_is_gone(planned: Run) -> None:
    for name in NAMES:
        planned.report(name, ZoneState.DONE)
    planned.pass_time(60)
    assert {zone.state for zone in planned.state.zones.values()} == {ZoneState.LOST}
    assert planned.state.ended


def test_another_model_or_start_is_refused_and_both_values_are_named(run: Run) -> None:
    run.arrive("ash")
    run.enrol("birch")

    def submit(model: Model, initial: bytes) -> None:
        coordinator.histogram(run.state, "birch", MASSES["birch"], 0.0, devices=1, model=model, initial=initial)

    with pytest.raises(
        ContractError, match=r"'birch' has a model whose fingerprint is 'other', .*'ash' one .* 'linear/6'"
    ):
        submit(replace(MODEL, fingerprint="other"), THETA)
    with pytest.raises(ContractError, match=r"whose length is 7, .* length is 100"):
        submit(replace(MODEL, length=7), THETA)
    with pytest.raises(ContractError, match=r"whose bins is 5, .* bins is 4"):
        submit(replace(MODEL, bins=5), THETA)
    with pytest.raises(ContractError, match=r"whose metric is .*MAE"):
        submit(replace(MODEL, metric=replace(RMSE, name="MAE")), THETA)
    known = replace(MODEL, edges=(0.0, 1.0, 2.0, 3.0, 4.0))
    submit(known, THETA)  # zone ash is of an earlier version, which does not say where bins end
    run.state = replace(run.state, contract=Contract(known, THETA, "ash"))
    submit(MODEL, THETA)
    with pytest.raises(ContractError, match=r"whose edges is \(0\.0, 1\.0, 2\.0, 3\.0, 5\.0\)"):
        submit(replace(MODEL, edges=(0.0, 1.0, 2.0, 3.0, 5.0)), THETA)
    with pytest.raises(ContractError, match=rf"SHA-256 {'00' * 8}…, zone 'ash' of {THETA.hex()[:16]}….*torch"):
        submit(MODEL, bytes(32))


# Time


def test_a_cloud_that_comes_back_gives_everybody_a_lease(planned: Run) -> None:
    planned.pass_time(40, alive=NAMES[:4])
    planned.state = resumed(planned.state, 5000.0)
    assert not tick(planned.state, 5000.0 + 30).zones
    assert planned.state_of("fir") is ZoneState.LOST
    planned.now = 5000.0
    planned.pass_time(300, alive=NAMES[:4])
    assert not planned.state.zones["fir"].left
    planned.pass_time(1, alive=NAMES[:4])
    assert planned.state.zones["fir"].left


def test_a_cloud_that_stood_still_blames_nobody(planned: Run) -> None:
    planned.pass_time(5, alive=NAMES)
    change = tick(planned.state, planned.now + 3600)
    assert not change.zones
    assert all(zone.leased for zone in change.state.zones.values())


def test_events_are_bounded(run: Run) -> None:
    for number in range(EVENTS + 50):
        run.take(coordinator.enrol(run.state, "ash", f"ash:{number + 1}", 0.0))
    assert len(run.state.events) == EVENTS
    assert run.texts[-1] == f"zone ash moved to ash:{EVENTS + 50}"


# Zones that others wait for


@pytest.fixture
def training(planned: Run) -> Run:
    """All zones train, and report every second."""
    for name in NAMES:
        planned.report(name)
    planned.pass_time(20, alive=NAMES)
    return planned


def silent(run: Run, name: str = "birch", seconds: float = 10, **report: object) -> list[float]:
    """Seconds after which the zone does not answer, by halves, if all others go on; ash waits for it from 3 s on."""
    began, since = run.now, []
    while (after := run.now - began) < seconds:
        run.now += 0.5
        wait = Waiting(7, after + 0.5, (run.state.zones[name].number,)) if after >= 3 else None
        for other in NAMES:
            if other != name:
                run.report(other, waiting=wait if other == "ash" else None, **report)
        run.take(tick(run.state, run.now))
        if run.state.zones[name].unanswering:
            since.append(run.now - began)
    return since


def test_a_zone_that_others_wait_for_and_that_is_silent_does_not_answer(training: Run) -> None:
    assert silent(training)[0] == 3.5, "as soon as anybody waits for it"
    assert run_status(training.state, training.now, {}, "").zones[1].standing == "not answering"
    training.report("ash")
    training.take(tick(training.state, training.now + 0.5))
    assert training.state.zones["birch"].unanswering, "nobody waits any more, and nothing is heard of it either"
    change = training.report("birch")
    assert [zone.name for zone in change.zones] == ["birch"], "whoever looks has to hear of it"
    assert run_status(training.state, training.now, {}, "").zones[1].standing == "training"


def test_who_reports_or_is_waited_for_by_nobody_is_not_blamed(training: Run) -> None:
    training.report("ash", waiting=Waiting(7, 30.0, (1,)))
    for _ in range(20):
        training.now += 1
        for name in NAMES:
            training.report(name, waiting=training.state.zones[name].waiting)
        assert not training.take(tick(training.state, training.now)).zones
    training.report("ash")
    training.pass_time(14, alive=("ash", "cedar", "elm", "fir"))
    assert not training.state.zones["birch"].unanswering


def test_a_zone_that_is_silent_for_long_between_reports_has_twice_as_long(training: Run) -> None:
    for _ in range(4):
        training.pass_time(4, alive=("ash", "cedar", "elm", "fir"))
        training.report("birch")
    assert silent(training, seconds=12)[0] == 8.5


def test_a_zone_that_has_said_what_it_waits_for_is_silent_until_its_next_report_is_long_due(training: Run) -> None:
    training.report("birch", waiting=Waiting(9, 3.0, (), ("u1",)))
    assert silent(training, seconds=18)[0] == 15.5, "half a lease"


def test_a_zone_that_is_lost_or_done_is_called_so(training: Run) -> None:
    silent(training, seconds=31)
    zone = run_status(training.state, training.now, {}, "").zones[1]
    assert (zone.standing, training.state.zones["birch"].unanswering) == ("lost", False)
    training.report("birch", ZoneState.DONE)
    assert silent(training) == []


def test_a_cloud_that_comes_back_blames_nobody_for_its_absence(training: Run) -> None:
    assert silent(training)
    training.state = resumed(training.state, training.now)
    assert not training.state.zones["birch"].unanswering
    assert silent(training)[0] == 3.5


# Events that an operator wants to see


HERE = ("u1", "u2", "u3")


def attended(*here: str, late: tuple[str, ...] = (), departures: int = 0) -> Attendance:
    """Of the three devices of a zone."""
    gone = {device: "its stream has ended" for device in HERE if device not in here}
    return Attendance(3, here, {**gone, **dict.fromkeys(late, "has not answered within 60 s")}, departures)


def news(run: Run, *reports: Attendance, name: str = "ash", seconds: int = 12) -> list[str]:
    """What is told after reports of a zone's devices, a tenth of a second apart; the others say nothing new."""
    told = len(run.state.events)
    for attendance in reports:
        run.now += 0.1
        run.report(name, run.state.zones[name].said, attendance=attendance)
    for _ in range(seconds):
        run.now += 1
        for zone in NAMES:
            known = run.state.zones[zone]
            if known.leased:
                run.report(zone, known.said, attendance=known.attendance)
        run.take(tick(run.state, run.now))
    return run.texts[told:]


@pytest.fixture
def attending(planned: Run) -> Run:
    """All devices of all zones attend, and have for a while."""
    for name in NAMES:
        planned.report(name, attendance=attended(*HERE))
    assert news(planned) == []
    return planned


def test_devices_of_a_zone_that_go_one_by_one_are_one_event_and_their_return_another(attending: Run) -> None:
    assert news(attending, attended("u1", "u2"), attended("u1"), attended()) == [
        "zone ash: 3 of 3 devices are gone: u1, u2, u3 (its stream has ended)"
    ]
    assert news(attending, attended("u2"), attended("u2", "u3")) == [], "not all are back"
    assert news(attending, attended(*HERE)) == ["zone ash: all 3 devices attend again"]
    assert news(attending, attended("u1", "u2")) == ["zone ash: 1 of 3 devices is gone: u3 (its stream has ended)"]
    assert news(attending, attended("u1")) == ["zone ash: 2 of 3 devices are gone: u2, u3 (its stream has ended)"]


MOMENT = "zone ash: devices were gone for a moment, and attend again: 3 streams ended"


def test_devices_that_are_gone_and_back_at_once_are_an_event_too(attending: Run) -> None:
    assert news(attending, attended("u1"), attended(), attended("u1"), attended(*HERE)) == [MOMENT]


def test_also_if_no_report_saw_them_gone_for_the_edge_counts(attending: Run) -> None:
    assert news(attending, attended(*HERE, departures=3)) == [MOMENT]
    assert news(attending, seconds=60) == []
    assert news(attending, attended(*HERE, departures=4)) == [
        "zone ash: a device was gone for a moment, and attends again"
    ]
    assert news(attending, attended(*HERE, departures=4)) == [], "an edge says the same count again"


def test_a_line_that_fails_again_and_again_is_an_event_a_minute(attending: Run) -> None:
    told = [text for n in range(1, 21) for text in news(attending, attended(*HERE, departures=3 * n), seconds=5)]
    assert told == [MOMENT, "zone ash: devices were gone for a moment, and attend again: 33 streams ended within 56 s"]


def test_devices_that_come_and_go_without_an_end_are_told_of(attending: Run) -> None:
    told = len(attending.state.events)
    for half in range(1, 25):
        attending.now += 0.5
        attending.report("ash", attendance=attended(*HERE, departures=half))
        attending.take(tick(attending.state, attending.now))
    assert attending.texts[told:] == [
        "zone ash: devices were gone for a moment, and attend again: 21 streams ended within 10 s"
    ]


def test_a_device_that_is_only_late_is_no_event(attending: Run) -> None:
    assert news(attending, attended(*HERE, late=("u2",)), seconds=3) == []


def test_nor_are_devices_that_go_and_come_while_they_gather_or_the_zone_has_ended(attending: Run) -> None:
    for n, said in enumerate((ZoneState.GATHERING, ZoneState.DONE, ZoneState.TRAINING)):
        attending.report("ash", said, attendance=attended(*HERE, departures=5 * n))
        told = news(attending, attended(*HERE, departures=5 * n + (said is not ZoneState.TRAINING)))
        assert not [text for text in told if "moment" in text] or said is ZoneState.TRAINING


def test_a_zone_of_one_device(attending: Run) -> None:
    one = Attendance(1, ("u1",))
    assert news(attending, one, replace(one, attending=(), missing={"u1": "its stream has ended"}), one) == [
        "zone ash: a device was gone for a moment, and attends again"
    ]
    assert news(attending, Attendance(1, (), {"u1": "its stream has ended"})) == [
        "zone ash: 1 of 1 devices is gone: u1 (its stream has ended)"
    ]
    assert news(attending, one) == ["zone ash: its device attends again"]


@pytest.mark.parametrize("said", [ZoneState.GATHERING, ZoneState.DONE, ZoneState.DIVERGED])
def test_while_devices_gather_and_when_a_zone_has_ended_they_come_and_go(attending: Run, said: ZoneState) -> None:
    attending.report("ash", said, attendance=attended(*HERE))
    told = news(attending, attended("u1"))
    assert not [text for text in told if "gone" in text]


@pytest.mark.parametrize("said", [ZoneState.DONE, ZoneState.DIVERGED])
def test_who_was_told_gone_is_told_back_also_when_the_zone_has_ended_meanwhile(attending: Run, said: ZoneState) -> None:
    assert len(news(attending, attended("u1"))) == 1
    attending.report("ash", said, attendance=attended(*HERE))
    assert news(attending, attended(*HERE)) == ["zone ash: all 3 devices attend again"]


def test_devices_have_time_to_find_an_edge_that_was_started_anew(attending: Run) -> None:
    attending.take(coordinator.enrol(attending.state, "ash", "ash:1", attending.now, life=1))
    assert news(attending, attended(), attended("u2"), seconds=8) == []
    assert news(attending, attended(*HERE)) == []
    attending.take(coordinator.enrol(attending.state, "ash", "ash:1", attending.now, life=2))
    assert news(attending, attended("u2"), seconds=8) == []
    assert news(attending) == ["zone ash: 2 of 3 devices are gone: u1, u3 (its stream has ended)"]


def test_a_cloud_that_comes_back_says_so_and_gives_devices_time_too(attending: Run) -> None:
    attending.state = resumed(attending.state, attending.now)
    change = attending.take(coordinator.back(attending.state, attending.now, attending.now - 12.3))
    assert [event.text for event in change.events] == ["the cloud is back: its state was last written 12 s ago"]
    assert change.to_store
    assert news(attending, attended(), seconds=8) == []
    assert len(news(attending)) == 1
    (event,) = coordinator.back(attending.state, attending.now, attending.now + 5).events
    assert event.text == "the cloud is back", "a clock was set back"


def test_a_cloud_that_comes_back_knows_what_it_told(attending: Run) -> None:
    assert len(news(attending, attended("u1"))) == 1
    attending.state = resumed(attending.state.with_zone(attending.state.zones["ash"].stored()), attending.now)
    assert news(attending) == [], "it stands among the events"
    assert news(attending, attended(*HERE)) == ["zone ash: all 3 devices attend again"]


def test_devices_have_time_to_find_an_edge_that_goes_on_after_it_was_lost(attending: Run) -> None:
    """Its streams broke while it was frozen, and it does not enrol: to itself nothing happened."""
    told = len(attending.state.events)
    for _ in range(35):
        attending.now += 1
        for zone in NAMES[1:]:
            attending.report(zone, attendance=attended(*HERE))
        attending.take(tick(attending.state, attending.now))
    assert news(attending, attended(), attended("u2"), seconds=8) == ["zone ash is heard of again"]
    assert news(attending, attended(*HERE)) == []
    assert len(attending.state.events) == told + 2
    assert len(news(attending, attended())) == 1, "it is not quiet for ever"


def test_what_is_told_of_devices_is_short_whatever_their_edge_says(attending: Run) -> None:
    why = {f"u{number:03}": f"{number} " + 999 * "x" for number in range(300)}
    (text,) = news(attending, Attendance(300, (), why))
    assert text.startswith("zone ash: 300 of 300 devices are gone: u000 (0 xxx")
    assert len(text) <= len("zone ash: ") + LONGEST_TEXT


def test_a_cloud_that_stood_still_says_so(attending: Run) -> None:
    attending.now += 20
    change = attending.take(tick(attending.state, attending.now))
    assert [event.text for event in change.events] == ["the cloud stood still for 20 s: leases begin anew"]
    assert news(attending) == []
