"""A virtual environment with Flower alone, made once and kept: its dependencies are not ours."""

import os
import subprocess
import venv
from pathlib import Path

FLOWER = "flwr==1.41.0"
"""Still has `start_server` and `start_client`, its streams; and telemetry is off in all that we start."""
INSTALL_WITHIN = 600.0


class NoFlowerError(Exception):
    """It cannot be installed here."""


def cache() -> Path:
    """Where it is kept."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "sgfusion" / FLOWER.replace("==", "-")


def flower_python(folder: Path | None = None) -> Path:
    """The interpreter that has Flower, installed from pip's index if it is not there yet."""
    folder = folder or cache()
    python, ready = folder / "bin" / "python", folder / ".ready"
    if ready.exists() and python.exists():
        return python
    try:
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run(  # noqa: S603 (pip of that folder)
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", FLOWER],
            check=True,
            capture_output=True,
            text=True,
            timeout=INSTALL_WITHIN,
        )
    except subprocess.CalledProcessError as error:
        said = (error.stderr or str(error)).strip().splitlines()
        raise NoFlowerError(f"{FLOWER} cannot be installed into {folder}: {said[-1] if said else error}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoFlowerError(f"{FLOWER} cannot be installed into {folder}: {error}") from error
    ready.touch()
    return python
