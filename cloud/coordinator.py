"""The cloud's decisions (architecture, "Decide, then act"): an event and the time in, a `Change` out; no I/O, no clock.

  enrol, histogram, report, leave, tick ──► Change ── due(state, now) ──► Fit ── begin ──► … a thread fits …
  … ── fitted | failed ──► Change with a Plan ── due again: what came during the fit gives one more

A dendrogram is due by what is stored alone (who has a histogram, who has left, what the last plan was made from), so a
cloud that was killed at any moment finds the same thing due when it comes back.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from types import MappingProxyType

from cloud.silence import fallen_silent, pause
from cloud.state import ENDED, EVENTS, Change, Contract, Failure, Fit, Histogram, Plan, State, Zone
from sgfusion.distance import zone_distances
from sgfusion.errors import ContractError, InputError, NotEnrolledError
from sgfusion.plan import ZoneState
from sgfusion.reports import Event, Model, ZoneReport, duration

MOST_ZONES = 10_000
"""Names that are not in the run file may join; not without end."""
UNSEEN = 5.0
"""Seconds that the cloud may stand still without a word, as on a busy machine; short leases begin anew all the same."""
AT_WORK = (ZoneState.WAITING, ZoneState.TRAINING)
"""States in which a zone misses a device that is gone: it has gathered them, and has not ended."""


def resumed(state: State, now: float) -> State:
    """Leases begin anew: while the cloud was away nobody could report to it, nor come back."""
    zones = {name: _resumed(zone, now) for name, zone in state.zones.items() if zone.enrolled}
    zones = {**state.zones, **zones}  # in the order of numbers
    return replace(state, zones=MappingProxyType(zones), ticked=now)


def _resumed(zone: Zone, now: float) -> Zone:
    absence = zone.absence.stored().quiet(now)
    lost = None if zone.lost is None else now
    return replace(zone, heard=now, lost=lost, absence=absence, pause=0.0, unanswering=False)


def back(state: State, now: float, wrote: float) -> Change:
    """The cloud has come back to a run that an earlier life of it served, and last `wrote` then."""
    ago = f": its state was last written {duration(now - wrote)} ago" if wrote <= now else ""
    return _told(state, Event(now, f"the cloud is back{ago}"))


def enrol(state: State, name: str, address: str, now: float, *, life: int = 0) -> Change:
    """An edge speaks for the zone from now on: for the first time, after a restart of either side, or after a loss.

    `life` is the edge's process, if it says so.
    """
    before = state.zones.get(name)
    if before is None:
        if len(state.zones) >= MOST_ZONES:
            raise InputError(f"zone {name!r}: the run has {len(state.zones)} zones, and more are not taken")
        before = Zone(name, len(state.zones))
    zone = replace(before, address=address, life=life, heard=now, lost=None, left=False, waiting=None)
    zone = replace(zone, unanswering=False)
    if not before.enrolled:
        zone = replace(zone, said=ZoneState.GATHERING)
        return _change(state, zone, now, f"zone {name} enrolled at {address}")
    zone = replace(zone, absence=before.absence.quiet(now))
    if before.left or before.lost is not None:
        return _change(state, zone, now, f"zone {name} is back at {address}")
    anew = "its edge was started anew" if 0 != before.life != life != 0 else ""
    if before.address != address:
        return _change(state, zone, now, f"zone {name} moved to {address}" + (f": {anew}" if anew else ""))
    return _change(state, zone, now, *((f"zone {name}: {anew}",) if anew else ()))


def histogram(
    state: State,
    name: str,
    mass: Histogram,
    now: float,
    *,
    devices: int,
    model: Model,
    initial: bytes,
    epsilon: float = 0.0,
) -> tuple[Change, bool]:
    """The zone's histogram; and whether it is so far from the one in the plan that there will be a new plan."""
    zone = known(state, name)
    contract = state.contract or Contract(model, initial, name)
    _refuse_other(contract, model, initial, name)
    said = ZoneState.WAITING if zone.said is ZoneState.GATHERING else zone.said
    zone = replace(zone, histogram=mass, devices=devices, epsilon=epsilon, said=said)
    of = "one device" if devices == 1 else f"{devices} devices"
    texts = () if state.zones[name].histogram else (f"zone {name} has reported the histogram of {of}",)
    change = _change(replace(state, contract=contract), zone, now, *texts)
    change = replace(change, contract=contract if state.contract is None else None)
    return change, drift_of(change.state, zone) is not None


