"""Which runs' zones come to the same alone."""

import pytest

from sgfusion.runfile import parse_run_file
from sgfusion.same_run import differing_alone, differing_training

TEXT = """
name = "woods"
seed = 5
rounds = 20
[task]
name = "linear"
[data]
source = "table"
path = "/here/samples.csv"
[zones]
names = ["ash", "birch"]
"""


@pytest.mark.parametrize(
    "setting",
    [
        "name=other",
        "rounds=500",
        "hrg.sharpness=7.0",
        "sampler.kind=none",
        "histogram.epsilon=off",
        "evaluation.every=3",
        "quorum.devices=0.5",
        "simulation.exact=true",
        "data.path=/there/samples.csv",
        "zones.names=[]",
        "zones.neighbours=delaunay",
    ],
)
def test_what_does_not_matter_for_a_zone_alone(setting: str) -> None:
    run, other = parse_run_file(TEXT), parse_run_file(TEXT, [setting])
    assert run != other
    assert differing_alone(run, other) == differing_alone(other, run) == []


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("seed=6", "seed is 6 there and 5 here"),
        ("task.name=flights", "task.name is 'flights' there and 'linear' here"),
        ("task.bins=7", "task.bins is 7 there and None here"),
        ("data.path=/here/others.csv", "data.path is 'others.csv' there and 'samples.csv' here"),
        ("data.label=pulse", "data.label is 'pulse' there and None here"),
        ('zones.names=["birch", "ash"]', "zones.names is ['birch', 'ash'] there and ['ash', 'birch'] here"),
        ("zones.min_samples=9", "zones.min_samples is 9 there and 1 here"),
        ("optimiser.rate=0.25", "optimiser.rate is 0.25 there and 0.1 here"),
    ],
)
def test_what_does_is_named_with_both_values(setting: str, said: str) -> None:
    assert differing_alone(parse_run_file(TEXT, [setting]), parse_run_file(TEXT)) == [said]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["rounds=500", "hrg.sharpness=7.0"], ["hrg.sharpness = 7.0", "rounds = 500"]),
        (["data.label=pulse"], ["data.label = 'pulse'"]),
        (["quorum.devices=0.5", "deadlines.device=7", "zones.names=[]"], []),
    ],
)
def test_by_what_another_run_trains_differently(settings: list[str], said: list[str]) -> None:
    assert differing_training(parse_run_file(TEXT, settings), parse_run_file(TEXT)) == said
    assert differing_training(parse_run_file(TEXT), parse_run_file(TEXT, ["data.label=pulse"])) == [
        "data.label not set"
    ]
