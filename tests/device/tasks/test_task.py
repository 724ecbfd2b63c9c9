"""Tasks by name, ours and the user's own."""

import math
import textwrap
from pathlib import Path

import pytest

from device.batch import batch_of
from device.learner import Learner
from device.samples import Samples
from device.tasks.task import ACCURACY, RMSE_UNITLESS, TASKS, Task, load_task
from sgfusion.errors import LabelError, RunFileError, TaskError
from sgfusion.runfile import RunFile, parse_run_file
from tests.run_files import BASE

OWN = """
import torch
from device.tasks.task import RMSE_UNITLESS, Task
from sgfusion.runfile import Section

class Options(Section):
    factor: float = 1.0

class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(features))
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x, context):
        return self.drop(x) @ self.w

def mine(options):
    return Task(
        name="mine",
        build=lambda features, context: Model(features),
        losses=lambda out, y: options.factor * (out - y).square(),
        scores=lambda out, y: (out - y).square(),
        metric=RMSE_UNITLESS,
        edges=[0, 1, 2],
        check=lambda samples: None,
        scale=lambda samples: samples,
    )

mine.options = Options

def plain(options):
    return mine(Options())

def falling(options):
    return Task(**{**vars(mine(Options())), "edges": [2, 1]})

def forgetful(options):
    pass

a_task = mine(Options())
number = 3
"""


def run_with(*overrides: str) -> RunFile:
    return parse_run_file(BASE, overrides)


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = "own_task_of_a_user"
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(OWN), "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.mark.parametrize("name", TASKS)
def test_each_of_ours_loads_by_its_name(name: str) -> None:
    needs = ("task.classes=3",) if name == "activity" else ()
    task = load_task(run_with(f"task.name={name}", *needs))
    assert task.name == name
    assert (task.edges[1:] > task.edges[:-1]).all()


def test_options_reach_the_task_and_unknown_ones_are_refused() -> None:
    assert len(load_task(run_with("task.bins=7")).edges) == 8
    with pytest.raises(RunFileError, match=r"task\.binz"):
        load_task(run_with("task.binz=7"))


def test_a_users_own_task(own_module: str) -> None:
    task = load_task(run_with(f"task.name={own_module}:mine", "task.factor=3.0"))
    samples = Samples([[1.0, 2.0]], [1.0])  # type: ignore[arg-type]
    learner = Learner(task, samples)
    theta = learner.initial(0)
    assert theta.tolist() == [1.0, 1.0]
    # 3 (1 + 2 - 1)²; dropout is off, or it would be another number each time
    assert [learner.losses(theta, batch_of(samples)).tolist() for _ in range(8)] == [[12.0]] * 8
    assert learner.gradient(theta, batch_of(samples)).tolist() == [12.0, 24.0]


def test_a_users_own_task_without_options_takes_no_keys(own_module: str) -> None:
    assert load_task(run_with(f"task.name={own_module}:plain")).name == "mine"
    with pytest.raises(RunFileError, match="factor"):
        load_task(run_with(f"task.name={own_module}:plain", "task.factor=3.0"))


@pytest.mark.parametrize("attribute", ["forgetful", "number"])
def test_what_makes_no_task_is_named(own_module: str, attribute: str) -> None:
    with pytest.raises(TaskError, match=rf"task\.name = '{own_module}:{attribute}'.*returns a Task"):
        load_task(run_with(f"task.name={own_module}:{attribute}"))


def test_a_task_itself_will_do_instead_of_a_function(own_module: str) -> None:
    assert load_task(run_with(f"task.name={own_module}:a_task")).name == "mine"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("lineal", r"'lineal', did you mean 'linear'\? Choose 'activity', .* 'linear', or your own as module:name"),
        ("no_such_module_at_all:mine", "no_such_module_at_all cannot be imported"),
        ("device.tasks.linear:mine", "device.tasks.linear has no mine"),
    ],
)
def test_a_task_that_is_not_there(name: str, why: str) -> None:
    with pytest.raises(TaskError, match=why):
        load_task(run_with(f"task.name={name}"))


def test_bins_are_checked_when_a_task_is_made(own_module: str) -> None:
    with pytest.raises(LabelError, match="edges must rise"):
        load_task(run_with(f"task.name={own_module}:falling"))


def test_a_metric_is_the_mean_of_scores_or_its_root() -> None:
    assert RMSE_UNITLESS.value(36.0, 4) == 3.0
    assert ACCURACY.value(3.0, 4) == 0.75
    assert math.isnan(RMSE_UNITLESS.value(0.0, 0))
    assert RMSE_UNITLESS.lower_is_better
    assert not ACCURACY.lower_is_better


def test_losses_that_are_not_one_a_sample_are_named(own_module: str) -> None:
    task = load_task(run_with(f"task.name={own_module}:mine"))
    wrong = Task(**{**vars(task), "losses": lambda out, y: (out - y).square().sum()})
    samples = Samples([[1.0, 2.0], [0.0, 1.0]], [1.0, 1.0])  # type: ignore[arg-type]
    learner = Learner(wrong, samples)
    with pytest.raises(TaskError, match=r"losses of shape \[\] for 2 samples"):
        learner.gradient(learner.initial(0), batch_of(samples))
