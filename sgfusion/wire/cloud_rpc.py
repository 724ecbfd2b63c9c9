"""`CloudService`: edges that enrol, submit, watch and report; operators who look (`cloud.proto`).

The cloud implements `CloudHandler` and edges and the console call through `CloudClient`, both in the kernel's words.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import grpc
import grpc.aio
import numpy.typing as npt

from sgfusion.arrays import as_floats
from sgfusion.errors import HistogramError, InputError, ProtocolError
from sgfusion.plan import ZonePlan
from sgfusion.proto.v1 import cloud_pb2 as pb
from sgfusion.proto.v1 import cloud_pb2_grpc
from sgfusion.reports import Model, PlanVersion, RoundRecord, RunStatus, ZoneRecords, ZoneReport
from sgfusion.wire.attending import checked_epsilon, model_from_wire, model_to_wire
from sgfusion.wire.cloud_messages import (
    Directories,
    plan_from_wire,
    plan_to_wire,
    plans_from_wire,
    records_from_wire,
    records_pieces,
    report_from_wire,
    report_to_wire,
    tree_pieces,
)
from sgfusion.wire.identity import Context, require_edge_of
from sgfusion.wire.status import translated
from sgfusion.wire.status_messages import status_from_wire, status_to_wire

TIMEOUT = 10.0
"""Seconds for an answer of the cloud, unless the caller says otherwise."""


class Enrolment(NamedTuple):
    """What the cloud tells an edge that enrols."""

    number: int
    """The zone's."""
    run: str
    """The resolved run file."""
    lease: float
    """Seconds without a report after which the zone counts as lost."""


@dataclass(frozen=True)
class Submission:
    """A zone's histogram, and the model of its devices."""

    zone: str
    histogram: tuple[float, ...]
    devices: int
    model: Model
    initial: bytes
    """SHA-256 of `θ⁰` as little-endian float32."""
    epsilon: float = 0.0
    """The largest ε that a device of the mean has spent; 0 if histograms are not noised."""


class CloudHandler(Protocol):
    """The cloud, as edges and operators see it. That an edge speaks for its own zone is checked before."""

    async def enrol(self, zone: str, address: str, life: int = 0) -> Enrolment:
        """An edge speaks for the zone, and is reached there."""

    async def submit_histogram(self, submission: Submission) -> bool:
        """The zone's histogram; whether it has drifted so far that a new plan is made."""

    def watch_plan(self, zone: str) -> AsyncGenerator[ZonePlan]:
        """The zone's plan, now and whenever it or the directory changes."""

    async def report(self, report: ZoneReport) -> int:
        """Finished rounds; the last one that is on disk."""

    async def leave(self, zone: str) -> None:
        """The zone leaves the run."""

    def status(self) -> RunStatus:
        """How the run stands."""

    def watch_status(self) -> AsyncGenerator[RunStatus]:
        """The same, now and whenever it changes."""

    def dendrogram(self) -> str:
        """`dendrogram.json`; empty before the first plan."""

    async def plans(self) -> Sequence[PlanVersion]:
        """Every version of the plan so far."""

    def records(self) -> AsyncGenerator[ZoneRecords]:
        """All that was reported, zone by zone in the order of numbers; a zone's in any number of parts, in order."""


