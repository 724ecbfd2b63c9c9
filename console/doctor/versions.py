"""Python and packages: what is installed, against what the package's own metadata asks for."""

import importlib
import importlib.util
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from console.doctor.findings import Finding, broken, look, ok
from sgfusion.errors import brought_by

PURPOSES = {
    "cloud": "clouds: dendrograms and the page",
    "device": "devices, `sgfusion up` and `simulate`: gradients and noise",
    "experiments": "figures, zones by H3, polygons or region, Parquet files, the flights data",
    "ray": "experiments on a Ray cluster",
}
"""What each extra is for; that of developers has everything."""
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[^]]*\])?\s*([^;]*?)\s*(?:;\s*extra == ['\"]([\w-]+)['\"])?")
_BOUND = re.compile(r"(>=|<=|==|!=|<|>)\s*([\w.+!-]+)")
_CUDA = re.compile(r"^cuda\b[^=]*=\s*(?:None|'([^']*)'|\"([^\"]*)\")", re.MULTILINE)


@dataclass(frozen=True)
class Requirement:
    """A package that is asked for, by an extra or by all."""

    name: str
    bounds: str
    extra: str = ""

    def allows(self, version: str) -> bool:
        """Whether the version is within the bounds."""
        tests = {
            ">=": lambda a, b: a >= b,
            "<=": lambda a, b: a <= b,
            "==": lambda a, b: a == b,
            "!=": lambda a, b: a != b,
            "<": lambda a, b: a < b,
            ">": lambda a, b: a > b,
        }
        have = _release(version)
        return all(tests[sign](*_padded(have, _release(bound))) for sign, bound in _BOUND.findall(self.bounds))


@dataclass(frozen=True)
class Installation:
    """What is here."""

    version: str
    python: str
    wants_python: str
    requirements: tuple[Requirement, ...]
    installed: Mapping[str, str] = field(default_factory=dict)
    """By package, as the requirements spell it; who is not there is not here."""
    cuda: str | None = None
    """What torch was built for; None is CPU alone, or no torch."""
    stubs: str = ""
    """Why gRPC and protobuf do not go with the generated code; empty if they do."""


def look_at_installation() -> Installation:
    """Nothing heavy is imported: versions are in metadata, and torch says in a file what it was built for."""
    about = metadata.metadata("sgfusion")
    requirements = tuple(map(parse_requirement, metadata.requires("sgfusion") or ()))
    return Installation(
        version=about["Version"],
        python=platform.python_version(),
        wants_python=about["Requires-Python"] or "",
        requirements=requirements,
        installed=_installed({requirement.name for requirement in requirements}),
        cuda=_cuda(),
        stubs=_stubs(),
    )


def installation_findings(seen: Installation) -> list[Finding]:
    """Python, the packages that every tier has, torch, then the extras."""
    found = []
    if Requirement("python", seen.wants_python).allows(seen.python):
        found.append(ok("Python", f"{seen.python}, sgfusion {seen.version}"))
    else:
        found.append(
            broken(
                "Python",
                f"{seen.python}, and sgfusion {seen.version} needs {seen.wants_python}",
                f"make a virtual environment with Python {seen.wants_python}, and install there",
            )
        )
    found += _packages(seen)
    found += _torch(seen)
    found += [finding for extra in _extras(seen) for finding in _extra(seen, extra)]
    return found


def _packages(seen: Installation) -> list[Finding]:
    core = [requirement for requirement in seen.requirements if not requirement.extra]
    found = [finding for requirement in core for finding in _unfit(seen, requirement, "packages")]
    if seen.stubs:
        pair = [f"{name} {seen.installed.get(name, 'missing')}" for name in ("grpcio", "protobuf")]
        found.append(
            broken(
                "packages",
                f"{' and '.join(pair)} do not go with the generated code: {seen.stubs}",
                f"{brought_by()}, which brings those that do",
            )
        )
    if found:
        return found
    shown = ", ".join(f"{name} {seen.installed.get(name, '?')}" for name in ("grpcio", "protobuf", "numpy"))
    return [ok("packages", f"{shown} and {max(0, len(core) - 3)} more")]


def _torch(seen: Installation) -> list[Finding]:
    if "torch" not in seen.installed:
        return []  # the extra says what is missing without it
    build = "CPU" if seen.cuda is None else f"CUDA {seen.cuda}"
    return [ok("torch", f"{seen.installed['torch']}, built for {build}")]


def _extras(seen: Installation) -> list[str]:
    # Ray is for a few, and `make demo` leaves it out: who has none has nothing to mend.
    told = {extra for extra in PURPOSES if extra != "ray" or "ray" in seen.installed}
    return sorted({requirement.extra for requirement in seen.requirements} & told)


def _extra(seen: Installation, extra: str) -> list[Finding]:
    wanted = [requirement for requirement in seen.requirements if requirement.extra == extra]
    missing = [requirement.name for requirement in wanted if requirement.name not in seen.installed]
    check = f"extra {extra}"
    if missing:
        return [
            look(
                check,
                f"without {', '.join(missing)}; it is for {PURPOSES[extra]}",
                f"if this host needs that: {brought_by(extra)}",
            )
        ]
    wrong = [finding for requirement in wanted for finding in _unfit(seen, requirement, check, extra)]
    return wrong or [ok(check, PURPOSES[extra])]


def _unfit(seen: Installation, wanted: Requirement, check: str, extra: str = "") -> Iterable[Finding]:
    remedy = brought_by(extra)
    have = seen.installed.get(wanted.name)
    if have is None:
        yield broken(check, f"{wanted.name} is missing", remedy)
    elif not wanted.allows(have):
        yield broken(check, f"{wanted.name} is {have}, and {wanted.bounds} is needed", remedy)


def parse_requirement(text: str) -> Requirement:
    """As metadata has it: `numba<0.70,>=0.65; extra == 'cloud'`."""
    match = _REQUIREMENT.fullmatch(text.strip())
    return Requirement(text, "") if match is None else Requirement(match[1], match[2], match[3] or "")


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a version; what comes after them, and a local part such as `+cpu`, does not count."""
    numbers = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()


def _padded(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    length = max(len(a), len(b))
    return a + (0,) * (length - len(a)), b + (0,) * (length - len(b))


def _installed(names: Iterable[str]) -> dict[str, str]:
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _cuda() -> str | None:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    try:
        match = _CUDA.search((Path(spec.origin).parent / "version.py").read_text("utf-8"))
    except OSError:
        return None
    return match and (match[1] or match[2])


def _stubs() -> str:
    """Generated code looks at the versions of those it was made for as it is imported."""
    try:
        for name in ("cloud_pb2", "cloud_pb2_grpc", "edge_pb2_grpc", "peer_pb2_grpc", "server_pb2_grpc"):
            importlib.import_module(f"sgfusion.proto.v1.{name}")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what to tell
        return str(error) or type(error).__name__
    return ""
