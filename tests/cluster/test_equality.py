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


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("method", METHODS)
def test_a_cluster_gives_the_simulators_bytes(method: str, update: str, tmp_path: Path) -> None:
    run = run_of(*METHODS[method], *UPDATES[update])
    with cluster_of(run, tmp_path) as cluster:
        trained = cluster.finish()
    trained.same_as(simulated(run))
