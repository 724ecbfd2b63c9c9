"""Whose results a command is about to replace: said before it trains, for who typed it may have meant to keep them."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

from sgfusion.errors import SGFusionError
from sgfusion.runfile import RunFile, load_run_file
from sgfusion.same_run import differing_training

NAMED = 3
"""Settings that are named."""


def replaced_by(run: RunFile, folder: Path, mark_of: Callable[[RunFile], str]) -> tuple[str, ...]:
    """A note, if the folder has results of another run than this one; `mark_of` names the state that `up` keeps of it.

    A cluster's state stays when another run's results come: only they make way, and it can write them again.
    """
    try:
        summary = json.loads((folder / "summary.json").read_bytes())
        names, method, again = summary["zones"], summary["method"], shlex.split(summary.get("again", ""))
        other = load_run_file(folder / "run.toml")
        mark = mark_of(other)
    except FileNotFoundError:
        return ()
    except (SGFusionError, ValueError, KeyError, TypeError, AttributeError):
        return (f"{folder} has results that cannot be read: they are replaced when this run has trained",)
    if "simulate" in again[:2]:
        return (
            f"{folder} has the results of a simulation by {method}: they are replaced when this run has trained."
            " To keep them, press Ctrl-C and give another --out",
        )
    if mark == mark_of(run):
        return ()
    changed = differing_training(other, run)
    more = [f"{len(changed) - NAMED} more"] if len(changed) > NAMED else []
    which = ", ".join([*changed[:NAMED], *more]) or "of the same settings"
    joined = [name for name in names if name not in other.zones.names]
    if not (folder / "cluster" / mark / "cloud").is_dir():
        back = ", for good. To keep them, press Ctrl-C and give another --out"
    elif joined:
        back = f"; the command that made them brings them back, but not {', '.join(joined)}, which joined that run"
    else:
        back = "; the command that made them, typed again, brings them back"
    return (f"{folder} has the results of another run ({which}): they are replaced when this one has trained{back}",)
