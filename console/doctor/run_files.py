"""A run file: its keys here, its data and zones in a process apart, for torch takes seconds and data may hang."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from console.doctor.findings import Finding, broken, look, ok
from console.doctor.programs import Programs
from console.run_argument import load_one_run
from sgfusion.errors import SGFusionError

WITHIN = 8.0
"""Seconds to load torch and find the zones in the data."""
_PROBE = """
import json, os, sys, threading, time
sys.path.insert(0, "")

def watch():
    while os.getppid() == int(sys.argv[2]):
        time.sleep(0.5)
    os._exit(1)  # who has asked was killed

threading.Thread(target=watch, daemon=True).start()
from console.run_argument import load_one_run
from pathlib import Path
from sgfusion.errors import SGFusionError
try:
    from console.zone_notes import zone_notes
    from device.sources.source import open_source
    from device.tasks.task import load_task
    run = load_one_run(Path(sys.argv[1]), ())
    load_task(run)
    source = open_source(run)
    devices = {zone: source.devices(zone) for zone in source.zones()}
    # Of no other zone's samples is anything said, and to count them may take long.
    samples = {zone: len(source.data(zone, *ids)) for zone, ids in devices.items() if len(ids) == 1}
    said = zone_notes(run, devices, samples)
    count = {zone: len(ids) for zone, ids in devices.items()}
    print(json.dumps({"devices": count, "notes": list(source.notes), "zones": "; ".join(said)}))
except (SGFusionError, ImportError) as error:
    print(json.dumps({"error": str(error)}))
"""


@dataclass(frozen=True)
class Run:
    """What a run file comes to. `refused` is why it cannot be read; `fault` why its data cannot."""

    path: Path
    name: str = ""
    refused: str = ""
    fault: str = ""
    slow: bool = False
    """Nobody waited until its data was read."""
    zones: int = 0
    devices: int = 0
    notes: tuple[str, ...] = ()
    of_zones: str = ""
    """What there is to say of them."""


def look_at_run(path: Path, programs: Programs) -> Run:
    """As `sgfusion up` would read it."""
    try:
        run = load_one_run(path, ())
    except SGFusionError as error:
        return Run(path, refused=str(error))
    done = programs.ask([sys.executable, "-c", _PROBE, str(path), str(os.getpid())], WITHIN)
    if done is None:
        return Run(path, run.name, slow=True)
    try:
        said = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        lines = done.stderr.strip().splitlines()
        return Run(path, run.name, fault=lines[-1] if lines else "the data could not be read")
    if "error" in said:
        return Run(path, run.name, fault=said["error"])
    devices = sum(said["devices"].values())
    zones, notes = len(said["devices"]), tuple(said["notes"])
    return Run(path, run.name, zones=zones, devices=devices, notes=notes, of_zones=said["zones"])


def run_findings(seen: Run) -> list[Finding]:
    """Its keys, then its data."""
    if seen.refused:
        return [broken("run file", seen.refused, f"correct {seen.path}: docs/run-file.md has every key")]
    found = [ok("run file", f"{seen.path}: run {seen.name}")]
    if seen.slow:
        return [
            *found,
            look(
                "data",
                f"not read within {WITHIN:g} s: this machine may be busy",
                "try again, or start it: sgfusion up and simulate wait, and say what is wrong with the data",
            ),
        ]
    if seen.fault:
        return [*found, broken("data", seen.fault, "docs/data.md says what each source needs")]
    text = f"{seen.zones} zones, {seen.devices} devices" + (f"; {seen.of_zones}" if seen.of_zones else "")
    if "is it" in seen.of_zones:  # a zone of one device may be meant so, a name that is nearly another's hardly
        return [*found, look("data", text, "if it is misspelt, correct that name")]
    return [*found, ok("data", text)]
