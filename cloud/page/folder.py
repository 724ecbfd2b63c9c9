"""A finished run, from the results folder that `simulate`, `up` and `follow` write."""

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cloud.page.history import History, number
from cloud.page.layout import all_places, leaf_places
from cloud.page.picture import (
    Document,
    Likeness,
    alone_of,
    left_out_part,
    metric_part,
    plan_part,
    run_part,
    tree_part,
    zone_part,
)
from cloud.page.source import Kind
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.errors import DataError, SGFusionError
from sgfusion.evaluation import Metric
from sgfusion.runfile import RunFile, load_run_file


class FinishedRun:
    """A `Source`. Who loads the page anew sees results that were written anew: zones that train alone end later.

    `comparing`: whether they are training now. They are not any more once the summary says what they came to.
    """

    live = False

    def __init__(self, folder: Path, *, comparing: bool = False) -> None:
        self._folder, self._comparing = folder, comparing
        self._stamp = _stamp(folder)
        self._results = _Results(folder, comparing=comparing)
        self._former: _Results | None = None

    def picture(self) -> str:
        """Everything to draw from scratch."""
        self._look()
        return self._results.picture()

    async def zone(self, name: str) -> str | None:
        """Every round of a zone."""
        return await self._results.zone(name)

    async def round(self, number: int) -> str:
        """One round of every zone."""
        return await self._results.round(number)

    async def changed(self) -> None:
        """Never: it is finished."""
        await asyncio.get_running_loop().create_future()

    def news(self) -> list[tuple[Kind, str]]:
        """None."""
        return []

    def last(self) -> list[tuple[Kind, str]]:
        """What to tell who looks when no zone trains alone any more: how that came out."""
        self._look()
        return [("alone", self._results.alone())]

    def forget(self) -> None:
        """Nothing to forget."""

    def close(self) -> None:
        """Close its files."""
        for results in (self._results, self._former):
            if results is not None:
                results.close()

    def _look(self) -> None:
        """Read the folder again if its summary, which is written last, is another one."""
        stamp = _stamp(self._folder)
        if stamp is None or stamp == self._stamp:
            return
        try:
            fresh = _Results(self._folder, comparing=self._comparing)
        except (OSError, SGFusionError):
            return  # half written, or damaged: what was read still holds, until there is another summary
        finally:
            self._stamp = stamp  # also of what failed: reading all of it holds up everybody who looks
        if self._former is not None:
            self._former.close()
        self._former, self._results = self._results, fresh  # a thread may still read the former