class _Servicer(cloud_pb2_grpc.CloudServiceServicer):
    """Methods have their names in the proto; the stubs' types are those of threads."""

    def __init__(self, handler: CloudHandler) -> None:
        self._handler = handler
        self._directories = Directories()

    async def Enrol(self, request: pb.EnrolRequest, context: Context) -> pb.EnrolResponse:  # noqa: N802
        require_edge_of(context, request.zone)
        enrolment = await self._handler.enrol(request.zone, request.address, request.life)
        return pb.EnrolResponse(number=enrolment.number, run=enrolment.run, lease=enrolment.lease)

    async def SubmitHistogram(  # noqa: N802
        self, request: pb.SubmitHistogramRequest, context: Context
    ) -> pb.SubmitHistogramResponse:
        require_edge_of(context, request.zone)
        drifted = await self._handler.submit_histogram(submission_from_wire(request))
        return pb.SubmitHistogramResponse(drifted=drifted)

    async def WatchPlan(  # noqa: N802
        self, request: pb.WatchPlanRequest, context: Context
    ) -> AsyncIterator[pb.WatchPlanResponse]:
        require_edge_of(context, request.zone)
        async with aclosing(self._handler.watch_plan(request.zone)) as plans:
            async for plan in plans:
                yield pb.WatchPlanResponse(plan=plan_to_wire(plan, self._directories))

    async def Report(self, request: pb.ReportRequest, context: Context) -> pb.ReportResponse:  # noqa: N802
        require_edge_of(context, request.zone)
        return pb.ReportResponse(round=await self._handler.report(report_from_wire(request)))

    async def Leave(self, request: pb.LeaveRequest, context: Context) -> pb.LeaveResponse:  # noqa: N802
        require_edge_of(context, request.zone)
        await self._handler.leave(request.zone)
        return pb.LeaveResponse()

    async def GetStatus(self, _request: pb.GetStatusRequest, _context: Context) -> pb.GetStatusResponse:  # noqa: N802
        return pb.GetStatusResponse(status=status_to_wire(self._handler.status()))

    async def WatchStatus(  # noqa: N802
        self, _request: pb.WatchStatusRequest, _context: Context
    ) -> AsyncIterator[pb.WatchStatusResponse]:
        async with aclosing(self._handler.watch_status()) as statuses:
            async for status in statuses:
                yield pb.WatchStatusResponse(status=status_to_wire(status))

    async def GetRecords(  # noqa: N802
        self, _request: pb.GetRecordsRequest, _context: Context
    ) -> AsyncIterator[pb.GetRecordsResponse]:
        for piece in tree_pieces(self._handler.dendrogram(), await self._handler.plans()):
            yield piece
        async with aclosing(self._handler.records()) as parts:
            async for records in parts:
                for piece in records_pieces(records):
                    yield piece


def add_cloud(server: grpc.aio.Server, handler: CloudHandler) -> None:
    """Serve the cloud."""
    cloud_pb2_grpc.add_CloudServiceServicer_to_server(_Servicer(handler), server)


