"""docs/privacy.md against the protocol and the code: no field that leaves a device or an edge is forgotten there."""

import re
from collections.abc import Iterator

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from device.sources.outlines import mean_points
from sgfusion.histogram import UNIT
from sgfusion.privacy import measurement, sensitivity
from sgfusion.proto.v1 import cloud_pb2, edge_pb2, peer_pb2, server_pb2
from sgfusion.runfile import Histogram
from sgfusion.wire.identity import ROLES
from tests.pages import page

PAGE = page("docs/privacy.md")


def section(heading: str) -> str:
    _, found, rest = PAGE.partition(f"\n## {heading}\n")
    assert found, heading
    return rest.partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """The cells of all rows of all tables, heads left out."""
    bodies = re.findall(r"^\|.*\n\|[-:| ]+\|\n((?:\|.*\n)*)", text, re.MULTILINE)
    return [[cell.strip() for cell in row[1:-1].split("|")] for body in bodies for row in body.splitlines()]


def messages(top: Descriptor) -> Iterator[Descriptor]:
    """The messages in a message, the outermost left out if it only chooses one of others."""
    for field in top.fields:
        inner = field.message_type
        if inner is not None and not inner.GetOptions().map_entry:
            yield inner
            yield from messages(inner)


def named(messages: Iterator[Descriptor]) -> list[str]:
    every = dict.fromkeys(messages)
    return [f"{message.name}.{field.name}" for message in every for field in message.fields]


def test_every_field_that_a_device_sends_is_in_the_table() -> None:
    listed = [row[0].strip("`") for row in rows(section("What leaves a device"))]
    sent = named(messages(edge_pb2.AttendRequest.DESCRIPTOR))
    assert len(sent) > 25
    assert sorted(listed) == sorted(sent)


def test_what_has_the_data_in_it_is_said_to_be_noised_or_not() -> None:
    said = {row[0].strip("`"): row[3] for row in rows(section("What leaves a device"))}
    assert said["Hello.histogram"] == "**yes, by ε**"
    assert {field for field, noised in said.items() if noised == "**no**"} == {
        "Answer.vector",
        "Answer.loss",
        "TensorChunk.data",
    }
    assert [field for field, noised in said.items() if "yes" in noised] == ["Hello.histogram"]


TO_OTHERS: dict[str, list[type[Message]]] = {
    "the cloud": [
        cloud_pb2.EnrolRequest,
        cloud_pb2.SubmitHistogramRequest,
        cloud_pb2.WatchPlanRequest,
        cloud_pb2.ReportRequest,
        cloud_pb2.RoundRecord,
        cloud_pb2.Evaluation,
        cloud_pb2.Attendance,
        cloud_pb2.Waiting,
        cloud_pb2.LeaveRequest,
    ],
    "another zone's edge": [peer_pb2.DirectionRequest, peer_pb2.DirectionResponse],
    "its devices": [edge_pb2.Welcome, edge_pb2.Ask, edge_pb2.Directory],
    "an operator": [edge_pb2.FetchModelResponse],
    "any of these": [server_pb2.DescribeResponse],
}
IN_DEVICES_TABLE = {"Model", "Metric", "Score", "TensorChunk"}


def test_every_field_that_an_edge_sends_is_in_the_table() -> None:
    listed: dict[str, list[tuple[str, list[str]]]] = {}
    whom = ""
    for to, message, fields in rows(section("What leaves an edge")):
        whom = to or whom
        found = re.match(r"`(\w+)`", message)
        assert found is not None
        listed.setdefault(whom, []).append((found[1], fields.split(", ")))
    assert listed == {
        whom: [(each.DESCRIPTOR.name, [field.name for field in each.DESCRIPTOR.fields]) for each in sent]
        for whom, sent in TO_OTHERS.items()
    }


def test_no_message_that_an_edge_sends_is_left_out() -> None:
    """All requests of the cloud's service that an edge may call, and all that it answers others."""
    ours = {each.DESCRIPTOR.name for sent in TO_OTHERS.values() for each in sent}
    to_cloud = [
        method.input_type
        for method in cloud_pb2.DESCRIPTOR.services_by_name["CloudService"].methods
        if method.name not in ("GetStatus", "WatchStatus", "GetRecords")  # an operator's
    ]
    answers = [
        *(method.output_type for method in edge_pb2.DESCRIPTOR.services_by_name["EdgeService"].methods),
        *(method.output_type for method in peer_pb2.DESCRIPTOR.services_by_name["PeerService"].methods),
        *(method.output_type for method in server_pb2.DESCRIPTOR.services_by_name["ServerService"].methods),
        *(method.input_type for method in peer_pb2.DESCRIPTOR.services_by_name["PeerService"].methods),
    ]
    reached = {each.name for top in (*to_cloud, *answers) for each in (top, *messages(top))}
    assert reached - ours - IN_DEVICES_TABLE == {"AttendResponse"}  # which is one of Welcome, Ask and Directory


def test_numbers_of_the_noise_are_those_of_the_code() -> None:
    table = [row for row in rows(section("What ε covers")) if row[0].startswith("`")]
    assert {row[0].partition("`")[2].partition("`")[0] for row in table} == {"replace", "add-remove"}
    for adjacency, delta, one, ten in ((row[0].split("`")[1], *row[2:]) for row in table):
        assert sensitivity(adjacency) == int(delta)  # type: ignore[arg-type]
        for epsilon, said in ((1.0, one), (10.0, ten)):
            scale = float(re.findall(r"[\d.]+", said)[0])
            assert scale == sensitivity(adjacency) / epsilon  # type: ignore[arg-type]
            assert measurement(epsilon, adjacency).map(int(delta) * UNIT) <= epsilon  # type: ignore[arg-type]
    assert f"`histogram.epsilon` is {Histogram().epsilon:g} unless" in PAGE
    assert Histogram().adjacency == "replace"
    assert "`replace` (default)" in PAGE
    assert Histogram().budget is None


def test_mean_places_are_named_as_fine_as_they_are() -> None:
    assert mean_points({"one": (54.123456, 18.987654)}) == {"one": (((54.12, 18.99),),)}
    text = section("Where zones lie")
    assert "not noised**, to 0.01°" in text
    assert "zones.places" in text
    assert "mean places of zones, to 0.01°" in section("What ε does not cover")
    assert "(#where-zones-lie)" in section("What the page, metrics and logs show")


def test_every_role_is_in_the_threat_model() -> None:
    listed = [row[0] for row in rows(section("Who is trusted with what"))]
    for role in ROLES:
        assert any(role in who for who in listed), role


def test_no_repeated_field_is_hidden_in_a_map() -> None:
    """Maps are read as plain fields above; a map of messages would hide what is in them."""
    for top in (edge_pb2.AttendRequest.DESCRIPTOR, cloud_pb2.ReportRequest.DESCRIPTOR):
        for message in {top, *messages(top)}:
            for field in message.fields:
                entry = field.message_type
                if entry is not None and entry.GetOptions().map_entry:
                    assert entry.fields_by_name["value"].type != FieldDescriptor.TYPE_MESSAGE, field.full_name