def report(state: State, said: ZoneReport, now: float) -> Change:
    """Finished rounds, and how the zone is; renews its lease."""
    zone = known(state, said.zone)
    texts = []
    absence = zone.absence.seen(said.attendance, now)
    if zone.lost is not None:
        texts.append(f"zone {zone.name} is heard of again")
        absence = absence.quiet(now)  # who froze and goes on does not enrol anew
    if said.state not in AT_WORK:
        absence = absence.unmissed()
    if said.state is not zone.said and said.state in (ZoneState.DONE, ZoneState.DIVERGED):
        texts.append(f"zone {zone.name} is {said.state.value}" + (f": {said.diverged}" if said.diverged else ""))
    if said.overdue and not zone.overdue:
        texts.append(f"zone {zone.name}: {said.overdue}")
    zone = replace(
        zone, heard=now, lost=None, said=said.state, attendance=said.attendance, overdue=said.overdue,
        refusals=dict(said.refusals), plan=said.plan, diverged=said.diverged, version=said.version,
        waiting=said.waiting, absence=absence, pause=pause(zone, now), unanswering=False,
    )  # fmt: skip
    for record in said.rounds:
        if record.report.round >= zone.round:
            zone = replace(
                zone, round=record.report.round, drawn=record.report.drawn, left_out=dict(record.report.left_out),
                attention=dict(record.report.attention), loss=record.loss,
            )  # fmt: skip
    for point in said.evaluations:
        if zone.first is None or point.round <= zone.first.round:
            zone = replace(zone, first=point)
        if zone.last is None or point.round >= zone.last.round:
            zone = replace(zone, last=point)
        if point.best and (zone.best is None or point.round >= zone.best.round):
            zone = replace(zone, best=point)
    change = _change(state, zone, now, *texts)
    rounds = (replace(record, report=replace(record.report, zone=zone.number)) for record in said.rounds)
    return replace(change, zone=zone.name, rounds=tuple(rounds), evaluations=said.evaluations)


def leave(state: State, name: str, now: float) -> Change:
    """The zone leaves the run: the next plan is without it."""
    zone = known(state, name, left=True)
    return _change(
        state,
        replace(zone, left=True, lost=None, waiting=None, unanswering=False),
        now,
        *(() if zone.left and zone.lost is None else (f"zone {name} left",)),
    )


def tick(state: State, now: float) -> Change:
    """Time goes by: leases end, and who is lost for longer than `deadlines.zones` has left."""
    gone_after = state.run.deadlines.zones
    changed: list[Zone] = []
    texts: list[str] = []
    if now - state.ticked > state.lease / 2:  # this process stood still: so did the reports to it
        if now - state.ticked > UNSEEN:
            texts.append(f"the cloud stood still for {duration(now - state.ticked)}: leases begin anew")
        blamed = [name for name, zone in state.zones.items() if zone.unanswering]
        state = resumed(state, now)
        changed += [state.zones[name] for name in blamed]  # whoever looks has to hear of it
    silent = fallen_silent(state.zones.values(), now, state.lease)
    for zone in state.zones.values():
        if zone.leased and now - zone.heard > state.lease:
            changed.append(replace(zone, lost=now, waiting=None, unanswering=False))
            texts.append(f"zone {zone.name} is lost: nothing was heard of it for {state.lease:g} s")
        elif zone.lost is not None and not zone.left and now - zone.lost > gone_after:
            changed.append(replace(zone, left=True))  # `lost` stays: it did not say that it goes
            texts.append(f"zone {zone.name} counts as left: it has been lost for {gone_after:g} s")
        elif zone.leased and _misses_or_has_back(zone) and zone.absence.settled(now):
            silent_too = zone.unanswering or zone.name in silent
            changed.append(replace(zone, absence=zone.absence.after(now), unanswering=silent_too))
            if text := zone.absence.text(zone.attendance, now):
                texts.append(f"zone {zone.name}: {text}")
        elif zone.name in silent:
            changed.append(replace(zone, unanswering=True))
    was_late, is_late = (_first_plan_overdue(state, then) for then in (state.ticked, now))
    if is_late and not was_late:
        texts.append(overdue(state, now))
    zones = MappingProxyType({**state.zones, **{zone.name: zone for zone in changed}}) if changed else state.zones
    events = tuple(Event(now, text) for text in texts)
    state = replace(state, zones=zones, ticked=now, events=(*state.events, *events)[-EVENTS:])
    return Change(state, zones=tuple(changed), events=events)


