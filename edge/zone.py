"""A zone's edge as its devices, its peers and the operator see it, and what its tasks share.

`training.py` runs the rounds, `cloud_link.py` speaks with the cloud; both work on this. All on one event loop.
"""

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from edge.devices import Devices
from edge.measures import EdgeMeasures
from edge.memory import Memory, Roster
from edge.peers import Peers
from edge.waits import Waits
from sgfusion.errors import ContractError, UnavailableError
from sgfusion.plan import ZonePlan, ZoneState
from sgfusion.records import evaluation_from_json, round_from_json
from sgfusion.reports import Model, ZoneReport
from sgfusion.runfile import RunFile, contract, parse_run_file
from sgfusion.wire.attending import Answer, Hello
from sgfusion.wire.channel import Keys
from sgfusion.wire.edge_rpc import DeviceLink, ModelKind
from sgfusion.wire.logs import fields, timed
from sgfusion.wire.peer_rpc import ZoneDirection
from sgfusion.wire.status import Refusals
from sgfusion.wire.version import version

Vector = npt.NDArray[np.float32]

MOST_REPORTED = 500
"""Records in one report."""
MOST_TOLD = 500_000
"""Characters of reasons in one report of several records: with the rest of it a message that gRPC takes."""
ENDED = (ZoneState.DONE, ZoneState.DIVERGED)
_log = logging.getLogger("sgfusion.edge")


