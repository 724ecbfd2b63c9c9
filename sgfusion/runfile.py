"""The run file: one TOML file that says everything of a run (architecture, "The run file").

The simulator, the local cluster and the containers all read the same file. Sections are frozen pydantic models; an
unknown key is refused; an error names the key, the value and what is allowed. `--set section.key=value` overrides it.
"""

import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import tomli_w
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, ValidationError, model_validator

from sgfusion.distance import Metric
from sgfusion.errors import RunFileError
from sgfusion.fusion import Similarity
from sgfusion.hrg import PATIENCE, RESTARTS
from sgfusion.hrg import Schedule as ChainSchedule
from sgfusion.optimiser import Kind as OptimiserKind
from sgfusion.optimiser import Optimiser, Schedule, ScheduleKind
from sgfusion.privacy import Adjacency
from sgfusion.runfile_document import load_document, parsed
from sgfusion.runfile_errors import explain
from sgfusion.runfile_geography import Rings, check_geography, places_toml


def _epsilon(value: object) -> float | Literal["off"]:
    if value == "off":
        return "off"
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= sys.float_info.max:
        return float(value)
    raise ValueError("give a finite number > 0 (smaller is more private), or 'off' for no noise at all")


def _name(value: str) -> str:
    if not re.fullmatch(r"\w[\w.-]*", value):
        raise ValueError("a name is letters, digits, '_', '-' and '.', as it becomes part of file names")
    return value


