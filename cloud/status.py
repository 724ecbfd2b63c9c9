"""How the run stands, for people: from the state to the console's words."""

from collections.abc import Mapping

from cloud.coordinator import overdue
from cloud.state import ENDED, State, Zone
from sgfusion.plan import ZoneState
from sgfusion.reports import RunStatus, ZoneStatus

SHOWN_EVENTS = 50


def run_status(state: State, now: float, refusals: Mapping[str, int], version: str) -> RunStatus:
    """The status of the whole run."""
    return RunStatus(
        run=state.run.name,
        rounds=state.run.rounds,
        plan=0 if state.plan is None else state.plan.version,
        reason="" if state.plan is None else state.plan.reason,
        zones=tuple(_zone_status(zone, now) for zone in state.zones.values()),
        finished=state.ended,
        overdue=overdue(state, now),
        refusals=dict(refusals),
        events=state.events[-SHOWN_EVENTS:],
        metric=None if state.contract is None else state.contract.model.metric,
        time=now,
        version=version,
    )


def state_for_people(zone: Zone) -> ZoneState:
    """Where it stands. Peers must know that the edge of a zone that is done is gone; a person wants to know that the
    zone is done.
    """
    return zone.said if zone.said in ENDED and not zone.left else zone.state


def _zone_status(zone: Zone, now: float) -> ZoneStatus:
    return ZoneStatus(
        number=zone.number,
        zone=zone.name,
        address=zone.address,
        state=state_for_people(zone),
        round=zone.round,
        attendance=zone.attendance,
        drawn=zone.drawn,
        left_out=zone.left_out,
        loss=zone.loss,
        first=zone.first,
        last=zone.last,
        best=zone.best,
        overdue=zone.overdue,
        refusals=zone.refusals,
        plan=zone.plan,
        diverged=zone.diverged,
        leased=zone.leased,
        attention=zone.attention,
        epsilon=zone.epsilon,
        version=zone.version,
        waiting=zone.waiting_at(now),
        unanswering=zone.unanswering,
    )