class _Results:
    """A folder as it was read. Those of before `zones.json` have no histograms and two points of each curve."""

    def __init__(self, folder: Path, *, comparing: bool) -> None:
        self._summary = _summary(folder)
        self._comparing = comparing and "alone" not in self._summary.get("pooled", {})
        self._run = _run(folder / "run.toml")
        self._tree = _tree(folder / "dendrogram.json")
        self._known = _zones_json(folder / "zones.json")
        self._lines = _Lines(folder / "rounds.jsonl")
        try:
            self._metric = Metric(**self._summary["metric"])
            self._names = self._numbered()
            self._history = History(self._names, self._run.rounds, self._run.evaluation.every)
            self._history.judge_by(Likeness(self._tree).homophily)
            self._last = self._read_rounds()
            self._read_evaluations()
            self._text = json.dumps(self._document(), separators=(",", ":"))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            self.close()
            if isinstance(error, SGFusionError):
                raise
            why = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
            raise DataError(f"{folder} has results that this SGFusion cannot read ({why}): write them anew") from error

    def picture(self) -> str:
        """Everything to draw from scratch."""
        rows = f'"series":{self._history.series()},"pooled":{self._history.pooled()}'
        return f"{self._text[:-1]},{rows}}}"

    def alone(self) -> str:
        """What zones come to alone, each and together, where that is known."""
        return json.dumps({"zones": alone_of(self._summary), "kept": self._kept()}, separators=(",", ":"))

    async def zone(self, name: str) -> str | None:
        """Every round of a zone."""
        if name not in self._names:
            return None
        lines = await asyncio.to_thread(self._lines.of_zone, self._names.index(name))
        return json.dumps({"rounds": [{"round": line["round"], **round_part(line)} for line in lines]})

    async def round(self, number: int) -> str:
        """One round of every zone."""
        lines = await asyncio.to_thread(self._lines.of_round, number)
        found = {self._names[line["zone"]]: round_part(line) for line in lines}
        return json.dumps({zone: {key: part[key] for key in ("attention", "left_out")} for zone, part in found.items()})

    def close(self) -> None:
        """Close its files."""
        self._lines.close()

    def _numbered(self) -> list[str]:
        """The zones by number: by zones.json, else in the order of the run file and of the tree."""
        said = {name: zone["number"] for name, zone in self._known["zones"].items() if "number" in zone}
        others = (*self._run.zones.names, *(self._tree.zones if self._tree else ()), *self._summary["zones"])
        names = [*sorted(said, key=lambda name: said[name]), *dict.fromkeys(n for n in others if n not in said)]
        if any(said[name] != names.index(name) for name in said):
            raise DataError(f"zones.json numbers its zones {sorted(said.values())}: they are 0 to {len(said) - 1}")
        return names

    def _read_rounds(self) -> dict[str, Mapping[str, Any]]:
        """Each zone's last line; rows for all of them."""
        last: dict[str, Mapping[str, Any]] = {}
        spent = {
            name: {round: sent for round, _, sent in zone.get("rounds", ())}
            for name, zone in self._known["zones"].items()
        }
        for line in self._lines.all():
            zone = self._names[line["zone"]]
            self._history.add_round(
                zone,
                line["round"],
                drawn=(self._names[other] for other in line["drawn"]),
                left_out={int(peer): why for peer, why in line["left_out"].items()},
                sent=spent.get(zone, {}).get(line["round"]),
            )
            last[zone] = line
        return last

    def _read_evaluations(self) -> None:
        for name in self._names:
            found = self._summary["zones"].get(name)
            points = self._known["zones"].get(name, {}).get("evaluations")
            if points is None:
                if found is None:
                    continue  # it left a run of which no more was written
                before = [[0, None, found.get("before"), 0]] if found.get("round") else []
                points = [*before, [found.get("round", 0), found.get("validation"), found.get("test"), 1]]
            for round, validation, test, best in points:
                self._history.add_evaluation(name, round, validation, test, best=bool(best))
        for round, validation, test in self._known["pooled"]:
            self._history.add_pooled(round, validation, test)

    def _document(self) -> Document:
        plans = self._known["plans"]
        version, reason = (plans[-1]["version"], plans[-1]["reason"]) if plans else (1, "")
        tree = self._tree
        if not plans and tree is not None:
            plans = [plan_part(version, reason, len(tree.zones), None)]
        shown = run_part(
            self._run,
            live=False,
            title=self._summary.get("title"),
            synthetic=self._summary.get("synthetic"),
            comparing=self._comparing,
            simulated=self._summary.get("again", "").startswith("sgfusion simulate "),
        )
        drawn = None if tree is None else tree_part(tree, version=version, reason=reason, sharpness=shown["sharpness"])
        return {
            "run": shown,
            "metric": metric_part(self._metric),
            "edges": [number(edge) for edge in self._known["edges"]],
            "zones": self._zones(),
            "tree": drawn,
            "plans": plans,
            "status": self._status(version if tree else 0, reason),
            "events": self._known["events"],
        }

    def _zones(self) -> list[Document]:
        alone = alone_of(self._summary)
        at = all_places(self._names, leaf_places(self._tree))
        zones = []
        for zone, name in enumerate(self._names):
            known = self._known["zones"].get(name, {})
            zones.append(
                zone_part(
                    zone,
                    name,
                    self._run,
                    at[name],
                    histogram=known.get("histogram"),
                    devices=known.get("devices", 0),
                    epsilon=known.get("epsilon", 0.0),
                    before=self._summary["zones"].get(name, {}).get("before"),
                    alone=alone.get(name),
                )
            )
        return zones

    def _status(self, plan: int, reason: str) -> Document:
        zones = [self._status_of(zone, name) for zone, name in enumerate(self._names)]
        sent = self._summary.get("bytes_sent") or self._history.bytes  # the former has those of histograms too
        head: Document = {"time": None, "plan": plan, "reason": reason, "finished": True, "overdue": "", "refusals": {}}
        head["waits"] = []
        return {**head, "rounds_per_minute": None, "bytes": sent, "kept": self._kept(), "zones": zones}

    def _kept(self) -> Document:
        """Of all zones' models that were kept, together."""
        pooled = self._summary.get("pooled", {})
        return {key: number(pooled.get(key)) for key in ("test", "before", "alone")}

    def _status_of(self, zone: int, name: str) -> Document:
        found = self._summary["zones"].get(name)
        line = self._last.get(name, {})
        known = self._known["zones"].get(name, {})
        devices = known.get("devices", 0)
        diverged = (found or {}).get("diverged") or ""
        values = {key: number(found[key]) if found else None for key in ("validation", "test")}
        return {
            "number": zone,
            "name": name,
            "state": known.get("state", "left") if found is None else "diverged" if diverged else "done",
            "round": line.get("round", 0 if found or "state" in known else None),  # else nobody has written it down
            "attending": devices,
            "expected": devices,
            "late": {},
            "gone": {},
            **round_part(line, devices=False),
            "left_out_so_far": left_out_part(self._history.left_out_of(name)),
            "best": {"round": found["round"], **values} if found else None,
            "overdue": "",
            "refusals": {},
            "leased": False,
            "diverged": diverged,
            "bytes": self._history.bytes_of(name),
        }


