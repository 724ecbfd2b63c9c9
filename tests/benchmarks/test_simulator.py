"""The benchmark measures what it says; its figures are not tested, they are measured."""

import numpy as np
import pytest
import torch

from benchmarks import simulator
from benchmarks.simulator import EXPERIMENTS, Ratio, bare_direction, bare_loop, main, simulation, workers
from sgfusion.runfile import load_run_file
from simulator.world import World, load_world

FEW = ("rounds=3", 'zones.names=["north","east","south"]', "hrg.restarts=1")


@pytest.fixture
def world() -> World:
    return load_world(load_run_file(EXPERIMENTS / "sixteen_zones.toml", FEW))


def flat(tensors: list[torch.Tensor]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors]).numpy()


def test_both_sides_are_measured() -> None:
    ratio = simulation("demo", load_run_file(EXPERIMENTS / "sixteen_zones.toml", FEW), repeats=1)
    assert min(ratio.ours + ratio.bare) > 0


def test_a_ratio_is_the_median_of_those_of_the_turns() -> None:
    ratio = Ratio("slow at times", ours=(3.0, 30.0, 5.0), bare=(2.0, 20.0, 1.0))
    assert ratio.value == 1.5
    assert ratio.row("at most 2") == ("slow at times", "5.00", "2.00", "1.50", "1.50 to 5.00", "at most 2")


@pytest.mark.parametrize("draw", [(), (2,), (1, 2)])
def test_the_bare_loop_computes_the_simulators_gradients(world: World, draw: tuple[int, ...]) -> None:
    model = bare_loop(world, 0, [(1,)])  # weights that are not zero
    theta, zones = flat(list(model.parameters())), world.data.zones
    local, *peers = (world.learner.gradient(theta, zones[z].train) for z in (0, *draw))
    expected = local + np.mean(peers, axis=0) if peers else local
    assert np.abs(expected).max() > 0.01
    np.testing.assert_allclose(flat(bare_direction(world, model, 0, draw)), expected, rtol=1e-5, atol=1e-6)


def test_the_bare_loop_steps_along_them(world: World) -> None:
    torch.manual_seed(0)
    first = bare_loop(world, 0, [])
    torch.manual_seed(0)
    after = bare_loop(world, 0, [(1, 2)])
    step = 1e-3 * flat(bare_direction(world, first, 0, (1, 2)))
    np.testing.assert_allclose(flat(list(after.parameters())), flat(list(first.parameters())) - step, atol=1e-7)


def test_a_bag_of_jobs_is_done_by_one_and_by_two() -> None:
    ratio = workers(load_run_file(EXPERIMENTS / "sixteen_zones.toml", FEW), repeats=1)
    assert min(ratio.ours + ratio.bare) > 0


@pytest.mark.parametrize(
    ("cost", "gain", "code"), [(1.15, 1.70, 0), (0.5, 2.0, 0), (1.16, 2.0, 1), (0.5, 1.69, 1), (2.0, 1.0, 1)]
)
def test_a_ratio_beyond_its_limit_is_the_exit_code_and_the_table_is_there(
    cost: float, gain: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = next(iter(simulator.WORKLOADS))  # a later one within the limit does not make up for it

    def simulated(name: str, *_: object) -> Ratio:
        return Ratio(name, (cost if name == first else 0.5,), (1.0,))

    monkeypatch.setattr(simulator, "simulation", simulated)
    monkeypatch.setattr(simulator, "workers", lambda *_: Ratio("workers", (gain,), (1.0,)))
    assert main([]) == code
    assert main(["--no-limits"]) == 0
    printed = capsys.readouterr().out
    assert f"{cost:.2f}" in printed
    assert f"{gain:.2f}" in printed
    assert "at most 1.15" in printed
    assert "at least 1.70" in printed
