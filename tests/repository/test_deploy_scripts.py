"""What the scripts in `deploy/` say on machines that lack something, and what they keep in `.env`.

Docker is a fake here, so that this runs where there is none; that they build and start is shown in `tests/containers`.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.pages import ROOT, make

TOOLS = ("bash", "dirname", "env", "git", "grep", "id", "mktemp", "rm", "sed", "tail", "uname")
"""What the scripts may take for granted, on Linux and macOS alike: neither `timeout` nor `flock`."""
OFFICIAL, HOMEMADE = "python:3.11-slim-bookworm", "sgfusion/base:bookworm"


def docker(*images: str, refusal: str | None = None) -> str:
    """A Docker whose engine answers, has these images and builds all; it pulls all too, unless it refuses."""
    pull = "exit 0" if refusal is None else f"printf '%s\\n' pulling '{refusal}' >&2; exit 1"
    return f"""
case $1:$2 in
  version:*) echo 28.2.2 ;;
  buildx:*) exit 1 ;;
  image:inspect) if [[ $3 == --format ]]; then echo 1000000; else [[ " {" ".join(images)} " == *" $3 "* ]]; fi ;;
  pull:*) {pull} ;;
  build:*) echo "$@" >>"$HOME/built" ;;
esac"""


@dataclass
class Machine:
    """A copy of the scripts in a folder, and the commands that there are."""

    folder: Path
    commands: dict[str, str] = field(default_factory=dict)
    """By name, what they do, in bash."""

    def __post_init__(self) -> None:
        (self.folder / "deploy").mkdir()
        for script in ("base-image", "engine", "images", "setting"):
            shutil.copy2(ROOT / "deploy" / script, self.folder / "deploy")
        for file in ("deploy/Dockerfile", "pyproject.toml"):
            shutil.copyfile(ROOT / file, self.folder / file)
        wheelhouse = self.folder / "deploy" / "wheelhouse"
        wheelhouse.write_text("#!/bin/sh\n")  # its own matter: it downloads
        wheelhouse.chmod(0o755)

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a script with these commands alone."""
        path = self.folder / "bin"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        for tool in TOOLS:
            (path / tool).symlink_to(str(shutil.which(tool)))
        for name, does in self.commands.items():
            (path / name).unlink(missing_ok=True)
            (path / name).write_text(f"#!{shutil.which('bash')}\n{does}\n")
            (path / name).chmod(0o755)
        script, *arguments = words
        return subprocess.run(
            [self.folder / "deploy" / script, *arguments],
            env={"PATH": str(path), "HOME": str(self.folder), "TMPDIR": str(self.folder), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def kept(self) -> str:
        return (self.folder / ".env").read_text("utf-8")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


# deploy/engine find


def test_an_engine_that_answers_is_found_without_a_word(machine: Machine) -> None:
    machine.commands["docker"] = docker()
    found = machine.run("engine", "find")
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


def test_without_docker_it_says_how_to_install_it(machine: Machine) -> None:
    found = machine.run("engine", "find")
    assert (found.returncode, found.stdout) == (1, "")
    assert "There is no docker command here. Install Docker:" in found.stderr
    assert "sudo apt-get install docker.io docker-compose" in found.stderr
    assert "Docker Desktop" in found.stderr


def test_who_may_not_speak_to_the_engine_learns_of_the_group(machine: Machine) -> None:
    said = "Got permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock"
    machine.commands |= {"docker": f"echo '{said}' >&2; exit 1", "id": "echo ada"}
    found = machine.run("engine", "find")
    assert (found.returncode, found.stdout) == (1, "")
    assert "you may not speak to it" in found.stderr
    assert "sudo usermod -aG docker ada " in found.stderr
    assert "log in anew" in found.stderr
    assert "systemctl" not in found.stderr


def test_without_an_engine_it_says_how_to_start_one_and_what_docker_says(machine: Machine) -> None:
    said = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
    machine.commands["docker"] = f"echo 'Client: 28' ; printf 'ERROR:\\n{said}\\n' >&2; exit 1"
    found = machine.run("engine", "find")
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr.startswith("No Docker engine answers. Start it:\n")
    for remedy in (
        "sudo systemctl start docker",
        "sudo deploy/engine start /run/engine.pid",
        "Docker Desktop   open it",
    ):
        assert remedy in found.stderr
    assert found.stderr.endswith(f"set DOCKER_HOST. Docker says: {said}\n")
    assert "usermod" not in found.stderr


# deploy/images, up to what it builds on


@pytest.mark.parametrize("patience", [True, False])
def test_what_can_be_pulled_is_built_on(patience: bool, machine: Machine) -> None:
    """Also where there is no `timeout`, as on macOS; where there is one, it is used."""
    machine.commands["docker"] = docker()
    if patience:
        machine.commands["timeout"] = ': >"$HOME/timed"; shift; exec "$@"'
    done = machine.run("images")
    assert done.returncode == 0, done.stderr
    assert f"Building sgfusion/edge:latest on {OFFICIAL} ..." in done.stdout
    assert (machine.folder / "timed").exists() == patience
    assert not (machine.folder / ".env").exists()


@pytest.mark.parametrize(
    ("system", "user", "remedy"),
    [
        ("Darwin", 501, "debootstrap makes a base on Linux alone.\n"),
        ("Linux", 1000, "sudo deploy/base-image sgfusion/base:bookworm\n"),
        ("Linux", 0, "debootstrap is missing. Debian, Ubuntu: apt-get install debootstrap;"),
    ],
)
def test_what_cannot_be_pulled_says_why_and_what_helps_on_this_machine(
    system: str, user: int, remedy: str, machine: Machine
) -> None:
    said = "toomanyrequests: You have reached your pull rate limit."
    machine.commands |= {"docker": docker(refusal=said), "uname": f"echo {system}", "id": f"echo {user}"}
    done = machine.run("images")
    assert done.returncode == 1
    assert done.stdout == f"{OFFICIAL} cannot be pulled. Docker says: {said}\n"
    assert done.stderr.startswith("deploy/base-image: debootstrap ")
    assert remedy in done.stderr
    assert "`docker login`" in done.stderr
    assert "SGFUSION_BASE_IMAGE=NAME make images" in done.stderr
    assert not (machine.folder / ".env").exists()


def test_a_pull_that_never_ends_says_so(machine: Machine) -> None:
    machine.commands |= {"docker": docker(refusal=""), "timeout": "exit 124", "uname": "echo Darwin"}
    assert machine.run("images").stdout.endswith(" Docker says: nothing within five minutes\n")


def test_the_base_that_was_made_here_is_kept_for_compose(machine: Machine) -> None:
    machine.commands["docker"] = docker(HOMEMADE)
    for _ in range(2):
        done = machine.run("images")
        assert done.returncode == 0, done.stderr
        assert f"Building sgfusion/device:latest on {HOMEMADE} ..." in done.stdout
        assert machine.kept == f"SGFUSION_BASE_IMAGE={HOMEMADE}\n"
    machine.commands["docker"] = docker()  # somebody has removed it
    (machine.folder / ".env").write_text(f"A=b\n{machine.kept}C=d\n")
    assert f" on {OFFICIAL} ..." in machine.run("images").stdout
    assert machine.kept == "A=b\nC=d\n"


def test_images_and_compose_have_the_same_settings(machine: Machine) -> None:
    machine.commands["docker"] = docker()
    (machine.folder / ".env").write_text(
        "SGFUSION_TAG=v1\nSGFUSION_EXTRAS=experiments\nSGFUSION_BASE_IMAGE=my/python\n"
    )
    assert "Building sgfusion/edge:v1 on my/python ..." in machine.run("images").stdout
    assert "DEVICE_EXTRAS=experiments" in (machine.folder / "built").read_text()
    assert "Building sgfusion/edge:v2 on my/python ..." in machine.run("images", SGFUSION_TAG="v2").stdout


@pytest.mark.parametrize(
    ("command", "shows"),
    [
        ("SGFUSION_EXTRAS=experiments make images", "DEVICE_EXTRAS=experiments "),
        ("SGFUSION_TAG=VERSION make images", "--tag sgfusion/device:VERSION "),
    ],
)
def test_settings_that_are_typed_before_make_reach_the_images(command: str, shows: str, machine: Machine) -> None:
    machine.commands["docker"] = docker()
    machine.run("engine", "find")  # the commands are there
    shutil.copyfile(ROOT / "Makefile", machine.folder / "Makefile")
    setting, *words = command.split()
    assert words == ["make", "images"]
    path = f"{machine.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = make("images", place=machine.folder, PATH=path, HOME=str(machine.folder), **dict([setting.split("=")]))
    assert done.returncode == 0, done.stdout
    assert shows in (machine.folder / "built").read_text()


# deploy/setting


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "SGFUSION_USER=7:8\n"),
        ("", "SGFUSION_USER=7:8\n"),
        ("A=b\n", "A=b\nSGFUSION_USER=7:8\n"),
        ("A=b", "A=b\nSGFUSION_USER=7:8\n"),  # a last line without its end
        ("# SGFUSION_USER=1:1\n", "# SGFUSION_USER=1:1\nSGFUSION_USER=7:8\n"),
        ("NOT_SGFUSION_USER=1:1\n", "NOT_SGFUSION_USER=1:1\nSGFUSION_USER=7:8\n"),
        ("SGFUSION_USER=1:1\nA=b", "SGFUSION_USER=1:1\nA=b"),  # said already
        ("export SGFUSION_USER='1:1'", "export SGFUSION_USER='1:1'"),
        ("SGFUSION_USER = 1:1\n", "SGFUSION_USER = 1:1\n"),
    ],
)
def test_a_setting_is_kept_once_on_a_line_of_its_own(before: str | None, after: str, machine: Machine) -> None:
    if before is not None:
        (machine.folder / ".env").write_text(before)
    for _ in range(2):
        done = machine.run("setting", "SGFUSION_USER", "7:8")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert machine.kept == after


