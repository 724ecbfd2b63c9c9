"""What is said of zones before they train, besides those of one device (test_lone_devices.py)."""

from console.zone_notes import misplaced, roaming_devices, zone_notes
from sgfusion.runfile import parse_run_file
from tests.run_files import BASE

TWO = {"north": ("u1", "u2"), "south": ("u2", "u3")}


def test_a_device_in_two_zones_is_named_with_them() -> None:
    assert roaming_devices(TWO) == (
        "1 device is in more than one zone: u2 (north, south). Such a device takes part in each, with that zone's"
        " samples alone; if these are different devices, give each a name of its own",
    )
    assert roaming_devices({"north": ("u1",), "south": ("u2",)}) == ()


def test_of_many_devices_the_first_are_named() -> None:
    ids = [f"u{number}" for number in range(40)]
    (note,) = roaming_devices({"north": ids, "south": ids})
    assert note.startswith("40 devices are in more than one zone: u0 (north, south), u1 (north, south), ")
    assert " and 30 more. Such" in note


def test_a_place_is_asked_about_only_if_a_zone_of_that_name_nearly_lacks_one() -> None:
    (note,) = misplaced(("harbour", "moor"), ("harbor", "moor"))
    assert note == "zones.places has 'harbor', which is no zone of this run: is it 'harbour', which has no place?"
    assert misplaced(("harbour", "moor"), ("harbor", "harbour", "moor")) == (), "harbour has its own"
    assert misplaced(("harbour", "moor"), ("harbour", "moor", "tundra")) == (), "it may join later"


def test_a_run_has_them_all() -> None:
    run = parse_run_file(BASE + "[zones.places]\nsuoth = [[[1, 2]]]\n", ['data.source="table"'])
    found = zone_notes(run, {**TWO, "east": ("u4",)}, {"east": 90})
    assert [note.split()[:2] for note in found] == [["one", "device"], ["1", "device"], ["zones.places", "has"]]
    flights = parse_run_file(run.to_toml(), ['data.source="flights"'])
    assert zone_notes(flights, {**TWO, "east": ("u4",)}, {"east": 90}) == (found[0], found[2]), "aircraft do roam"
