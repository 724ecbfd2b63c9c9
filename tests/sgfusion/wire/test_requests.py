"""A request's name is for people; from elsewhere it is anybody's text."""

import pytest

from sgfusion.wire.requests import LONGEST, checked_request, request_of


def test_names() -> None:
    assert request_of("lublin", 12) == "lublin.12"
    assert request_of("lublin", 12, "evaluation") == "lublin.12.evaluation"
    assert request_of("lublin", purpose="initial") == "lublin.initial"
    assert request_of("Łódź 2\n", 3) == "Łódź%202%0A.3"


@pytest.mark.parametrize("zone", ["lublin", "Łódź", "new york", "a\nb", "z" * 500, "\ud800", "a.b-c_d"])
def test_what_an_edge_sends_its_peer_takes(zone: str) -> None:
    for name in (request_of(zone, 2**32 - 1), request_of(zone, 7, "evaluation"), request_of(zone, purpose="initial")):
        assert checked_request(name, zone) == name
        assert len(name) <= LONGEST


@pytest.mark.parametrize(
    "odd", ["", "lublin", "podlaskie.12", "lublin.1\n2", "lublin.\x1b[2J", "lublin. 1", "lublin.\u202e"]
)
def test_odd_ones_are_dropped(odd: str) -> None:
    assert checked_request(odd, "lublin") == ""


def test_too_long_ones_are_dropped() -> None:
    assert checked_request("a." + "1" * LONGEST, "a") == ""
    assert checked_request("a." + "1" * (LONGEST - 2), "a") != ""


def test_a_device_takes_any_zones() -> None:
    assert checked_request("podlaskie.12") == "podlaskie.12"
    assert checked_request("pod laskie.12") == ""
