"""A command of ours as who reads a hint can type it."""

import shlex
import shutil
import sys
from pathlib import Path


def typed(*words: str | Path) -> str:
    """`sgfusion` and the words; by the path that was run where a shell finds no `sgfusion`, or another one.

    `make demo` runs `.venv/bin/sgfusion`, which is on nobody's PATH.
    """
    return shlex.join([_program(Path(sys.argv[0])), *map(str, words)])


def _program(run: Path) -> str:
    name = "sgfusion"
    if run.name != name or not run.is_file():  # python -m, a test: there is nothing better to type
        return name
    found = shutil.which(name)
    if found is not None and Path(found).samefile(run):
        return name
    here = Path.cwd()
    return str(run.relative_to(here) if run.is_relative_to(here) else run)