def test_a_setting_is_read_as_compose_reads_it(machine: Machine) -> None:
    assert machine.run("setting", "SGFUSION_TAG").stdout == ""
    (machine.folder / ".env").write_text('SGFUSION_TAG=v1\n# SGFUSION_TAG=v9\nexport SGFUSION_TAG="v2" # ours')
    assert machine.run("setting", "SGFUSION_TAG").stdout.strip() == "v2"
    assert machine.run("setting", "SGFUSION_TAG", SGFUSION_TAG="v3").stdout == "v3\n"
    assert machine.run("setting", "SGFUSION_TAG", SGFUSION_TAG="").stdout == "\n"
    assert machine.run("setting", "SGFUSION_EXTRAS").returncode == 0
    (machine.folder / ".env").write_text("SGFUSION_TAG = v4\n")
    assert machine.run("setting", "SGFUSION_TAG").stdout == "v4\n"


def test_every_clone_has_a_folder_for_results_and_nothing_in_it() -> None:
    """Docker would make one that is missing, as root's, and `make demo` could not write there."""
    if not (ROOT / ".git").exists():
        pytest.skip("no clone")
    known = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "results"]
    assert subprocess.run(known, cwd=ROOT, capture_output=True, text=True, check=True).stdout == "results/.gitignore\n"


def test_make_runs_these_scripts() -> None:
    for target, script in {"cluster": "deploy/cluster", "images": "deploy/images"}.items():
        assert make("--dry-run", target).stdout.split() == [script]
        assert os.access(ROOT / script, os.X_OK)
