"""What make installs for which target; and pip's hundreds of lines in a few, with all of what matters if it fails."""

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SAYS = [
    *(f"Collecting package{n}>=2 (from sgfusion==0.1)\n  Downloading package{n}-2.0.whl (12 kB)" for n in range(1, 61)),
    "Collecting torch==2.13.0\n  Downloading torch-2.13.0-cp311.whl (190.5 MB)",
    "Installing collected packages: a, b, c",
]


def python(folder: Path, *, fails: bool) -> Path:
    """A Python whose pip says that and ends so."""
    path = folder / "python"
    end = "echo 'ERROR: No space left on device' >&2\nexit 3" if fails else "echo Successfully installed a b c"
    said = "\n".join(SAYS)
    path.write_text(f'#!/bin/sh\necho "$@" >"$0.asked"\ncat <<END\n{said}\nEND\n{end}\n')
    path.chmod(0o755)
    return path


def command(folder: Path, *, fails: bool = False) -> list[str]:
    return [str(ROOT / "deploy" / "pip"), str(folder / "log"), str(python(folder, fails=fails)), "--editable", ".[dev]"]


def test_few_lines_say_how_far_it_is_and_the_log_has_all(tmp_path: Path) -> None:
    done = subprocess.run(command(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 0
    *lines, last = done.stdout.splitlines()
    assert lines == [
        "  package 1: package1",
        "  package 25: package25",
        "  package 50: package50",
        "  installing 3 packages",
    ]
    assert last.startswith("  installed in ")
    assert not done.stderr
    assert (tmp_path / "python.asked").read_text() == "-m pip install --disable-pip-version-check --editable .[dev]\n"
    assert (tmp_path / "log").read_text().splitlines() == "\n".join(
        [*SAYS, "Successfully installed a b c"]
    ).splitlines()


def test_a_failure_is_shown_with_the_place_of_the_log(tmp_path: Path) -> None:
    done = subprocess.run(command(tmp_path, fails=True), capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == (
        "Installing collected packages: a, b, c\nERROR: No space left on device\n"
        f"pip failed: see above. All that it said is in {tmp_path / 'log'}\n"
    )
    assert "installed in" not in done.stdout


def test_on_a_terminal_it_is_one_line_that_changes_and_goes(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(command(tmp_path), stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 1 << 16):
                shown += piece
        except OSError:  # how the end of a terminal looks
            pass
    os.close(ours)
    assert process.returncode == 0
    states = [state.strip() for state in shown.decode().split("\r") if state.strip()]
    assert states[0] == "package 1: package1"
    assert states[-3:-1] == ["downloading torch-2.13.0-cp311.whl (190.5 MB)", "installing 3 packages"]
    assert states[-1].startswith("installed in ")
    assert shown.count(b"\n") == 1


def test_ci_installs_the_packages_that_are_missing_and_asks_for_no_list_of_them_if_none_is(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    (tmp_path / "apt-get").write_text(f'#!/bin/sh\necho "$@" >>{asked}\n')
    (tmp_path / "apt-get").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def installed(*pairs: str) -> str:
        return subprocess.run(
            [ROOT / ".ci" / "packages", *pairs], env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert installed("sh=dash", "apt-get=apt") == "Here already: sh apt-get\n"
    assert not asked.exists()
    assert installed("sh=dash", "no-such-command=some-package") == "Installing some-package ...\n"
    assert asked.read_text().splitlines() == [
        "update --quiet=2",
        "install --yes --quiet=2 --no-install-recommends some-package",
    ]


def test_a_run_installs_what_runs_need_and_development_all_of_it_each_once(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy2(ROOT / name, tmp_path)
    for name in (".venv/bin/python", ".venv/bin/sgfusion", "deploy/pip", "deploy/images"):
        script = tmp_path / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f'#!/bin/sh\necho "{script.name} $@" >>"{tmp_path}/asked"\n')
        script.chmod(0o755)

    def installed_for(target: str) -> list[str]:
        (tmp_path / "asked").write_text("")
        environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
        subprocess.run(
            [shutil.which("make") or "make", f"PYTHON={sys.executable}", target],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            check=True,
            timeout=60,
        )
        asked = (tmp_path / "asked").read_text().splitlines()
        return [line.split()[-1] for line in asked if line.startswith("pip ")]

    assert installed_for("demo") == [".[experiments]"]
    assert installed_for("demo") == installed_for("images") == []
    assert installed_for("install") == [".[dev]"]
    assert installed_for("install") == installed_for("demo") == []
    os.utime(tmp_path / "pyproject.toml")  # other packages are asked for
    assert installed_for("install") == [".[dev]"]
    assert installed_for("demo") == []  # development has all that a run needs
