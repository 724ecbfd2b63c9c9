"""What a service says that ends by an error: its words are kept in a log, so they hold no data."""

import errno

import pytest

from console import main


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError("labels 171.25 and 88.5"), "error: OSError"),
        (OSError(errno.ENOSPC, "No space left on device"), "error: No space left on device"),
        (OSError(errno.ENOENT, "No such file or directory", "run.toml"), "error: run.toml: No such file or directory"),
    ],
)
def test_of_an_os_error_the_log_has_the_systems_own_words_alone(
    error: OSError, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> None:
        raise error

    monkeypatch.setattr(main, "app", fails)
    monkeypatch.setattr("sgfusion.wire.logs.is_logging", lambda: "text")
    with pytest.raises(SystemExit, match="1"):
        main.main()
    assert capsys.readouterr().err == f"{told}\n"
