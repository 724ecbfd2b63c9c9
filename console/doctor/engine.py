"""Docker and Compose: nothing but containers needs them."""

import shutil
import subprocess
from dataclasses import dataclass

from console.doctor.findings import Finding, look, ok

WITHIN = 2.5
"""Seconds for the engine to answer."""
_PURPOSE = "only containers need it: docs/containers.md"


@dataclass(frozen=True)
class Engine:
    """Versions, empty if there are none; `silent` is what the client says if no engine answers."""

    client: bool = False
    server: str = ""
    silent: str = ""
    compose: str = ""


def look_at_engine() -> Engine:
    """Ask the commands that people type."""
    compose = _said(["docker-compose", "version", "--short"]) or _said(["docker", "compose", "version", "--short"])
    if shutil.which("docker") is None:
        return Engine(compose=compose)
    try:
        done = subprocess.run(
            ["docker", "version", "--format", "{{.Server.Version}}"],  # noqa: S607 (whichever the user types)
            capture_output=True,
            text=True,
            timeout=WITHIN,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return Engine(client=True, silent=f"no answer within {WITHIN:g} s", compose=compose)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return Engine(client=True, silent=lines[-1] if lines else "it ended with an error", compose=compose)
    return Engine(client=True, server=done.stdout.strip(), compose=compose)


def engine_findings(seen: Engine) -> list[Finding]:
    """Never broken: most need none."""
    if not seen.client:
        return [look("engine", "no docker here", f"{_PURPOSE}; `deploy/engine` installs Debian's")]
    if seen.silent:
        return [
            look(
                "engine",
                f"docker does not answer: {seen.silent}",
                f"start the engine, and let this user use it (group docker); {_PURPOSE}",
            )
        ]
    if not seen.compose:
        return [
            look("engine", f"docker {seen.server}, no Compose", f"install docker-compose 1.29 or newer; {_PURPOSE}")
        ]
    return [ok("engine", f"docker {seen.server}, Compose {seen.compose}")]


def _said(command: list[str]) -> str:
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = subprocess.run(  # noqa: S603 (as above)
            command, capture_output=True, text=True, timeout=WITHIN, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return f"which does not answer within {WITHIN:g} s"  # it is here, on a machine with much else to do
    return "" if done.returncode else done.stdout.strip().rpartition("\n")[2]
