"""Docker and Compose: nothing but containers needs them."""

import shutil
from dataclasses import dataclass

from console.doctor.findings import Finding, look, ok
from console.doctor.programs import Programs

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


def look_at_engine(programs: Programs) -> Engine:
    """Ask the commands that people type."""
    compose = _compose(programs, "docker-compose") or _compose(programs, "docker", "compose")
    if shutil.which("docker") is None:
        return Engine(compose=compose)
    done = programs.ask(["docker", "version", "--format", "{{.Server.Version}}"], WITHIN)
    if done is None:
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


def _compose(programs: Programs, *command: str) -> str:
    if shutil.which(command[0]) is None:
        return ""
    done = programs.ask([*command, "version", "--short"], WITHIN)
    if done is None:
        return f"which does not answer within {WITHIN:g} s"  # it is here, on a machine with much else to do
    return "" if done.returncode else done.stdout.strip().rpartition("\n")[2]