class Zone:
    """One zone's edge."""

    def __init__(self, zone: str, memory: Memory, *, keys: Keys | None, expected: int) -> None:
        self.zone = zone
        self.memory = memory
        self.expected = expected
        self.refusals = Refusals()
        self.measures = EdgeMeasures()
        """Who is told of the edge's work."""
        self._keys = keys
        self._run: RunFile | None = None
        self._contract = ""
        self.number = -1
        self.enrolled = asyncio.Event()
        """The run is known, from the cloud or from an earlier life."""
        self._devices: Devices | None = None
        self._peers: Peers | None = None
        self.roster: Roster | None = memory.roster()
        self.plan: ZonePlan | None = memory.plan()
        self.state = ZoneState.GATHERING
        self.round = 0
        self.overdue = ""
        self.diverged = ""
        self.waits = Waits()
        """Whether its round takes unusually long."""
        self.plan_in_use = 0
        self.best: tuple[int, Vector] | None = None
        self.last: tuple[int, Vector] | None = None
        self._reached = 0  # the last round that the cloud has said it has
        self._records: list[dict[str, Any]] = []  # on this disk, and not known to be on the cloud's
        self.to_tell = asyncio.Event()
        """There is something new for the cloud."""
        self.changed = asyncio.Event()
        """Devices have come or gone, or there is a new plan: whoever waits looks again."""
        self._stopping = False

    # The run

    @property
    def run(self) -> RunFile:
        """The run file."""
        if self._run is None:
            raise UnavailableError(f"edge of zone {self.zone!r} has not reached its cloud yet: try again")
        return self._run

    @property
    def devices(self) -> Devices:
        """Those that attend."""
        if self._devices is None:
            raise UnavailableError(f"edge of zone {self.zone!r} has not reached its cloud yet: try again")
        return self._devices

    @property
    def peers(self) -> Peers:
        """Other zones' edges."""
        if self._peers is None:
            raise UnavailableError(f"edge of zone {self.zone!r} has not reached its cloud yet: try again")
        return self._peers

    def take_run(self, text: str, number: int) -> None:
        """The run, from the cloud, or from an earlier life before the cloud answers; the same each time."""
        self.memory.keep_run(text)
        self.number = number
        run = parse_run_file(text, source="the cloud's run file")
        self.waits.deadline = min(run.deadlines.device, run.deadlines.peer)
        if self._devices is not None and self._peers is not None:
            self._devices.wait(quorum=run.quorum.devices, deadline=run.deadlines.device)
            self._peers.budget = run.deadlines.peer
            self._run = run
            return
        self._contract = contract(run)
        self._devices = Devices(
            zone=self.zone, quorum=run.quorum.devices, deadline=run.deadlines.device, changed=self._devices_changed
        )
        self._peers = Peers(self.zone, self._keys, budget=run.deadlines.peer, measures=self.measures)
        if self.roster is not None:
            self._devices.model = self.roster.model
            self._devices.remember(self.roster.histograms, self.roster.epsilons)
        if self.plan is not None:
            self._peers.learn(self.plan.directory)
        self._run = run
        self.enrolled.set()

    def take_plan(self, plan: ZonePlan) -> None:
        """The cloud's latest, with its directory; of version 0, the directory alone."""
        self.peers.learn(plan.directory)
        if plan.version:
            if self.plan is None or self.plan.version != plan.version:
                _log.info("zone %s: plan %d: %s", self.zone, plan.version, plan.reason)
            self.plan = plan
            self.memory.keep_plan(plan)
        edges = self.peers.edges()
        for member in self.devices.members.values():
            if member.link is not None:
                member.link.tell(edges=edges)
        self.signal()

    # What the cloud is told

    def publish(self, records: Sequence[dict[str, Any]]) -> None:
        """Records that are on this disk may be told."""
        self._records.extend(records)
        self.to_tell.set()

    @property
    def untold(self) -> int:
        """Records that the cloud is not known to have."""
        return len(self._records)

    def report(self) -> ZoneReport:
        """How the zone is, and the records that the cloud does not have."""
        told = self._records[: _fitting(self._records)]
        rounds = [round_from_json(record["round"]) for record in told if "round" in record]
        evaluations = [evaluation_from_json(record["evaluation"]) for record in told if "evaluation" in record]
        devices = self._devices
        return ZoneReport(
            zone=self.zone,
            # The end is told with the last of its rounds, not before.
            state=ZoneState.TRAINING if self.state in ENDED and len(told) < len(self._records) else self.state,
            round=self.round,
            rounds=tuple(rounds),
            evaluations=tuple(evaluations),
            attendance=devices.attendance(self.expected)
            if devices
            else ZoneReport(self.zone, self.state, 0).attendance,
            overdue=self.overdue or (devices.waiting_for() if devices else ""),
            refusals=self.refusals.counts(),
            plan=self.plan_in_use,
            diverged=self.diverged,
            version=version(),
            waiting=self.waits.waiting(time.monotonic()),
        )

    def told(self, report: ZoneReport, reached: int) -> bool:
        """The cloud has the report, and rounds up to `reached`; whether there is more to tell.

        A cloud that has fewer rounds than it had has lost its memory: it is told all of them again.
        """
        del self._records[: len(report.rounds) + len(report.evaluations)]
        if reached < self._reached:
            _log.warning(
                "zone %s: the cloud has lost rounds %d to %d: told again", self.zone, reached + 1, self._reached
            )
            self._records = self.memory.records()
        self._reached = reached
        return bool(self._records)

    # EdgeHandler and PeerHandler

    def attend(self, hello: Hello) -> DeviceLink:
        """A device with the same run and the same model as the others, or it is refused."""
        self._refuse_if_stopping()
        devices = self.devices
        if hello.contract != self._contract:
            raise ContractError(
                f"device {hello.device!r} has contract {hello.contract[:16]}…, its zone's is {self._contract[:16]}…:"
                " seed, task, histogram and update of its run file must be those of the cloud's"
            )
        if devices.model is not None and hello.model != devices.model:
            raise ContractError(
                f"device {hello.device!r} has {hello.model}, the zone's devices have {devices.model}:"
                " run the same version of the task on all of them"
            )
        return devices.attend(hello)

    def joined(self, link: DeviceLink) -> None:
        """The device is in."""
        link.tell(number=self.number, edges=self.peers.edges())
        _log.info("zone %s: device %s attends", self.zone, link.device, extra={"device": link.device})
        self.devices.join(link)

    def answered(self, link: DeviceLink, ask: str, answer: Answer | None) -> None:
        """A device's answer; None to what is no longer asked."""
        self.devices.answered(link, ask, answer)

    def gone(self, link: DeviceLink) -> None:
        """A stream has ended."""
        _log.info("zone %s: a stream of device %s has ended", self.zone, link.device, extra={"device": link.device})
        self.devices.leave(link)
        if self.roster is None:
            self.devices.forget_if_empty()

    def model(self, kind: ModelKind) -> tuple[int, str, Vector]:
        """For the operator."""
        found = self.best if kind == "best" else self.last
        model = self.devices.model
        if found is None or model is None:
            raise UnavailableError(f"zone {self.zone!r} has no model yet: it is {self.state.value}")
        return found[0], model.fingerprint, found[1]

    def model_for(self, contract: str) -> Model:
        """The model of the zone's devices, for a peer of the same run."""
        model = self.devices.model
        if contract != self._contract:
            raise ContractError(
                f"contract {contract[:16]}… is not that of zone {self.zone!r}, {self._contract[:16]}…:"
                " the two edges are of different runs"
            )
        if model is None or self.roster is None:
            raise UnavailableError(f"zone {self.zone!r} is still gathering its devices: try again")
        return model

    async def direction_for(
        self, zone: str, round: int, theta: Vector, seconds: float | None, request: str = ""
    ) -> ZoneDirection:
        """A peer's question, in its turn."""
        self._refuse_if_stopping()
        with fields(request=request), timed(_log, "zone %s: answer to round %d of zone %s", self.zone, round, zone):
            answer = await self.devices.direction(theta, zone, seconds, request)
        return ZoneDirection(answer.mean, answer.devices, answer.gradients)

    def stop(self) -> None:
        """End what devices and peers have open here: an open call must not hold up the end of the process. Only a model
        that an operator is fetching is worth waiting for.
        """
        self._stopping = True
        if self._devices is not None:
            self._devices.close(self._stops())

    def _refuse_if_stopping(self) -> None:
        if self._stopping:
            raise UnavailableError(self._stops())

    def _stops(self) -> str:
        return f"the edge of zone {self.zone!r} is stopping: come back when it is up again"

    @property
    def contract(self) -> str:
        """The digest that devices and peers are compared by."""
        return self._contract

    def _devices_changed(self) -> None:
        self.to_tell.set()
        self.signal()

    def signal(self) -> None:
        """Wake whoever waits for a change."""
        self.changed.set()
        self.changed = asyncio.Event()


def _fitting(records: Sequence[dict[str, Any]]) -> int:
    """How many of the first records go into one report; at least one, if there is one."""
    characters = 0
    for count, record in enumerate(records[:MOST_REPORTED]):
        characters += len(json.dumps(record))  # more than the record takes on the wire
        if count and characters > MOST_TOLD:
            return count
    return min(len(records), MOST_REPORTED)


def digest(theta: Vector) -> str:
    """Of weights, as zones compare their `θ⁰`."""
    return hashlib.sha256(np.ascontiguousarray(theta, "<f4").data).hexdigest()