class _Lines:
    """`rounds.jsonl`, of which only where its lines are is kept."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = path.open("rb")
        except FileNotFoundError:
            raise DataError(f"{path} is not there: give the results folder of a run") from None
        self._places: dict[int, dict[int, tuple[int, int]]] = {}

    def all(self) -> Iterator[Mapping[str, Any]]:
        """Every line, in order; where it is is kept from then on."""
        self._file.seek(0)
        place = 0
        for text in self._file:
            try:
                line = json.loads(text)
            except ValueError as error:
                raise DataError(f"{self._file.name} is damaged at byte {place:,}: write the results anew") from error
            if "drawn" in line:  # methods without zones' own trajectories draw nobody
                self._places.setdefault(line["zone"], {})[line["round"]] = (place, len(text))
                yield line
            place += len(text)

    def of_zone(self, zone: int) -> list[Mapping[str, Any]]:
        """All rounds of a zone, in order."""
        return [self._at(place) for _, place in sorted(self._places.get(zone, {}).items())]

    def of_round(self, round: int) -> list[Mapping[str, Any]]:
        """That round of all zones that have had it."""
        return [self._at(places[round]) for _, places in sorted(self._places.items()) if round in places]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _at(self, place: tuple[int, int]) -> Mapping[str, Any]:
        start, length = place
        found: Mapping[str, Any] = json.loads(os.pread(self._file.fileno(), length, start))  # several threads may ask
        return found


def round_part(line: Mapping[str, Any], *, devices: bool = True) -> Document:
    """Who was heard in a round, and who was not and why."""
    attention = {zone: number(weight) for zone, weight in line.get("attention", {}).items()}
    part = {"attention": attention, "left_out": dict(line.get("left_out", {}))}
    return {**part, "devices_left_out": dict(line.get("devices_left_out", {}))} if devices else part


def _stamp(folder: Path) -> tuple[int, int, int] | None:
    """Tells one summary from another without reading it; None if there is none."""
    try:
        found = (folder / "summary.json").stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _summary(folder: Path) -> Mapping[str, Any]:
    path = folder / "summary.json"
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        more = " This run is not finished: `sgfusion up` goes on with it" if (folder / "cluster").is_dir() else ""
        raise DataError(
            f"{folder} has no summary.json: give the results folder that `sgfusion simulate`, `up` or `follow`"
            f" wrote.{more}"
        ) from None
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}): write the results anew") from error
    if not isinstance(found, dict):
        raise DataError(f"{path} is no summary of a run: write the results anew")
    return found


def _tree(path: Path) -> ZoneTree | None:
    try:
        return ZoneTree.from_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (SGFusionError, ValueError) as error:
        raise DataError(f"{path} is damaged ({error}): write the results anew") from error


def _run(path: Path) -> RunFile:
    if not path.is_file():
        raise DataError(f"{path} is not there: give the results folder of a run, as it was written")
    return load_run_file(path)


def _zones_json(path: Path) -> Mapping[str, Any]:
    empty: dict[str, Any] = {"edges": [], "zones": {}, "plans": [], "events": [], "pooled": []}
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return empty
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}): remove it, or write the results anew") from error
    if not isinstance(found, dict) or not isinstance(found.get("zones"), dict):
        raise DataError(f"{path} has no table of zones: remove it, or write the results anew")
    return {**empty, **found}
