"""What is installed against what is asked for: exact findings from facts, and the facts of this very installation."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from console.doctor.findings import Finding, broken, look, ok
from console.doctor.versions import (
    PURPOSES,
    Installation,
    Requirement,
    installation_findings,
    look_at_installation,
    parse_requirement,
)

REPOSITORY = Path(__file__).parents[3]
SEEN = Installation(
    version="0.1.0",
    python="3.11.7",
    wants_python=">=3.11",
    requirements=(
        Requirement("grpcio", "<2,>=1.85.1"),
        Requirement("protobuf", "<8,>=7.36"),
        Requirement("numpy", "<3,>=2.0"),
        Requirement("rich", ">=14"),
        Requirement("torch", "==2.13.0", "device"),
        Requirement("pytest", ">=9", "dev"),
    ),
    installed={"grpcio": "1.85.1", "protobuf": "7.36.2", "numpy": "2.4.6", "rich": "14.0", "torch": "2.13.0+cpu"},
)


def test_all_is_well() -> None:
    assert installation_findings(SEEN) == [
        ok("Python", "3.11.7, sgfusion 0.1.0"),
        ok("packages", "grpcio 1.85.1, protobuf 7.36.2, numpy 2.4.6 and 1 more"),
        ok("torch", "2.13.0+cpu, built for CPU"),
        ok("extra device", PURPOSES["device"]),
    ]


def only(seen: Installation) -> Finding:
    """The one thing that is not well."""
    (found,) = [finding for finding in installation_findings(seen) if finding.verdict != "ok"]
    return found


def test_an_old_python() -> None:
    found = only(replace(SEEN, python="3.10.14"))
    assert (found.check, found.verdict) == ("Python", "broken")
    assert found.text == "3.10.14, and sgfusion 0.1.0 needs >=3.11"


def test_a_package_that_is_missing_or_of_another_version() -> None:
    without = {name: version for name, version in SEEN.installed.items() if name != "rich"}
    assert only(replace(SEEN, installed=without)) == broken(
        "packages", "rich is missing", "in the repository type make install, or pip install ."
    )
    assert only(replace(SEEN, installed={**SEEN.installed, "protobuf": "6.30.1"})) == broken(
        "packages",
        "protobuf is 6.30.1, and <8,>=7.36 is needed",
        "in the repository type make install, or pip install .",
    )
    assert only(replace(SEEN, installed={**SEEN.installed, "torch": "2.12.1"})) == broken(
        "extra device",
        "torch is 2.12.1, and ==2.13.0 is needed",
        "in the repository type make install, or pip install '.[device]'",
    )


def test_grpc_that_does_not_go_with_the_generated_code() -> None:
    found = only(replace(SEEN, stubs="grpcio>=1.85.1 is required"))
    assert found.text == (
        "grpcio 1.85.1 and protobuf 7.36.2 do not go with the generated code: grpcio>=1.85.1 is required"
    )


def test_an_extra_that_is_not_there_is_no_fault_and_says_what_it_is_for() -> None:
    without = {name: version for name, version in SEEN.installed.items() if name != "torch"}
    assert only(replace(SEEN, installed=without)) == look(
        "extra device",
        "without torch; it is for devices, `sgfusion up` and `simulate`: gradients and noise",
        "if this host needs that: in the repository type make install, or pip install '.[device]'",
    )


def test_nobody_hears_of_ray_who_has_none() -> None:
    requirements = (*SEEN.requirements, Requirement("ray", "<3,>=2.50", "ray"))
    assert installation_findings(replace(SEEN, requirements=requirements)) == installation_findings(SEEN)
    old = replace(SEEN, requirements=requirements, installed={**SEEN.installed, "ray": "2.40.0"})
    assert only(old).text == "ray is 2.40.0, and <3,>=2.50 is needed"


def test_torch_for_cuda() -> None:
    assert ok("torch", "2.13.0+cpu, built for CUDA 12.8") in installation_findings(replace(SEEN, cuda="12.8"))


@pytest.mark.parametrize(
    ("bounds", "version", "fits"),
    [
        ("<3,>=2.0", "2.4.6", True),
        ("<3,>=2.0", "3.0.0", False),
        ("<3,>=2.0", "2", True),
        ("<3,>=2.0", "1.26.4", False),
        ("==2.13.0", "2.13.0+cpu", True),
        ("==2.13", "2.13.0", True),
        ("<0.70,>=0.65", "0.68.0rc1", True),
        (">=1.85.1", "1.85", False),
        ("", "1", True),
        ("!=1.2", "1.2.0", False),
        (">1,<=2", "2.0", True),
    ],
)
def test_bounds(bounds: str, version: str, fits: bool) -> None:
    assert Requirement("x", bounds).allows(version) == fits


def test_requirements_as_metadata_has_them() -> None:
    assert parse_requirement("numba<0.70,>=0.65; extra == 'cloud'") == Requirement("numba", "<0.70,>=0.65", "cloud")
    assert parse_requirement('sgfusion[cloud,device]; extra == "experiments"') == Requirement(
        "sgfusion", "", "experiments"
    )
    assert parse_requirement("rich>=14") == Requirement("rich", ">=14")


def test_this_installation_is_what_the_project_asks_for() -> None:
    """A test environment has every extra; one that lost a package would fail here and say which."""
    seen = look_at_installation()
    assert seen.stubs == ""
    assert seen.installed["grpcio"]
    assert [finding for finding in installation_findings(seen) if finding.verdict != "ok"] == []
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(PURPOSES) == set(project["optional-dependencies"]) - {"dev"}
    assert {r.name for r in seen.requirements if not r.extra} == {
        parse_requirement(text).name for text in project["dependencies"]
    }
