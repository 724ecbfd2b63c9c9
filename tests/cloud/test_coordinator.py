"""The cloud's decisions, rule by rule; time is a number."""

from dataclasses import replace

import pytest

from cloud import coordinator
from cloud.coordinator import begin, due, failed, fitted, overdue, resumed, tick
from cloud.state import EVENTS, Contract, Fit, first_state
from sgfusion.errors import ContractError, InputError, NotEnrolledError
from sgfusion.plan import ZoneState
from sgfusion.reports import Model
from sgfusion.waiting import Waiting
from tests.cloud.coordinated import Run, with_run
from tests.cloud.values import MASSES, MODEL, NAMES, RMSE, THETA, a_point, a_round, a_run

# The first plan


def test_all_zones_have_reported(run: Run) -> None:
    run.arrive(*NAMES[:4])
    assert run.idle
    run.arrive("fir")
    fit = run.fit()
    assert fit == Fit(1, "all 5 zones have reported", NAMES, tuple(MASSES[name] for name in NAMES))
    assert run.idle


def test_one_device_is_not_one_devices(run: Run) -> None:
    run.enrol("ash")
    run.histogram("ash", devices=1)
    assert run.texts[-1] == "zone ash has reported the histogram of one device"


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
