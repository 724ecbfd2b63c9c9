"""What is typed wins over what the environment says; what is typed and would do nothing is refused."""

import json
from pathlib import Path

import pytest

from console.asked_cloud import AskedCloud
from console.certs import make_certificates
from tests.console.commands import sgfusion
from tests.console.doctor.test_certificates import EVERYONE, NOW

Capture = pytest.CaptureFixture[str]
NOBODY = "127.0.0.1:1"
ELSEWHERE = frozenset({"cloud", "certs"})


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    make_certificates(tmp_path / "certs", EVERYONE, days=365, renew=False, now=NOW)
    return tmp_path / "certs"


@pytest.mark.parametrize("also_certs", [False, True])
def test_a_folder_that_is_typed_is_not_overridden_by_the_environment(
    also_certs: bool, keys: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    monkeypatch.setenv("SGFUSION_CLOUD", NOBODY)
    if also_certs:
        monkeypatch.setenv("SGFUSION_CERTS", str(keys / "operator"))
    for command in (("status",), ("watch",), ("export", "--zone", "ash", "--last")):
        assert f"error: no cluster runs in {folder}" in words(sgfusion(capsys, *command, folder).error), command
    of_results = sgfusion(capsys, "export", folder, "--zone", "ash").error
    assert f"{folder} is no results folder" in words(of_results), "nor is a finished one asked of a cloud"
    found = json.loads(sgfusion(capsys, "doctor", folder, "--json").out)["findings"]
    (cloud,) = [each for each in found if each["check"] == "cloud"]
    assert cloud["text"].startswith(f"no cluster runs in {folder}")
    assert not [each for each in found if each["check"] == "certificates"], "whose keys they are was not asked"


def test_without_a_folder_the_environment_says_who_is_asked_and_with_which_keys(
    keys: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SGFUSION_CLOUD", NOBODY)
    assert "give --certs DIR, the operator's own folder" in words(sgfusion(capsys, "status").error)
    for typed, certs in ((("--certs", str(keys / "operator")), "nowhere"), ((), str(keys / "operator"))):
        monkeypatch.setenv("SGFUSION_CERTS", certs)
        assert NOBODY in sgfusion(capsys, "status", *typed).error
    monkeypatch.delenv("SGFUSION_CLOUD")
    assert "no cluster runs in results/ here" in words(sgfusion(capsys, "status").error), "keys alone say of nobody"
    monkeypatch.setenv("SGFUSION_CLOUD", "127.0.0.1:2")
    assert NOBODY in sgfusion(capsys, "status", "--cloud", NOBODY).error


def test_insecure_that_is_typed_is_not_refused_for_keys_that_nobody_typed(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SGFUSION_CERTS", str(tmp_path))
    assert f"no connection to {NOBODY}" in words(sgfusion(capsys, "status", "--cloud", NOBODY, "--insecure").error)
    found = json.loads(sgfusion(capsys, "doctor", "--cloud", NOBODY, "--insecure", "--json").out)["findings"]
    assert [each["verdict"] for each in found if each["check"] == "cloud"] != []


@pytest.mark.parametrize("command", [("status",), ("watch",), ("export", "--zone", "ash"), ("doctor",)])
def test_a_folder_and_a_cloud_that_are_both_typed_are_refused(
    command: tuple[str, ...], tmp_path: Path, capsys: Capture
) -> None:
    done = sgfusion(capsys, *command, tmp_path, "--cloud", NOBODY, "--insecure")
    assert done.code == 1
    assert f"{tmp_path} and --cloud {NOBODY}: each says whom to ask. Give one of them" in words(done.error)


@pytest.mark.parametrize("command", [("status",), ("watch",), ("export", "--zone", "ash"), ("doctor",)])
@pytest.mark.parametrize("option", [("--certs", "keys"), ("--insecure",)])
def test_an_option_that_would_do_nothing_is_refused(
    command: tuple[str, ...], option: tuple[str, ...], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SGFUSION_CLOUD", NOBODY)
    done = sgfusion(capsys, *command, tmp_path, *option)
    said = f"{option[0]} goes with --cloud HOST:PORT, and not with {tmp_path}"
    if (command[0], option[0]) == ("doctor", "--certs"):
        assert said not in words(done.error), "it says which certificates are looked at"
    else:
        assert done.code == 1
        assert said in words(done.error)


def test_an_edge_is_asked_in_place_of_a_cloud() -> None:
    keys = Path("keys")
    asked = AskedCloud(NOBODY, keys, environment=ELSEWHERE)
    assert asked.meant(edge="ash=a:1", looks_at_keys=True) == AskedCloud(certs=keys)
    assert asked.meant(folder=Path("results"), looks_at_keys=True) == AskedCloud()
    assert asked.meant() == AskedCloud(NOBODY, keys)
    assert AskedCloud(certs=keys).meant(looks_at_keys=True) == AskedCloud(certs=keys)
