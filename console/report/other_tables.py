"""The data sets at a glance, and every zone's value on its own."""

from console.formats import listed, mean, number, spread, whole
from console.report.runs import SPLITS
from console.report.suite_results import SuiteResults
from console.report.tables import Cell, Column, Table


def data_table(results: SuiteResults) -> Table:
    """What each data set is made of; the first seed's, but for the tree's loss, which is over the seeds."""
    rows = []
    for data in results.data:
        world = results.world(data)
        losses = [results.worlds[data, seed].loss for seed in results.suite.seeds]
        neighbours = None if world.neighbours is None else mean([float(len(row)) for row in world.neighbours])
        rows.append(
            (
                Cell(results.suite.shown(data), (results.suite.shown(data),)),
                Cell(whole(len(world.zones)), (len(world.zones),)),
                Cell(whole(sum(world.devices)), (sum(world.devices),)),
                Cell(whole(sum(world.samples)), (sum(world.samples),)),
                Cell(number(neighbours), (neighbours,)),
                Cell(f"{world.epsilon:g}" if world.epsilon != "off" else "off", (world.epsilon,)),
                Cell(f"{world.sharpness:g}", (world.sharpness,)),
                Cell(spread(losses), (mean(losses),)),
            )
        )
    columns = (
        Column("data", ("data",), left=True),
        Column("zones", ("zones",)),
        Column("devices", ("devices",)),
        Column("training samples", ("training_samples",)),
        Column("neighbours a zone", ("neighbours",)),
        Column("ε", ("epsilon",)),
        Column("sharpness κ", ("sharpness",)),
        Column("L(T)", ("loss",)),
    )
    return Table("data", "The data sets", columns, tuple(rows))


def zones_table(results: SuiteResults) -> Table:
    """Every complete entry's value in every zone, seed and split: `zones.csv`."""
    measure = results.suite.measure
    rows = []
    for data in results.data:
        name = results.suite.shown(data)
        for entry in results.entries(data):
            for run in results.runs[data, entry.name]:
                for zone in results.worlds[data, run.seed].zones:
                    for split in SPLITS:
                        score = run.kept(zone, split)
                        value = measure.value(score) if score.count else None
                        kept = run.outcome_of(zone).chosen
                        plain = (name, entry.name, entry.method, run.seed, zone, split, value, kept, score.count)
                        rows.append(tuple(Cell(_text(part), (part,)) for part in plain))
    columns = tuple(
        Column(key.replace("_", " "), (key,))
        for key in ("data", "entry", "method", "seed", "zone", "split", "metric", "round_kept", "labels")
    )
    return Table("zones", f"{measure.label} of every zone", columns, tuple(rows))


def notes_on(results: SuiteResults, data: str) -> list[str]:
    """The suite's own notes on a data set, and the zones that no comparison could use."""
    notes = list(results.suite.notes.get(data, ()))
    left_out = results.zones_left_out(data)
    if left_out:
        notes.append(f"Left out of every comparison, for want of test labels: {listed(left_out, 100)}.")
    return notes


def _text(value: object) -> str:
    return number(value) if isinstance(value, float) else "" if value is None else str(value)
