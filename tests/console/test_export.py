"""`sgfusion export` and `sgfusion predict` on a small run that the simulator trained."""

import csv
import io
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import torch

from console import simulate
from device.export import model_of, predicted, program
from device.inputs import columns_of
from device.samples import Samples
from device.tasks.task import load_task
from sgfusion.runfile import load_run_file, parse_run_file
from simulator.world import load_world
from tests.console.commands import sgfusion
from tests.console.test_join import RUN as TABLE_RUN
from tests.console.test_join import write_table
from tests.simulator.tiny_suite import write_suite

Capture = pytest.CaptureFixture[str]

HEART = """
name = "hearts"
seed = 2
rounds = 1
[task]
name = "heart_rate"
size = "small"
[data]
source = "synthetic_heart_rate"
country = "norway"
share = 0.02
length = 6
"""


@pytest.fixture
def results(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(simulate, "draw_zone_tree", lambda *_: None)
    run_file = write_suite(tmp_path).with_name("tiny.toml")
    assert sgfusion(capsys, "simulate", run_file, "--out", tmp_path / "results").code == 0
    return tmp_path / "results"


@pytest.mark.parametrize("command", ["predict", "export"])
def test_without_a_zone_it_is_said_which_there_are(
    command: str, results: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = sgfusion(capsys, command, results)
    assert (refused.code, refused.error.strip()) == (1, "error: give --zone: north, south, west")
    assert not (tmp_path / "exported").exists()


@pytest.mark.parametrize(("form", "file"), [("torchscript", "south.pt"), ("torch.export", "south.pt2")])
def test_the_program_gives_the_models_numbers(
    form: str, file: str, results: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "exported"
    done = sgfusion(capsys, "export", results, "--zone", "south", "--out", out, "--format", form)
    assert done.code == 0, done.error
    assert {path.name for path in out.iterdir()} == {"south.safetensors", file, "MODEL_CARD.md"}
    theta = safetensors.numpy.load_file(results / "models" / "south.safetensors")["theta"]
    weights = safetensors.numpy.load_file(out / "south.safetensors")
    np.testing.assert_array_equal(np.concatenate([part.ravel() for part in weights.values()]), theta)
    world = load_world(load_run_file(results / "run.toml"))
    samples = world.data.zones[1].devices[0].test
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.jit.load(out / file) if file.endswith(".pt") else torch.export.load(out / file).module()  # type: ignore[no-untyped-call]
    expected = predicted(model_of(world.task, samples, theta), samples)
    np.testing.assert_array_equal(model(torch.from_numpy(samples.x)).numpy(), expected)


def test_the_card_says_what_it_is_and_what_epsilon_covers(results: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "exported"
    assert sgfusion(capsys, "export", results, "--zone", "north", "--out", out, "--format", "safetensors").code == 0
    card = (out / "MODEL_CARD.md").read_text()
    summary = json.loads((results / "summary.json").read_text())
    assert f"| {summary['zones']['north']['test']:.3f} |" in card
    for said in ("**made up (synthetic)**", "**histograms alone**", "zone north", "SHA-256", "load_file"):
        assert said in card
    assert "protects nobody" in card or "without noise" in card


SCALED_RUN = (
    TABLE_RUN.replace("""features = ["cadence"]""", """features = ["slope", "cadence"]""")
    + """
[data.scale]
cadence = [20.5, 4]
"""
)


@pytest.mark.parametrize(
    ("task", "output"),
    [
        ('name = "linear"', "`[N]`, `steps` of each sample, in the unit of that column."),
        ('name = "activity"\nclasses = 5', "`[N, 5]`, a score for each value of `steps` from 0 to 4: the highest"),
        (
            'name = "tests.cluster.sentinel_task:make_task"',
            "that of the task `tests.cluster.sentinel_task:make_task`, whose labels",
        ),
    ],
)
def test_the_card_says_what_a_tables_inputs_and_outputs_are(
    task: str, output: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the card alone a stranger makes what `predict` makes of the same rows."""
    monkeypatch.setattr(simulate, "draw_zone_tree", lambda *_: None)
    path = write_table(tmp_path / "steps.csv", "lake", "mountain")
    lines = path.read_text().splitlines()
    sloped = [f"{line},{'slope' if not i else i % 3}" for i, line in enumerate(lines)]
    path.write_text("\n".join(sloped) + "\n")
    (tmp_path / "run.toml").write_text(SCALED_RUN.format(path=path).replace('name = "linear"', task), "utf-8")
    done = sgfusion(capsys, "simulate", tmp_path / "run.toml", "--out", tmp_path / "results")
    assert done.code == 0, done.error
    out = tmp_path / "exported"
    assert sgfusion(capsys, "export", tmp_path / "results", "--zone", "lake", "--out", out).code == 0
    card = (out / "MODEL_CARD.md").read_text()
    assert "| 0 | `slope` | as it is |  |\n| 1 | `cadence` | 20.5 | 4.0 |\n" in card
    assert f"The output is {output}" in card
    assert "scale yours alike" not in card
    (tmp_path / "in.csv").write_text("cadence,slope\n30,2\n10,1\n")
    arguments = ("--zone", "lake", "--input", tmp_path / "in.csv", "--out", tmp_path / "out.csv")
    assert sgfusion(capsys, "predict", tmp_path / "results", *arguments).code == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.jit.load(out / "lake.pt")  # type: ignore[no-untyped-call]
    found = model(torch.tensor([[2, (30 - 20.5) / 4], [1, (10 - 20.5) / 4]])).numpy().reshape(2, -1)
    rows = list(csv.reader(io.StringIO((tmp_path / "out.csv").read_text())))[1:]
    np.testing.assert_array_equal(found, np.array([row[-found.shape[1] :] for row in rows], np.float32))


def test_the_card_names_the_columns_that_a_task_has(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulate, "draw_zone_tree", lambda *_: None)
    (tmp_path / "run.toml").write_text(HEART, "utf-8")
    done = sgfusion(capsys, "simulate", tmp_path / "run.toml", "--out", tmp_path / "results")
    assert done.code == 0, done.error
    zone = json.loads((tmp_path / "results" / "summary.json").read_text())["zones"]
    out = tmp_path / "exported"
    assert sgfusion(capsys, "export", tmp_path / "results", "--zone", next(iter(zone)), "--out", out).code == 0
    card = (out / "MODEL_CARD.md").read_text()
    assert "Columns of `x`, in this order: distance, altitude, elapsed; those of `context`: previous_distance," in card


def test_the_card_has_the_constants_that_scale_sequences(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulate, "draw_zone_tree", lambda *_: None)
    x = np.random.default_rng(1).normal(size=(24, 3, 2))
    device = np.repeat(["a", "b", "c", "d"], 6)
    np.savez(tmp_path / "in.npz", x=x, y=np.arange(24) % 2, device=device, zone=np.repeat(["lake", "sea"], 12))
    run = """name = "s"\nseed = 1\nrounds = 1\n[task]\nname = "activity"\nclasses = 2
[data]\nsource = "sequences"\npath = "in.npz"\n[data.scale]\nx = [[1.5, 2], [0, 4]]\n"""
    (tmp_path / "run.toml").write_text(run, "utf-8")
    done = sgfusion(capsys, "simulate", tmp_path / "run.toml", "--out", tmp_path / "results")
    assert done.code == 0, done.error
    out = tmp_path / "exported"
    assert sgfusion(capsys, "export", tmp_path / "results", "--zone", "sea", "--out", out).code == 0
    card = (out / "MODEL_CARD.md").read_text()
    assert "`(value - mean) / spread`: `x` by [[1.5, 2.0], [0.0, 4.0]]; outputs" in card


def test_a_zone_that_is_none_of_the_runs_is_refused(results: Path, capsys: Capture) -> None:
    assert "one of the run's: north, south, west" in sgfusion(capsys, "export", results, "--zone", "east").error
    assert "no summary.json" in sgfusion(capsys, "predict", results / "models", "--zone", "north").error


def test_a_zone_by_its_name_in_the_data_is_told_its_name_here(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulate, "draw_zone_tree", lambda *_: None)
    table = write_table(tmp_path / "steps.csv", "Old Town", "Val d'Aosta")
    text = TABLE_RUN.format(path=table).replace('"lake", "mountain"', '"Old-Town", "Val-d-Aosta"')
    (tmp_path / "run.toml").write_text(text, "utf-8")
    out = tmp_path / "results"
    assert sgfusion(capsys, "simulate", tmp_path / "run.toml", "--out", out).code == 0
    for given, meant in (("Old Town", "Old-Town"), ("val d'aosta", "Val-d-Aosta")):
        for command in ("predict", "export"):
            refused = sgfusion(capsys, command, out, "--zone", given)
            assert refused.code == 1
            said = " ".join(refused.error.split())
            assert f"not one of the run's: Old-Town, Val-d-Aosta; did you mean '{meant}'?" in said
    assert "did you mean" not in sgfusion(capsys, "export", out, "--zone", "New Town").error


@pytest.mark.parametrize("command", ["predict", "export"])
def test_a_misspelt_zone_is_told_which_one_was_meant(command: str, results: Path, capsys: Capture) -> None:
    said = " ".join(sgfusion(capsys, command, results, "--zone", "soth").error.split())
    assert "not one of the run's: north, south, west; did you mean 'south'?" in said


def test_on_its_own_test_samples_it_says_what_the_table_says(results: Path, capsys: Capture) -> None:
    done = sgfusion(capsys, "predict", results, "--zone", "west")
    value = json.loads((results / "summary.json").read_text())["zones"]["west"]["test"]
    assert done.code == 0, done.error
    assert done.out.startswith(f"RMSE {value:.3f} on the ")
    assert f"the results say {value:.3f}" in done.out


def test_a_csv_and_an_npz_are_predicted_alike(results: Path, tmp_path: Path, capsys: Capture) -> None:
    world = load_world(load_run_file(results / "run.toml"))
    samples = world.data.zones[0].devices[0].test
    names = [f"x{i}" for i in range(samples.x.shape[1])]
    with (tmp_path / "in.csv").open("w", newline="") as file:
        csv.writer(file).writerows([names, *samples.x.tolist()])
    np.savez(tmp_path / "in.npz", x=samples.x)
    for kind in ("csv", "npz"):
        arguments = ("--zone", "north", "--input", tmp_path / f"in.{kind}", "--out", tmp_path / f"{kind}.out")
        assert sgfusion(capsys, "predict", results, *arguments).code == 0
    text = (tmp_path / "csv.out").read_text()
    assert text == (tmp_path / "npz.out").read_text()
    theta = safetensors.numpy.load_file(results / "models" / "north.safetensors")["theta"]
    found = [float(row["prediction"]) for row in csv.DictReader(io.StringIO(text))]
    np.testing.assert_array_equal(np.array(found, np.float32), predicted(model_of(world.task, samples, theta), samples))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x0,x1\n1,2\n", "has no column 'x2'"),
        ("x0,y1,x2\n1,2,3\n", "has no column 'x1'"),
        ("", "has no rows under its header"),
        ("x0,x1,x2\n1,2,3\n\n4,five,6\n", "line 4 has 'five' for 'x1': give a number"),
        ('x0,x1,x2,note\n4,five,6,"two\nlines"\n', "line 2 has 'five' for 'x1': give a number"),
        ("x0,x1,x2\n1,2,3\n4,5\n", "line 3 has None for 'x2': give a number"),
    ],
)
def test_wrong_columns_are_named(text: str, said: str, results: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "in.csv").write_text(text)
    done = sgfusion(capsys, "predict", results, "--zone", "north", "--input", tmp_path / "in.csv")
    assert done.code == 1
    assert said in done.error


def test_a_wrong_shape_is_named(results: Path, tmp_path: Path, capsys: Capture) -> None:
    np.savez(tmp_path / "in.npz", x=np.zeros((4, 1)))
    wrong = sgfusion(capsys, "predict", results, "--zone", "north", "--input", tmp_path / "in.npz")
    assert "1 features: this model's samples have" in wrong.error
    np.savez(tmp_path / "in.npz", x=np.zeros((4, 1, 2)))
    assert sgfusion(capsys, "predict", results, "--zone", "north", "--input", tmp_path / "in.npz").code == 1


@pytest.mark.parametrize(("form", "steps"), [("torchscript", None), ("torch.export", 6)])
def test_an_lstm_is_exported_to_the_bit(form: str, steps: int | None) -> None:
    run = parse_run_file(HEART)
    task = load_task(run)
    random = np.random.default_rng(0)
    like = Samples(random.normal(size=(2, 6, 3)), np.zeros(2), random.normal(size=(2, 6, 5)))  # type: ignore[arg-type]
    model = task.build(3, 5)
    theta = random.normal(size=sum(p.numel() for p in model.parameters())).astype(np.float32)
    made = program(model_of(task, like, theta), like, form)  # type: ignore[arg-type]
    assert made.steps == steps
    features, context = columns_of(run, like)
    assert features == ("distance", "altitude", "elapsed")
    assert context[-1] == "previous_heart_rate"


def test_a_zone_whose_data_is_elsewhere_has_a_model_all_the_same(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that joined with a file of its own."""
    monkeypatch.setattr(simulate, "draw_zone_tree", lambda *_: None)
    table = write_table(tmp_path / "steps.csv", "lake", "mountain")
    (tmp_path / "run.toml").write_text(TABLE_RUN.format(path=table), "utf-8")
    out = tmp_path / "results"
    assert sgfusion(capsys, "simulate", tmp_path / "run.toml", "--out", out).code == 0
    write_table(table, "lake")
    refused = sgfusion(capsys, "predict", out, "--zone", "mountain")
    assert refused.code == 1
    said = " ".join(refused.error.split())
    assert "the samples of zone 'mountain' are not in this run's data as it is here: give" in said
    (tmp_path / "new.csv").write_text("cadence\n10\n20\n")
    done = sgfusion(capsys, "predict", out, "--zone", "mountain", "--input", tmp_path / "new.csv")
    assert done.code == 0, done.error
    assert len(done.out.splitlines()) == 3
    done = sgfusion(capsys, "export", out, "--zone", "mountain", "--out", tmp_path / "exported")
    assert done.code == 0, done.error
    assert (
        "| zone | mountain, whose data was not here when this was written |"
        in (tmp_path / "exported" / "MODEL_CARD.md").read_text()
    )
