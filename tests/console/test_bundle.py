"""`sgfusion certs --bundle`: all that the host of one zone needs, in one file."""

import io
import os
import stat
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

from sgfusion.wire.channel import Keys
from sgfusion.wire.identity import Identity
from tests.console.commands import ROOT, sgfusion
from tests.console.test_certs import RUN

Capsys = pytest.CaptureFixture[str]


@pytest.fixture
def run_file(tmp_path: Path, capsys: Capsys) -> Path:
    """A run whose keys are in `certs` beside it."""
    path = tmp_path / "small.toml"
    path.write_text(RUN, "utf-8")
    assert sgfusion(capsys, "certs", path, "--out", tmp_path / "certs").code == 0
    return path


def bundled(capsys: Capsys, run_file: Path, *arguments: str) -> Path:
    """The folder of what was in the bundle."""
    here = run_file.parent
    made = sgfusion(capsys, "certs", run_file, "--out", here / "certs", "--bundle", here / "zone.tar", *arguments)
    assert made.code == 0, made.error
    assert stat.S_IMODE((here / "zone.tar").stat().st_mode) == 0o600
    with tarfile.open(here / "zone.tar") as tar:
        assert {entry.mode for entry in tar} == {0o600}
        tar.extractall(here / "there", filter="data")
    return here / "there"


def test_a_new_zones_host_gets_its_own_keys_and_a_run_that_has_the_zone(capsys: Capsys, run_file: Path) -> None:
    there = bundled(capsys, run_file, "--zone", "zamość")
    Keys.load(there / "edge", Identity("edge", "zamość"))
    assert sorted(path.name for path in (there / "devices").iterdir()) == [
        "device-d0",
        "device-d1",
        "device-d2",
        "run.toml",
    ]
    Keys.load(there / "devices" / "device-d1", Identity("device", "d1"))
    run = tomllib.loads((there / "devices" / "run.toml").read_text("utf-8"))
    assert run["zones"]["names"] == ["lublin", "radom", "zamość"]  # the number that the cloud will give it
    authority = (run_file.parent / "certs" / "ca.crt").read_bytes()
    assert {path.read_bytes() for path in there.rglob("ca.crt")} == {authority}
    assert not list(there.rglob("ca.key"))


def test_a_zone_of_the_run_and_devices_by_name(capsys: Capsys, run_file: Path) -> None:
    there = bundled(capsys, run_file, "--zone", "radom", "--device", "phone", "--device", "watch")
    assert sorted(path.name for path in (there / "devices").iterdir()) == ["device-phone", "device-watch", "run.toml"]
    run = tomllib.loads((there / "devices" / "run.toml").read_text("utf-8"))
    assert run["zones"]["names"] == ["lublin", "radom"]


def test_a_bundle_on_stdout_is_alone_there(run_file: Path) -> None:
    command = [sys.executable, "-m", "console.main", "certs", run_file.name, "--zone", "radom", "--bundle", "-"]
    done = subprocess.run(
        command, cwd=run_file.parent, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        assert "edge/tls.key" in tar.getnames()
    assert b"keep it to yourself" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give one --zone"),
        (("--zone", "radom", "--zone", "lublin"), "give one --zone"),
        (("--zone", "radom", "--host", "radom"), "no --host"),
        (("--zone", "radom", "--out", "elsewhere"), "no CA is in elsewhere"),
    ],
)
def test_what_is_no_bundle(capsys: Capsys, run_file: Path, arguments: tuple[str, ...], words: str) -> None:
    here = run_file.parent
    refused = sgfusion(capsys, "certs", run_file, "--out", here / "certs", "--bundle", here / "no.tar", *arguments)
    assert refused.code != 0
    assert words in " ".join(refused.error.split())
    assert not (here / "no.tar").exists()
