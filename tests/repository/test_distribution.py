"""The wheel that people install: what is in it, and what it brings along."""

import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.pages import ROOT, page


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    out = tmp_path_factory.mktemp("wheel")
    build = f"import hatchling.build; print(hatchling.build.build_wheel({str(out)!r}))"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True, capture_output=True)
    (built,) = out.glob("*.whl")
    return zipfile.ZipFile(built)


def metadata(wheel: zipfile.ZipFile) -> str:
    (name,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
    return wheel.read(name).decode()


def test_it_holds_the_packages_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    packages = {"sgfusion", "cloud", "edge", "device", "simulator", "console"}
    assert {top for top in tops if not top.endswith(".dist-info")} == packages
    assert "sgfusion/py.typed" in wheel.namelist()
    assert "sgfusion/proto/v1/tensor_pb2.pyi" in wheel.namelist()
    assert "console/report/page.css" in wheel.namelist()
    assert {"cloud/page/static/index.html", "cloud/page/static/main.js"} <= set(wheel.namelist())


def test_cloud_and_edge_install_without_torch(wheel: zipfile.ZipFile) -> None:
    needs = re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*(?:; extra == '(\w+)')?$", metadata(wheel), re.MULTILINE)
    brings: dict[str, set[str]] = {}
    for package, extra in needs:
        brings.setdefault(extra, set()).add(package)
    heavy = {"torch", "opendp", "numba", "scipy", "matplotlib"}
    assert not brings[""] & heavy  # an edge
    assert brings["cloud"] == {"numba", "plotly", "starlette", "uvicorn"}  # the fit, and the page
    assert brings["device"] == {"opendp", "torch"}


def test_torch_is_pinned(wheel: zipfile.ZipFile) -> None:
    assert re.search(r"^Requires-Dist: torch==2\.13\.0; extra == 'device'$", metadata(wheel), re.MULTILINE)


def test_the_command_is_there(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "sgfusion = console.main:main" in wheel.read(name).decode()


@pytest.mark.parametrize(
    ("name", "extra", "brings"),
    [("kernel", "cloud", "numba"), ("cluster", "device", "torch"), ("simulator", "ray", "ray")],
)
def test_pip_installs_it_as_the_pages_say(name: str, extra: str, brings: str, tmp_path: Path) -> None:
    """Into an environment that has all other packages already, those of the tests, and asks no index."""
    (command,) = re.findall(r"`(pip install [^`]*)`", page(f"docs/{name}.md"))
    assert command == f"pip install '.[{extra}]'"
    venv.create(tmp_path / "venv")
    programs, paths = tmp_path / "venv" / "bin", sysconfig.get_paths(vars={"base": str(tmp_path / "venv")})
    (Path(paths["purelib"]) / "others.pth").write_text(sysconfig.get_path("purelib"))
    (programs / "pip").write_text(f'#!/bin/sh\nexec {programs}/python -m pip "$@"\n')
    (programs / "pip").chmod(0o755)
    settings = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "false", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment = {**os.environ, **settings, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}

    def typed(what: str, place: Path) -> str:
        done = subprocess.run(
            ["bash", "-c", what],  # noqa: S607
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    said = typed(command, ROOT)
    assert "Successfully installed sgfusion-" in said
    assert re.search(rf"^Requirement already satisfied: {brings}[<>=,.\d]+ in \S+ \(from sgfusion", said, re.MULTILINE)
    assert "does not provide the extra" not in said
    where = typed("python -c 'import console; print(console.__file__)'; command -v sgfusion; sgfusion --help", tmp_path)
    assert where.startswith(f"{paths['purelib']}/console/__init__.py\n{programs}/sgfusion\n")