class CloudClient:
    """The cloud over a channel, which its owner closes. Errors are ours, as the cloud raised them."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub: Any = cloud_pb2_grpc.CloudServiceStub(channel)

    async def enrol(self, zone: str, address: str, *, life: int = 0, timeout: float = TIMEOUT) -> Enrolment:
        """Speak for the zone, whose edge is reached at `address`; `life` is this process's own number."""
        with translated():
            request = pb.EnrolRequest(zone=zone, address=address, life=life)
            response = await self._stub.Enrol(request, timeout=timeout)
        return Enrolment(response.number, response.run, response.lease)

    async def submit_histogram(
        self,
        zone: str,
        histogram: npt.ArrayLike,
        *,
        devices: int,
        model: Model,
        initial: bytes,
        epsilon: float = 0.0,
        timeout: float = TIMEOUT,
    ) -> bool:
        """Submit the zone's histogram; whether it has drifted."""
        mass = tuple(as_floats(histogram, "histogram", HistogramError).ravel().tolist())
        submission = Submission(zone, mass, devices, model, initial, epsilon)
        with translated():
            response = await self._stub.SubmitHistogram(submission_to_wire(submission), timeout=timeout)
        return bool(response.drifted)

    async def watch_plan(self, zone: str) -> AsyncGenerator[ZonePlan]:
        """The zone's plans, until the connection breaks: then an UnavailableError."""
        call = self._stub.WatchPlan(pb.WatchPlanRequest(zone=zone))
        try:
            with translated():
                async for response in call:
                    yield plan_from_wire(_given(response, "plan"))
        finally:
            call.cancel()

    async def report(self, report: ZoneReport, *, timeout: float = TIMEOUT) -> int:
        """Report; the last round that is on the cloud's disk."""
        with translated():
            response = await self._stub.Report(report_to_wire(report), timeout=timeout)
        return int(response.round)

    async def leave(self, zone: str, *, timeout: float = TIMEOUT) -> None:
        """Leave the run."""
        with translated():
            await self._stub.Leave(pb.LeaveRequest(zone=zone), timeout=timeout)

    async def status(self, *, timeout: float = TIMEOUT) -> RunStatus:
        """How the run stands."""
        with translated():
            response = await self._stub.GetStatus(pb.GetStatusRequest(), timeout=timeout)
        return status_from_wire(_given(response, "status"))

    async def watch_status(self) -> AsyncGenerator[RunStatus]:
        """How the run stands, whenever it changes, until the connection breaks."""
        call = self._stub.WatchStatus(pb.WatchStatusRequest())
        try:
            with translated():
                async for response in call:
                    yield status_from_wire(_given(response, "status"))
        finally:
            call.cancel()

    async def records(self, *, timeout: float | None = None) -> tuple[str, list[ZoneRecords]]:
        """`dendrogram.json`, and all that was reported, in the order of the zones' numbers."""
        tree, records, _ = await self.history(timeout=timeout)
        return tree, records

    async def history(self, *, timeout: float | None = None) -> tuple[str, list[ZoneRecords], list[PlanVersion]]:
        """The same, and every version of the plan so far."""
        tree, parts = [], []
        plans: list[PlanVersion] = []
        with translated():
            async for response in self._stub.GetRecords(pb.GetRecordsRequest(), timeout=timeout):
                if response is None:
                    raise ProtocolError("the cloud sent bytes that are no message")
                if response.zone:
                    parts.append(records_from_wire(response))
                else:
                    tree.append(response.dendrogram)
                    plans += plans_from_wire(response)
        # Asked afterwards: whoever has records by then has a number.
        numbers = {zone.zone: zone.number for zone in (await self.status()).zones}
        return "".join(tree), _joined(parts, numbers), plans


def submission_to_wire(submission: Submission) -> pb.SubmitHistogramRequest:
    """A zone's histogram."""
    return pb.SubmitHistogramRequest(
        zone=submission.zone,
        histogram=submission.histogram,
        devices=submission.devices,
        model=model_to_wire(submission.model),
        initial=submission.initial,
        epsilon=submission.epsilon,
    )


def submission_from_wire(message: pb.SubmitHistogramRequest) -> Submission:
    """A zone's histogram."""
    if not message.HasField("model"):
        raise InputError("model is missing: say which model the zone's devices have")
    return Submission(
        message.zone,
        tuple(message.histogram),
        message.devices,
        model_from_wire(message.model),
        message.initial,
        checked_epsilon("epsilon", message.epsilon),
    )


def _joined(parts: list[ZoneRecords], numbers: dict[str, int]) -> list[ZoneRecords]:
    """The parts of each zone as one, its rounds with its number."""
    rounds: dict[str, list[RoundRecord]] = {}
    joined: dict[str, ZoneRecords] = {}
    for part in parts:
        number = numbers[part.zone]
        own = [replace(record, report=replace(record.report, zone=number)) for record in part.rounds]
        rounds.setdefault(part.zone, []).extend(own)
        before = joined.get(part.zone)
        evaluations = part.evaluations if before is None else (*before.evaluations, *part.evaluations)
        joined[part.zone] = replace(part, rounds=(), evaluations=evaluations)
    return [replace(records, rounds=tuple(rounds[zone])) for zone, records in joined.items()]


def _given(response: Any, field: str) -> Any:
    if response is None:  # what gRPC makes of bytes that it cannot parse
        raise ProtocolError("the cloud sent bytes that are no message")
    if not response.HasField(field):
        raise InputError(f"the cloud's answer has no {field}: is it a cloud of this version?")
    return getattr(response, field)
