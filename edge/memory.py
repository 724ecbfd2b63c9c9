"""What an edge was told, kept in its state folder: it restarts and goes on by it while the cloud is away.

::

    run.toml       the run, from the cloud
    roster.json    the zone's number, its devices with their histograms, their model, the digest of `θ⁰`
    plan.json      the last plan
"""

import fcntl
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from sgfusion.durable import make_folder, replace_file
from sgfusion.errors import CheckpointError, ContractError, UnavailableError
from sgfusion.evaluation import Metric
from sgfusion.plan import Branch, Draws, Peer, ZonePlan, ZoneState
from sgfusion.reports import Model
from sgfusion.runfile import parse_run_file
from sgfusion.same_run import training_of

Floats = npt.NDArray[np.float64]
LOCK_WITHIN = 10.0
"""Seconds that a restarted edge gives the one before it to end."""


@dataclass(frozen=True, eq=False)
class Roster:
    """The devices whose mean the zone's histogram is."""

    number: int
    model: Model
    initial: str
    """SHA-256 of `θ⁰`, hexadecimal."""
    histograms: dict[str, Floats]
    epsilons: dict[str, float]
    """What each of them has spent by its ledger."""


class Memory:
    """The files of one zone's edge."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: IO[str] | None = None

    @property
    def checkpoints(self) -> Path:
        """The folder of the zone's progress."""
        return self.folder / "checkpoints"

    def records(self) -> list[dict[str, Any]]:
        """All rounds and evaluations that are on disk; one that is being written is told when it is."""
        try:
            lines = (self.checkpoints / "records.jsonl").read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines if line.endswith(b"\n")]

    def hold(self) -> None:
        """Keep other processes out of the folder, as long as this one lives."""
        make_folder(self.folder)
        self._lock = (self.folder / "lock").open("w")
        end = time.monotonic() + LOCK_WITHIN
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise UnavailableError(
                        f"{self.folder} is held by another edge that is running: stop it, or give --state"
                    ) from None
                time.sleep(0.1)
            else:
                return

    def run(self) -> str | None:
        """The run file that the cloud sent."""
        try:
            return (self.folder / "run.toml").read_text("utf-8")
        except FileNotFoundError:
            return None

    def keep_run(self, text: str) -> None:
        """Of an enrolment. Another run's is refused; another quorum or other deadlines make no other run."""
        known = self.run()
        if known == text:
            return
        if known is not None and _training(known) != _training(text):
            raise ContractError(
                f"{self.folder} holds the progress of another run than the cloud's: give --state another folder,"
                " or remove this one to start the zone anew"
            )
        replace_file(self.folder / "run.toml", text.encode())

    def roster(self) -> Roster | None:
        """None before the zone's histogram was made."""
        document = self._read("roster.json")
        if document is None:
            return None
        model = document["model"]
        return Roster(
            document["number"],
            Model(**{**model, "metric": Metric(**model["metric"]), "edges": tuple(model.get("edges", ()))}),
            document["initial"],
            {device: np.array(row) for device, row in document["histograms"].items()},
            document.get("epsilons") or dict.fromkeys(document["histograms"], 0.0),  # of an earlier version
        )

    def keep_roster(self, roster: Roster) -> None:
        """Before the histogram goes to the cloud: these devices are waited for from now on."""
        histograms = {device: row.tolist() for device, row in roster.histograms.items()}
        document = {
            "number": roster.number,
            "model": asdict(roster.model),
            "initial": roster.initial,
            "histograms": histograms,
            "epsilons": roster.epsilons,
        }
        self._write("roster.json", document)

    def plan(self) -> ZonePlan | None:
        """The last plan."""
        document = self._read("plan.json")
        if document is None:
            return None
        draws = document["draws"]
        branches = tuple(Branch(b["distance"], b["probability"], tuple(b["zones"])) for b in draws["branches"])
        directory = tuple(Peer(**{**peer, "state": ZoneState(peer["state"])}) for peer in document["directory"])
        return ZonePlan(
            document["version"],
            document["number"],
            document["reason"],
            Draws(draws["kind"], branches, draws["count"], tuple(draws["zones"])),
            directory,
        )

    def keep_plan(self, plan: ZonePlan) -> None:
        """The last one."""
        document = asdict(plan)
        for peer in document["directory"]:
            peer["state"] = peer["state"].value
        self._write("plan.json", document)

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            document: dict[str, Any] = json.loads((self.folder / name).read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise CheckpointError(
                f"{self.folder / name} cannot be read: {error}. Remove it: the cloud has it"
            ) from error
        return document

    def _write(self, name: str, document: dict[str, Any]) -> None:
        replace_file(self.folder / name, json.dumps(document).encode())


def _training(text: str) -> str:
    """The run without what may change while it trains: who is waited for, how long, and how a map looks."""
    return training_of(parse_run_file(text)).to_toml()
