"""The page on the protocol: its tables and its numbers are those of the code."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from sgfusion.proto.v1 import cloud_pb2, edge_pb2, peer_pb2, server_pb2
from sgfusion.runfile import Deadlines, Quorum
from sgfusion.wire import channel
from sgfusion.wire.identity import ALLOWED
from sgfusion.wire.status import _TRANSPORT, CODES

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text("utf-8")
UNITS = {"": 1, "s": 1, "MiB": 1 << 20}
SERVICES = [
    cloud_pb2.DESCRIPTOR.services_by_name["CloudService"],
    edge_pb2.DESCRIPTOR.services_by_name["EdgeService"],
    peer_pb2.DESCRIPTOR.services_by_name["PeerService"],
    server_pb2.DESCRIPTOR.services_by_name["ServerService"],
]


def rows(heading: str, columns: str) -> list[list[str]]:
    """The rows of the section's table that has these columns."""
    _, found, rest = PAGE.partition(f"\n## {heading}\n")
    assert found, heading
    _, found, table = rest.partition("\n## ")[0].partition(f"\n{columns}\n")
    assert found, columns
    lines = table.partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]


def said(value: str) -> float:
    """The number that a cell says, in bytes or seconds if it has a unit."""
    number, _, unit = value.partition(" ")
    return float(number.replace(",", "")) * UNITS[unit]


def test_every_rpc_is_listed_with_its_roles_and_streams() -> None:
    listed = {
        cells[0].strip("`"): tuple(cells[1:4])
        for cells in rows("Services", "| RPC | role | request | response | what, and what a repeated call does |")
    }
    kinds = {False: "one", True: "stream"}
    expected = {
        f"{service.name}/{method.name}": (
            " or ".join(sorted(ALLOWED[f"/{service.full_name}/{method.name}"])),
            kinds[method.client_streaming],
            kinds[method.server_streaming],
        )
        for service in SERVICES
        for method in service.methods
    }
    assert listed == expected
    assert len(listed) == len(ALLOWED)


def test_every_error_has_the_status_of_the_table() -> None:
    listed = [
        (error.strip("`"), status.strip("`")) for error, status, _ in rows("Errors", "| error | status | what to do |")
    ]
    assert listed == [(error.__name__, code.name) for error, code in CODES.items()]


def test_the_transports_statuses_are_taken_for_what_the_table_says() -> None:
    listed = [(a.strip("`"), b.strip("`")) for a, b in rows("Errors", "| status of the transport | taken for |")]
    assert listed == [(code.name, error.__name__) for code, error in _TRANSPORT.items()]


CONSTANTS = [
    *rows("Time", "| what | value | in |"),
    *rows("Limits", "| what | at most | in |"),
    *rows("Limits", "| what | bound | in |"),
]


@pytest.mark.parametrize(("value", "place"), [cells[1:] for cells in CONSTANTS], ids=lambda cell: cell.strip("`"))
def test_a_number_is_that_of_the_code(value: str, place: str) -> None:
    module, _, name = place.strip("`").rpartition(".")
    assert getattr(importlib.import_module(module), name) == said(value)


def test_deadlines_and_quorums_have_the_defaults_of_the_run_file() -> None:
    sections: dict[str, Any] = {"deadlines": Deadlines(), "quorum": Quorum()}
    listed = {key.strip("`"): said(value) for _, value, key in rows("Time", "| what | default | key |")}
    assert listed == {
        f"{name}.{key}": value for name, section in sections.items() for key, value in section.model_dump().items()
    }


@pytest.mark.parametrize(("option", "value"), [cells[:2] for cells in rows("Time", "| gRPC option | value | what |")])
def test_keepalive_is_what_channels_and_servers_set(option: str, value: str) -> None:
    options = dict([*channel._CLIENT, *channel._SERVER])
    assert options[option.strip("`")] == 1000 * said(value)


def test_fields_for_people_are_there() -> None:
    modules = (cloud_pb2, edge_pb2, peer_pb2, server_pb2)
    messages = {name: found for each in modules for name, found in each.DESCRIPTOR.message_types_by_name.items()}
    listed = [row[0] for row in rows("What is for people", "| field | what |")]
    fields = [field for cell in listed for field in re.findall(r"`(\w+)\.(\w+)`", cell)]
    assert len(fields) == 19
    for message, field in fields:
        assert field in messages[message].fields_by_name


def test_diagrams_are_of_what_the_page_promises_and_name_rpcs_that_exist() -> None:
    titles = re.findall(r"^### (.*)\n(?:(?!^### ).*\n)*?```mermaid\nsequenceDiagram$", PAGE, re.MULTILINE)
    assert titles == [
        "Enrolment",
        "Histogram and plan",
        "A round",
        "Evaluation",
        "Roaming",
        "An edge restarts",
        "The cloud restarts",
        "A device restarts",
        "A new plan: a zone joins, leaves or drifts",
    ]
    known = {method.name for service in SERVICES for method in service.methods}
    known |= {*edge_pb2.DESCRIPTOR.message_types_by_name}
    named = re.findall(r"^  +\w+--?>>\w+: ([A-Z][a-z]+[A-Za-z]*)\b", PAGE, re.MULTILINE)
    assert len(named) > 40
    assert set(named) <= known
    # A semicolon ends a statement in a diagram, in the middle of a note too.
    assert not [block for block in re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL) if ";" in block]
