"""A results folder that does not exist is called so by every command that takes one."""

from pathlib import Path

import pytest

from tests.console.commands import sgfusion

COMMANDS = (
    ("status", "results/nothere"),
    ("watch", "results/nothere"),
    ("join", "results/nothere", "--zone", "elm"),
    ("view", "results/nothere"),
    ("doctor", "results/nothere"),
    ("predict", "results/nothere", "--zone", "elm"),
    ("export", "results/nothere", "--zone", "elm"),
    ("export", "results/nothere", "--zone", "elm", "--last"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(words[::3]))
def test_a_folder_that_does_not_exist_is_called_so(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = sgfusion(capsys, *command)
    assert refused.code == 1
    said = " ".join(refused.error.split())
    assert said.startswith("error: there is no ")
    assert said.endswith(f"folder results/nothere (here is {tmp_path})")


def test_a_whole_path_needs_no_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = sgfusion(capsys, "status", tmp_path / "nothere").error
    assert "".join(said.split()) == f"error:thereisnofolder{tmp_path / 'nothere'}"