def _reference(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*|[A-Za-z_][\w.]*:[A-Za-z_]\w*", value):
        raise ValueError("give a name of ours, or your own as module:name")
    return value


def _path(value: str | None) -> str | None:
    if value == "":
        raise ValueError("give the path of a file, or leave the key out")
    return value


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Name = Annotated[str, AfterValidator(_name)]
Reference = Annotated[str, AfterValidator(_reference)]
SamplerKind = Literal["hrg", "chi", "top-k", "neighbours", "none", "random", "all"]
AnyModel = TypeVar("AnyModel", bound=BaseModel)


def _with_defaults(given: object, key: str, usual: str, defaults: Mapping[str, Mapping[str, object]]) -> object:
    """The keys of a section with those filled in that its choice of `key` has defaults for.

    Filled in, not left out: a resolved run file means the same run when a default has changed.
    """
    if not isinstance(given, dict):
        return given
    choice = given.get(key, usual)
    return {**(defaults.get(choice, {}) if isinstance(choice, str) else {}), **given}


class Section(BaseModel):
    """A section: frozen, strict about types, closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)


class OpenSection(BaseModel):
    """A section whose further keys belong to what it names; that part checks them with `options_as`."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    def options_as(self, section: str, model: type[AnyModel]) -> AnyModel:
        """The further keys as `model`, refused with the same errors as any other key."""
        return checked(model, dict(self.model_extra or {}), f"[{section}]", (section,))


class Task(OpenSection):
    """The model, its loss, its metric and its label bins: a task of ours, or one of yours as `module:name`."""

    name: Reference


class Data(OpenSection):
    """Where the zones' data comes from; further keys are the source's own."""

    source: Reference


class Zones(Section):
    """The zones of the run. A zone's number, which draws depend on, is its place in `names`.

    Without `names`, the zones are those of the data source with enough devices and samples, in the order of their
    names. `by` says how a place becomes a zone where the source gives places; `neighbours`, who is next to whom.
    `adjacent` says that by hand, zone by zone, and goes before what the source finds out; who is not in it has none.
    So does `places`, for a map; it may have zones besides, which may join.
    """

    names: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    by: Literal["column", "polygons", "h3"] = "column"
    polygons: Annotated[str | None, AfterValidator(_path)] = None
    property: str | None = None
    resolution: Annotated[int, Field(ge=0, le=15)] | None = None
    neighbours: Literal["border", "ring", "delaunay"] | None = None
    adjacent: Mapping[Name, Annotated[tuple[Name, ...], Field(strict=False)]] | None = None
    places: Mapping[Name, Rings] | None = None
    min_devices: Count = 1
    min_samples: Count = 1

    @model_validator(mode="before")
    @classmethod
    def _resolved(cls, given: object) -> object:
        polygons, cells = {"property": "name", "neighbours": "border"}, {"resolution": 5, "neighbours": "ring"}
        return _with_defaults(given, "by", "column", {"polygons": polygons, "h3": cells})

    @model_validator(mode="after")
    def _fitting_keys(self) -> Self:
        if (self.polygons is not None) != (self.by == "polygons"):
            needs = "by = 'polygons' needs polygons, the path of a GeoJSON file"
            raise ValueError(
                needs if self.polygons is None else f"polygons = {self.polygons!r} belongs to by = 'polygons'"
            )
        for key, value, owner in (("property", self.property, "polygons"), ("resolution", self.resolution, "h3")):
            if value is not None and self.by != owner:
                raise ValueError(f"{key} = {value!r} belongs to by = {owner!r}, not to {self.by!r}")
        for kind, owner in (("border", "polygons"), ("ring", "h3")):
            if self.neighbours == kind and self.by != owner:
                raise ValueError(f"neighbours = {kind!r} belongs to by = {owner!r}, not to {self.by!r}")
        return self

    @model_validator(mode="after")
    def _unique(self) -> Self:
        for name in self.names:
            if self.names.count(name) > 1:
                raise ValueError(f"zone {name!r} is named twice: names are unique")
        return self

    @model_validator(mode="after")
    def _geography(self) -> Self:
        check_geography(self.names, self.adjacent or {})
        return self


class Histogram(Section):
    """The private label histogram of a device (method 1). `budget` is the ε of all its releases; by default, of one."""

    epsilon: Annotated[float | Literal["off"], PlainValidator(_epsilon)] = 1.0
    adjacency: Adjacency = "replace"
    budget: Positive | None = None

    @model_validator(mode="after")
    def _within_budget(self) -> Self:
        if self.budget is not None and self.epsilon != "off" and self.epsilon > self.budget:
            raise ValueError(f"epsilon = {self.epsilon} is more than budget = {self.budget}: no release would fit")
        return self


class Hrg(Section):
    """The dendrogram (methods 3 and 4): fitted, or taken as given `from` a dendrogram.json.

    `drift` is the cloud's: a zone whose new histogram lies further than that from its old one gives a new dendrogram.
    """

    from_: Annotated[str | None, Field(alias="from"), AfterValidator(_path)] = None
    metric: Metric = "euclidean"
    p: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 2.0
    schedule: ChainSchedule = "anneal"
    restarts: Count | None = None
    patience: Count = PATIENCE
    max_moves: Count | None = None
    sharpness: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    drift: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.1

    @model_validator(mode="before")
    @classmethod
    def _resolved(cls, given: object) -> object:
        return _with_defaults(given, "schedule", "anneal", {"anneal": {"restarts": RESTARTS}})

    @model_validator(mode="after")
    def _no_idle_keys(self) -> Self:
        if self.metric != "minkowski" and self.p != 2:
            raise ValueError(f"p = {self.p} belongs to metric 'minkowski', not to {self.metric!r}")
        if self.schedule == "paper" and self.restarts is not None:
            raise ValueError(f"restarts = {self.restarts} belongs to schedule 'anneal': the paper's is a single chain")
        return self


class SamplerChoice(Section):
    """Who is drawn (methods 5, 8 and 9). `k` is top-k's; `chi` is χ of every zone, else its number of neighbours."""

    kind: SamplerKind = "hrg"
    k: Count | None = None
    chi: Count | None = None

    @model_validator(mode="after")
    def _fitting_keys(self) -> Self:
        if (self.k is not None) != (self.kind == "top-k"):
            needs = "kind = 'top-k' needs k, the number of zones to draw"
            raise ValueError(needs if self.k is None else f"k = {self.k} belongs to kind 'top-k', not to {self.kind!r}")
        if self.chi is not None and self.kind != "chi":
            raise ValueError(f"chi = {self.chi} belongs to kind 'chi', not to {self.kind!r}")
        return self


class Update(Section):
    """What a device returns for given weights (method 6): one gradient, or the way `epochs` local epochs went."""

    kind: Literal["gradient", "delta"] = "gradient"
    epochs: Count | None = None
    rate: Positive | None = None
    batch: Count | None = None

    @model_validator(mode="after")
    def _fitting_keys(self) -> Self:
        if self.kind == "delta" and (self.epochs is None or self.rate is None):
            raise ValueError("kind = 'delta' needs epochs and rate, those of the device's own steps")
        for key in ("epochs", "rate", "batch"):
            if self.kind == "gradient" and getattr(self, key) is not None:
                raise ValueError(f"{key} = {getattr(self, key)} belongs to kind 'delta': a gradient is one full batch")
        return self


class Fusion(Section):
    """How alike two gradients are (method 7)."""

    similarity: Similarity = "inner"


class OptimiserChoice(Section):
    """The edge's step (method 7): its kind, and how its rate goes over the rounds."""

    kind: OptimiserKind = "sgd"
    schedule: ScheduleKind = "constant"
    rate: Positive | None = None
    strong_convexity: Positive | None = None
    momentum: Annotated[float, Field(ge=0, lt=1)] | None = None
    beta1: Annotated[float, Field(ge=0, lt=1)] | None = None
    beta2: Annotated[float, Field(ge=0, lt=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _resolved(cls, given: object) -> object:
        rate, steps = {"rate": Schedule.rate}, {"strong_convexity": Schedule.strong_convexity}
        given = _with_defaults(given, "schedule", "constant", {"constant": rate, "cosine": rate, "inverse": steps})
        adam = {"beta1": Optimiser.beta1, "beta2": Optimiser.beta2}
        return _with_defaults(given, "kind", "sgd", {"momentum": {"momentum": Optimiser.momentum}, "adam": adam})

    @model_validator(mode="after")
    def _fitting_keys(self) -> Self:
        for key, choice, chosen in (
            ("rate", self.schedule, ("constant", "cosine")),
            ("strong_convexity", self.schedule, ("inverse",)),
            ("momentum", self.kind, ("momentum",)),
            ("beta1", self.kind, ("adam",)),
            ("beta2", self.kind, ("adam",)),
        ):
            if getattr(self, key) is not None and choice not in chosen:
                raise ValueError(
                    f"{key} = {getattr(self, key)} belongs to {' or '.join(map(repr, chosen))}, not to {choice!r}"
                )
        return self

    def optimiser(self, rounds: int) -> Optimiser:
        """The kernel's optimiser for a run of `rounds` rounds."""
        rates = {key: getattr(self, key) for key in ("rate", "strong_convexity") if getattr(self, key) is not None}
        decays = {key: getattr(self, key) for key in ("momentum", "beta1", "beta2") if getattr(self, key) is not None}
        return Optimiser(self.kind, Schedule(self.schedule, steps=rounds, **rates), **decays)


class Quorum(Section):
    """The share of devices of a zone, and of zones of the run, without which nothing goes on (architecture, Faults).

    For edges and the cloud, as are the deadlines: in one process nobody is late.
    """

    devices: Share = 1.0
    zones: Share = 1.0


class Deadlines(Section):
    """Seconds after which a round goes on without a device or a peer, and a run without the zones it waits for."""

    device: Positive = 60.0
    peer: Positive = 60.0
    zones: Positive = 300.0


class Baselines(Section):
    """The settings of methods that have no zone models of their own (method 9); the simulator's alone."""

    clusters: Count = 3
    alpha1: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.5
    alpha2: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.5
    share: Share = 0.3


class Evaluation(Section):
    """Every how many rounds models are evaluated; the best on the validation split is the one kept (method 9)."""

    every: Count = 10


class Simulation(Section):
    """`exact` computes device by device, as a cluster does and with its bits; otherwise a zone is one batch."""

    exact: bool = False


class RunFile(Section):
    """Everything of a run."""

    name: Name
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    rounds: Count
    task: Task
    data: Data
    zones: Zones = Zones()
    histogram: Histogram = Histogram()
    hrg: Hrg = Hrg()
    sampler: SamplerChoice = SamplerChoice()
    update: Update = Update()
    fusion: Fusion = Fusion()
    optimiser: OptimiserChoice = OptimiserChoice()
    quorum: Quorum = Quorum()
    deadlines: Deadlines = Deadlines()
    evaluation: Evaluation = Evaluation()
    baselines: Baselines = Baselines()
    simulation: Simulation = Simulation()

    def to_toml(self) -> str:
        """The run file with every default written out: `run.toml` of a results folder."""
        document = self.model_dump(by_alias=True, exclude_none=True)
        places = document["zones"].pop("places", None)
        return tomli_w.dumps(document) + places_toml(places)


CONTRACT = ("seed", "task", "histogram", "update")
"""What devices and their edges must agree on: the model and its initial weights, what is released, what is returned."""


def contract(run: RunFile) -> str:
    """A digest of those sections, every default written out: two run files of one contract compute the same answers."""
    document = run.model_dump(mode="json", by_alias=True, include=set(CONTRACT))
    text = json.dumps(_plain(document), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def load_run_file(path: str | Path, overrides: Sequence[str] = ()) -> RunFile:
    """The run file at `path`. A relative path in it is meant from the run file's folder, in an override from here."""
    return checked(RunFile, load_document(path, overrides), str(path))


def parse_run_file(
    text: str, overrides: Sequence[str] = (), *, source: str = "run file", folder: Path | None = None
) -> RunFile:
    """The run file in `text`; `source` is what errors call it."""
    return checked(RunFile, parsed(text, overrides, source, folder or Path()), source)


def checked(model: type[AnyModel], document: Mapping[str, Any], source: str, at: tuple[str, ...] = ()) -> AnyModel:
    """The document, or the section `at` some place of one, as `model`; all that is wrong with it is one error."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise RunFileError(explain(error, model, source, at)) from None


def _plain(value: object) -> object:
    """With whole floats as integers: a task's own keys may write 1 or 1.0 and mean the same."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
