"""The results folder of a run (architecture, "The run file")."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from sgfusion.dendrogram_file import ZoneTree
from sgfusion.durable import replace_file
from sgfusion.runfile import RunFile


def write_results(
    folder: Path,
    *,
    run: RunFile,
    zone_tree: ZoneTree,
    rounds: Iterable[Mapping[str, Any]],
    models: Mapping[str, npt.NDArray[np.float32]],
    zones: Mapping[str, Any],
    summary: Mapping[str, Any],
) -> None:
    """Write `run.toml`, `dendrogram.json`, `rounds.jsonl`, `zones.json`, `models/<zone>.safetensors`, and, last,
    `summary.json`.
    """
    replace_file(folder / "run.toml", run.to_toml().encode())
    replace_file(folder / "dendrogram.json", zone_tree.to_json().encode())
    replace_file(folder / "rounds.jsonl", "".join(json.dumps(line) + "\n" for line in rounds).encode())
    replace_file(folder / "zones.json", (json.dumps(zones) + "\n").encode())
    for zone, theta in models.items():
        replace_file(folder / "models" / f"{zone}.safetensors", safetensors.numpy.save({"theta": theta}))
    replace_file(folder / "summary.json", (json.dumps(summary, indent=1) + "\n").encode())
