"""The benchmark measures what it says; its figures are not tested, they are measured."""

from benchmarks.simulator import EXPERIMENTS, bare_loop, simulation, workers
from sgfusion.runfile import load_run_file
from simulator.world import load_world

FEW = ("rounds=3", 'zones.names=["north","east","south"]', "hrg.restarts=1")


def test_both_sides_are_measured() -> None:
    ratio = simulation("demo", load_run_file(EXPERIMENTS / "demo.toml", FEW), repeats=1)
    assert ratio.ours > 0
    assert ratio.bare > 0
    assert ratio.value == ratio.ours / ratio.bare


def test_the_bare_loop_computes_gradients_that_move_the_model() -> None:
    world = load_world(load_run_file(EXPERIMENTS / "demo.toml", FEW))
    model = bare_loop(world, 0, [(1, 2), ()])
    assert any(parameter.abs().sum() > 0 for parameter in model.parameters())


def test_a_bag_of_jobs_is_done_by_one_and_by_two() -> None:
    assert workers(load_run_file(EXPERIMENTS / "demo.toml", FEW), repeats=1).value > 0
