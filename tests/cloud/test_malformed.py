"""Input that makes no sense, on every RPC of the cloud: a status that names it, a count, and everybody else goes on."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloud.checks import check_enrolment, check_report, check_submission
from cloud.state import Plan, State, Zone, first_state
from sgfusion.errors import HistogramError, InputError, ProtocolError, SGFusionError
from sgfusion.plan import ZoneState
from sgfusion.proto.v1 import cloud_pb2 as pb
from sgfusion.reports import Attendance, RoundRecord, ZoneReport
from sgfusion.waiting import Waiting
from sgfusion.wire.cloud_rpc import Submission
from sgfusion.wire.identity import Identity
from sgfusion.wire.status import from_rpc_error
from tests.cloud.clouds import Cluster, a_cloud
from tests.cloud.values import MASSES, MODEL, NAMES, THETA, a_point, a_report, a_round, a_run
from tests.cluster.keys import OPERATOR, run_async
from tests.cluster.rpcs import BY_NAME

GOOD = Submission("ash", MASSES["ash"], 3, MODEL, THETA)


def a_state() -> State:
    state = first_state(a_run(), started=0.0).with_zone(Zone("ash", 0, "ash:1", ZoneState.TRAINING))
    return replace(state, plan=Plan(1, "all", NAMES, (), "{}", 0.0))


# Values


@pytest.mark.parametrize(
    ("zone", "address", "said"),
    [
        ("", "h:1", "zone = ''"),
        ("../etc", "h:1", "zone = '../etc'"),
        ("-x", "h:1", "zone = '-x'"),
        ("a b", "h:1", "zone = 'a b'"),
        ("a\n", "h:1", r"zone = 'a\\n'"),
        ("x" * 101, "h:1", "zone = 'xxx.*at most 100"),
        ("ash", "", "address is ''"),
        ("ash", "h", "address is 'h'"),
        ("ash", "h:x", "address is 'h:x'"),
        ("ash", "h:70000", "address is 'h:70000'"),
        ("ash", "h:0", "address = 'h:0': port 0 cannot be dialled"),
        ("ash", "h h:1", "address = 'h h:1'"),
        ("ash", "h\x00:1", r"address = 'h\\x00:1'"),
        ("ash", "h" * 300 + ":1", "at most 300 characters"),
    ],
)
def test_enrolments(zone: str, address: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        check_enrolment(zone, address)


@pytest.mark.parametrize("zone", ["ash", "łódzkie", "a.b-c_d", "7", "x" * 100])
@pytest.mark.parametrize("address", ["127.0.0.1:1", "[::1]:7400", "edge-ash.example.org:65535"])
def test_good_enrolments(zone: str, address: str) -> None:
    check_enrolment(zone, address)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"histogram": (0.5, 0.5)}, "zone 'ash': its histogram has 2 bins, its model says 4"),
        ({"histogram": ()}, "has 0 bins"),
        ({"histogram": (math.nan, 0.5, 0.5, 0.0)}, "bin 0 holds nan"),
        ({"histogram": (0.5, math.inf, 0.5, 0.0)}, "bin 1 holds inf"),
        ({"histogram": (1.5, 0.5, -1.0, 0.0)}, "bin 2 holds a negative number,"),
        ({"histogram": (1.0, 1.0, 1.0, 1.0)}, "does not sum to 1: scale it"),
        ({"histogram": (0.0, 0.0, 0.0, 0.0)}, "does not sum to 1: scale it"),
        ({"devices": 0}, "devices = 0"),
        ({"devices": 2**32 - 1}, "devices = 4294967295"),
        ({"initial": b""}, "initial has 0 bytes: give the 32"),
        ({"initial": bytes(33)}, "initial has 33 bytes"),
    ],
)
def test_histograms(wrong: dict[str, Any], said: str) -> None:
    check_submission(GOOD)
    with pytest.raises(InputError, match=said) as refused:
        check_submission(replace(GOOD, **wrong))
    assert isinstance(refused.value, HistogramError) == ("histogram" in wrong)


def rounded(**wrong: Any) -> dict[str, Any]:
    record = a_round(1)
    report = {key: value for key, value in wrong.items() if hasattr(record.report, key)}
    own = {key: value for key, value in wrong.items() if key not in report}
    return {"rounds": (replace(record, report=replace(record.report, **report), **own),)}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"state": ZoneState.EXPECTED}, r"report\.state = EXPECTED: .* GATHERING"),
        ({"state": ZoneState.LOST}, r"report\.state = LOST"),
        ({"state": ZoneState.LEFT}, r"report\.state = LEFT"),
        ({"round": 21}, r"report\.round = 21: the run has 20 rounds"),
        ({"rounds": (a_round(1),) * 1001}, r"report\.rounds holds 1001 records: send at most 1000"),
        ({"evaluations": (a_point(1),) * 1001}, r"report\.evaluations holds 1001 records"),
        ({"evaluations": (a_point(21),)}, r"report\.evaluations has round 21"),
        (rounded(round=0), r"report\.rounds has round 0: the run's rounds are 1 to 20"),
        (rounded(round=21), "has round 21"),
        (rounded(drawn=(1, 5), attention={1: 1.0}, left_out={5: "late"}), r"drawn = \[1, 5\]: .* 0 to 4, ascending"),
        (rounded(drawn=(3, 1)), r"drawn = \[3, 1\]"),
        (rounded(drawn=(1, 1)), r"drawn = \[1, 1\]"),
        (rounded(attention={2: 1.0}), r"attention of \[2\] and left_out of \[3\] are not together the drawn \[1, 3\]"),
        (rounded(left_out={}), r"left_out of \[\]"),
        (rounded(attention={1: math.nan}), r"attention\[1\] = nan"),
        (rounded(peer_norms={}), r"peer_norms of \[\], attention of \[1\]"),
        (rounded(peer_norms={1: math.inf}), r"peer_norms: 1 = inf"),
        (rounded(rate=math.nan), r"rate = nan"),
        (rounded(local_norm=-1.0), r"local_norm = -1\.0"),
        (rounded(direction_norm=math.inf), "direction_norm = inf"),
        (rounded(step_norm=math.nan), "step_norm = nan"),
        (rounded(left_out={3: "x" * 1001}), "left_out has 'xxx.*1001 characters"),
        (rounded(devices_left_out={"u" * 201: ""}), "devices_left_out has 'uuu.*201 characters"),
        (rounded(devices_left_out={"u": "x" * 1001}), "devices_left_out has 'xxx.*1001 characters"),
        ({"attendance": Attendance(1, ("u" * 201,))}, r"attendance\.attending has 'uuu"),
        ({"attendance": Attendance(1, (), {"u" * 201: ""})}, r"attendance\.missing has 'uuu"),
        ({"attendance": Attendance(1, (), {"u": "x" * 1001})}, r"attendance\.missing has 'xxx"),
        ({"refusals": {str(i): 1 for i in range(101)}}, r"report\.refusals has 101 entries"),
        ({"overdue": "x" * 1001}, "overdue and .* has 'xxx"),
        ({"version": "x" * 1001}, "report.version has 'xxx"),
        ({"diverged": "x" * 1001}, "diverged has 'xxx"),
        ({"waiting": Waiting(21, 4.0)}, r"report\.waiting has round 21: the run has 20 rounds"),
        ({"waiting": Waiting(1, math.nan)}, r"report\.waiting: seconds = nan"),
        ({"waiting": Waiting(1, -1.0)}, r"report\.waiting: seconds = -1\.0"),
        ({"waiting": Waiting(1, 4.0, (3, 1))}, r"report\.waiting\.zones = \[3, 1\]: .* 0 to 4, ascending"),
        ({"waiting": Waiting(1, 4.0, (5,))}, r"report\.waiting\.zones = \[5\]"),
        ({"waiting": Waiting(1, 4.0, (), ("u" * 201,))}, r"report\.waiting\.devices has 'uuu"),
    ],
)
def test_reports(wrong: dict[str, Any], said: str) -> None:
    good = a_report("ash", round=1, rounds=(a_round(1),), evaluations=(a_point(0),), plan=1)
    check_report(a_state(), good)
    with pytest.raises(InputError, match=said):
        check_report(a_state(), replace(good, **wrong))


def test_a_loss_and_a_score_may_be_no_number() -> None:
    check_report(
        a_state(), a_report("ash", rounds=(a_round(1, loss=math.nan),), evaluations=(a_point(1, total=math.inf),))
    )


# On the socket

EDGE = Identity("edge", "ash")
RPCS = {
    "Enrol": EDGE,
    "SubmitHistogram": EDGE,
    "WatchPlan": EDGE,
    "Report": EDGE,
    "Leave": EDGE,
    "GetStatus": OPERATOR,
    "WatchStatus": OPERATOR,
    "GetRecords": OPERATOR,
}


def test_every_rpc_of_the_cloud_is_here() -> None:
    assert set(RPCS) == {name for name, rpc in BY_NAME.items() if "CloudService" in rpc.path}


async def refused(cluster: Cluster, name: str, request: bytes) -> SGFusionError:
    channel = await cluster.channel(RPCS[name])
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await BY_NAME[name].call(channel, request)
    return from_rpc_error(error.value)


def test_garbage_on_every_rpc_is_named_and_counted_and_other_streams_go_on(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, a_run()) as cluster:
            await cluster.arrive(*NAMES)
            async with cluster.plans("birch") as plans:
                await anext(plans)
                for name in RPCS:
                    error = await refused(cluster, name, b"\xff" * 100)
                    assert isinstance(error, ProtocolError)
                    assert f"100 bytes to /sgfusion.v1.CloudService/{name} are not its message" in str(error)
                assert cluster.refusals.counts() == {"ProtocolError": len(RPCS)}
                await cluster.enrol("elm", port=9)
                assert (await anext(plans)).directory[3].address == "elm:9"
            assert (await (await cluster.operator()).status()).refusals == {"ProtocolError": len(RPCS)}

    run_async(work())


def edited(edit: Callable[[pb.ReportRequest], object]) -> bytes:
    message = pb.ReportRequest(zone="ash", state=pb.ZONE_STATE_TRAINING, attendance=pb.Attendance())
    edit(message)
    return message.SerializeToString()


def model(**wrong: Any) -> pb.Model:
    metric = pb.Metric(name="RMSE", unit="bpm", root=True, lower_is_better=True)
    return pb.Model(**{"fingerprint": "linear/6", "length": 100, "metric": metric, "bins": 4, **wrong})


def submitted(**wrong: Any) -> bytes:
    good = {"zone": "ash", "histogram": MASSES["ash"], "devices": 3, "model": model(), "initial": THETA}
    return pb.SubmitHistogramRequest(**{**good, **wrong}).SerializeToString()


@pytest.mark.parametrize(
    ("name", "request_bytes", "said"),
    [
        ("Enrol", b"", "may not speak for edge "),
        ("Enrol", pb.EnrolRequest(zone="ash", address="nowhere").SerializeToString(), "address is 'nowhere'"),
        ("SubmitHistogram", submitted(model=None), "model is missing"),
        ("SubmitHistogram", submitted(model=model(length=0)), "model.length = 0"),
        ("SubmitHistogram", submitted(model=model(bins=0)), "model.bins = 0"),
        ("SubmitHistogram", submitted(histogram=[math.nan] * 4), "bin 0 holds nan"),
        ("SubmitHistogram", submitted(devices=0), "devices = 0"),
        ("SubmitHistogram", submitted(epsilon=math.inf), "epsilon = inf: give the ε that was spent"),
        ("SubmitHistogram", submitted(model=model(edges=[1.0])), "model.edges has 1 numbers: give bins + 1 = 5"),
        ("WatchPlan", b"", "may not speak for edge "),
        ("WatchPlan", pb.WatchPlanRequest(zone="birch").SerializeToString(), "may not speak for edge birch"),
        ("Report", edited(lambda m: m.ClearField("state")), "report.state = 0"),
        ("Report", edited(lambda m: m.ClearField("attendance")), "report.attendance is missing"),
        ("Report", edited(lambda m: m.evaluations.add(round=1)), "evaluation.validation is missing"),
        ("Report", edited(lambda m: m.rounds.add(round=2**32 - 1)), "has round 4294967295"),
        ("Report", edited(lambda m: m.rounds.add(round=1, rate=math.nan)), "rate = nan"),
        ("Report", edited(lambda m: m.rounds.add(round=1, drawn=[2**32 - 1])), "drawn = [4294967295]"),
        ("Leave", b"", "may not speak for edge "),
    ],
)
def test_wrong_values_on_the_socket_are_named(tmp_path: Path, name: str, request_bytes: bytes, said: str) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, a_run()) as cluster:
            await cluster.enrol("ash")
            assert said in str(await refused(cluster, name, request_bytes))
            assert sum(cluster.refusals.counts().values()) == 1
            await cluster.submit("ash")

    run_async(work())


def test_a_message_above_the_limit_is_refused_and_the_cloud_goes_on(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, a_run()) as cluster:
            await cluster.enrol("ash")
            huge = pb.SubmitHistogramRequest(zone="ash", histogram=[0.0] * 400_000).SerializeToString()
            assert len(huge) < 4 << 20
            assert "model is missing" in str(await refused(cluster, "SubmitHistogram", huge))
            channel = await cluster.channel(EDGE)
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await BY_NAME["SubmitHistogram"].call(channel, bytes(5 << 20))
            assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            await cluster.submit("ash")

    run_async(work())


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(sorted(RPCS)), st.binary(max_size=60)), max_size=8))
def test_no_bytes_end_the_cloud(tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[str, bytes]]) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path_factory.mktemp("any"), a_run()) as cluster:
            await cluster.enrol("ash")
            for name, request in calls:
                channel = await cluster.channel(RPCS[name])
                try:
                    async with asyncio.timeout(0.3 if name.startswith("Watch") else 10):
                        await BY_NAME[name].call(channel, request)
                except grpc.aio.AioRpcError as error:
                    assert error.code() is not grpc.StatusCode.INTERNAL  # noqa: PT017 (not every call fails)
                    assert error.details()  # noqa: PT017
                except TimeoutError:
                    assert name == "WatchStatus"
            assert "internal" not in cluster.refusals.counts()
            assert (await (await cluster.operator()).status()).run == "woods"

    run_async(work())


def test_a_thousand_records_are_one_report(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_cloud(tmp_path, a_run(rounds=1000)) as cluster:
            await cluster.enrol("ash")
            rounds: tuple[RoundRecord, ...] = tuple(a_round(number) for number in range(1, 1001))
            report: ZoneReport = a_report("ash", round=1000, rounds=rounds)
            assert await (await cluster.edge("ash")).report(report) == 1000

    run_async(work())