def due(state: State, now: float) -> Fit | None:
    """The dendrogram that is to be made now; None if there is none, or one is being made already."""
    if state.fitting is not None:
        return None
    zones = tuple(zone for zone in state.zones.values() if zone.histogram and not zone.left)
    names = tuple(zone.name for zone in zones)
    if not zones or (state.failure is not None and state.failure.zones == names):
        return None
    reason = _first_reason(state, now) if state.plan is None else _next_reason(state, state.plan, zones)
    if not reason:
        return None
    version = 1 if state.plan is None else state.plan.version + 1
    return Fit(version, reason, names, tuple(zone.histogram for zone in zones))


def begin(state: State, fit: Fit) -> State:
    """The fit is under way: no other begins before it has ended."""
    return replace(state, fitting=fit)


def fitted(state: State, fit: Fit, tree: str, now: float) -> Change:
    """The fit gave a tree, the text of `dendrogram.json`."""
    plan = Plan(fit.version, fit.reason, fit.zones, fit.histograms, tree, now)
    event = Event(now, f"plan {plan.version} over {len(plan.zones)} zones: {plan.reason}")
    state = replace(state, plan=plan, fitting=None, failure=None, events=(*state.events, event)[-EVENTS:])
    return Change(state, plan=plan, events=(event,))


def failed(state: State, fit: Fit, error: str, now: float) -> Change:
    """The fit gave none. The plan that there is stays; the next attempt is when the zones are others."""
    text = f"no plan {fit.version} ({fit.reason}): {error}"
    event = Event(now, text)
    state = replace(state, fitting=None, failure=Failure(fit.zones, text), events=(*state.events, event)[-EVENTS:])
    return Change(state, events=(event,))


def overdue(state: State, now: float) -> str:
    """What the cloud waits for beyond its deadlines, in words for people; empty if nothing is overdue."""
    if state.failure is not None and state.plan is None:  # with a plan, zones train on by it
        return state.failure.text
    if state.plan is not None and all(state.zones[name].left for name in state.plan.zones) and not state.ended:
        return "all zones have left or were lost for too long: start their edges, they go on where they were"
    if not _first_plan_overdue(state, now):
        return ""
    missing = _missing(state)
    edges = "its edge" if len(missing) == 1 else "their edges"
    quorum = state.run.quorum.zones
    return f"{_came(state)}; quorum.zones = {quorum}. Start {edges}, or lower quorum.zones"


def known(state: State, name: str, *, left: bool = False) -> Zone:
    """The zone, refused unless an edge has enrolled it, and it has not left (or may have: `left`)."""
    zone = state.zones.get(name)
    if zone is None or not zone.enrolled:
        raise NotEnrolledError(f"zone {name!r} is not enrolled: enrol it first")
    if zone.left and not left:
        raise NotEnrolledError(f"zone {name!r} has left the run: enrol it anew to come back")
    return zone


