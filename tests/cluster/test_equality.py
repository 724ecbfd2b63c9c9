"""A cluster and the simulator give the same bytes: the product's first promise (architecture, Decide then act)."""

from pathlib import Path

import pytest

from tests.cluster.harness import cluster_of, run_of, simulated

METHODS = {
    "sgfusion": (),
    "chi": ("sampler.kind=chi", "sampler.chi=2"),
    "top-k": ("sampler.kind=top-k", "sampler.k=2"),
    "d-zgd": ("sampler.kind=neighbours",),
    "sgeofl": ("sampler.kind=none",),
}
UPDATES = {"gradient": (), "delta": ("update={kind='delta', epochs=2, rate=0.05, batch=4}", "optimiser.rate=0.7")}


LSTM = """
name = "heart-rates"
seed = 1
rounds = 4
[task]
name = "heart_rate"
size = "small"
[data]
source = "synthetic_heart_rate"
country = "poland"
share = 0.1
length = 12
[zones]
names = ["lubelskie", "podlaskie", "swietokrzyskie"]
[histogram]
epsilon = "off"
[hrg]
sharpness = 20.0
[optimiser]
kind = "adam"
rate = 0.04
[evaluation]
every = 2
[simulation]
exact = true
"""
"""Bits of an LSTM hang on how many threads torch has; those of a linear model do not."""


@pytest.mark.parametrize("update", UPDATES)
def test_an_lstms_bytes_too_with_adam_and_devices_on_two_hosts(update: str, tmp_path: Path) -> None:
    run = run_of(*(override for override in UPDATES[update] if "optimiser" not in override), text=LSTM)
    with cluster_of(run, tmp_path, hosts=2) as cluster:
        trained = cluster.finish()
    trained.same_as(simulated(run))


def test_a_host_that_computes_with_several_threads_gives_the_same_bytes(tmp_path: Path) -> None:
    run = run_of(text=LSTM)
    with cluster_of(run, tmp_path, start=False) as cluster:
        cluster.start_edges(*run.zones.names)
        cluster.host("devices", threads=4)
        trained = cluster.finish()
    trained.same_as(simulated(run))


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("method", METHODS)
def test_a_cluster_gives_the_simulators_bytes(method: str, update: str, tmp_path: Path) -> None:
    run = run_of(*METHODS[method], *UPDATES[update])
    with cluster_of(run, tmp_path) as cluster:
        trained = cluster.finish()
    trained.same_as(simulated(run))