def drift_of(state: State, zone: Zone) -> float | None:
    """How far the zone's histogram is from that in the plan, if it is further than `hrg.drift` allows."""
    plan, hrg = state.plan, state.run.hrg
    if plan is None or zone.name not in plan.planned or hrg.from_ is not None:  # a given tree is not made of histograms
        return None
    planned = plan.planned[zone.name]
    if planned == zone.histogram:
        return None
    distance = float(zone_distances([planned, zone.histogram], hrg.metric, hrg.p)[0, 1])
    return distance if distance > hrg.drift else None


def _first_reason(state: State, now: float) -> str:
    names = state.run.zones.names
    if not _missing(state):
        return f"all {len(names)} zones have reported" if len(names) > 1 else "its only zone has reported"
    late = now - state.started >= state.run.deadlines.zones
    return _came(state) if late and _quorum_met(state) else ""


def _next_reason(state: State, plan: Plan, zones: tuple[Zone, ...]) -> str:
    here = {zone.name for zone in zones}
    texts = [f"zone {zone.name} joined" for zone in zones if zone.name not in plan.planned]
    if texts or not state.ended:  # when all are done, only who comes anew still needs a plan
        texts += [f"zone {name} left" for name in plan.zones if name not in here]
        drifts = ((zone.name, drift_of(state, zone)) for zone in zones)
        texts += [f"zone {name} drifted by {drift:.4g}" for name, drift in drifts if drift is not None]
    return ", ".join(texts)


def _missing(state: State) -> tuple[str, ...]:
    """The zones of the run file that a first plan would be without."""
    return tuple(name for name in state.run.zones.names if not state.zones[name].histogram or state.zones[name].left)


def _quorum_met(state: State) -> bool:
    names = len(state.run.zones.names)
    # Rounded first: 0.7 of 10 zones are 7, not the 7.000000000000001 of floating point.
    return names - len(_missing(state)) >= math.ceil(round(state.run.quorum.zones * names, 9))


def _first_plan_overdue(state: State, now: float) -> bool:
    if state.plan is not None or now - state.started < state.run.deadlines.zones:
        return False
    return bool(_missing(state)) and not _quorum_met(state)


def _came(state: State) -> str:
    names, missing = state.run.zones.names, _missing(state)
    return (
        f"{len(names) - len(missing)} of {len(names)} zones have reported after {state.run.deadlines.zones:g} s,"
        f" missing: {', '.join(missing)}"
    )


def _refuse_other(contract: Contract, model: Model, initial: bytes, name: str) -> None:
    edges = ("edges",) if contract.model.edges and model.edges else ()
    for field in ("fingerprint", "length", "metric", "bins", *edges):
        one, other = getattr(contract.model, field), getattr(model, field)
        if one != other:
            raise ContractError(
                f"zone {name!r} has a model whose {field} is {other!r}, zone {contract.zone!r} one whose {field} is"
                f" {one!r}: all zones have the same model. Give all devices the same run file and version of SGFusion"
            )
    if contract.initial != initial:
        raise ContractError(
            f"zone {name!r} begins with weights of SHA-256 {initial.hex()[:16]}…, zone {contract.zone!r} of"
            f" {contract.initial.hex()[:16]}…: all zones begin with the same. Most likely their devices have"
            " other versions of torch or another seed: give all the same run file and torch"
        )


def _misses_or_has_back(zone: Zone) -> bool:
    """Whether its devices are worth a word: of a zone that has ended, if all are back."""
    return zone.said in AT_WORK or (zone.said in ENDED and not zone.absence.gone)


def _told(state: State, event: Event) -> Change:
    return Change(replace(state, events=(*state.events, event)[-EVENTS:]), events=(event,))


def _change(state: State, zone: Zone, now: float, *texts: str) -> Change:
    """The change of one zone, and what to tell of it."""
    before = state.zones.get(zone.name)
    events = tuple(Event(now, text) for text in texts)
    same = before is not None and before.stored() == zone.stored() and before.unanswering == zone.unanswering
    stored: Iterable[Zone] = () if same else (zone,)
    state = replace(state.with_zone(zone), events=(*state.events, *events)[-EVENTS:])
    return Change(state, zones=tuple(stored), events=events)
