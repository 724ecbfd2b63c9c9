"""docs/containers.md as it stands: its commands are typed, in a folder with what they need of the repository.

It runs the demonstration in the root's docker-compose.yml, so its models are compared with the simulator's too.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import docker
import pytest

from tests.containers.engine import REPOSITORY
from tests.containers.project import Project, compose_command, tag_of, torn_down
from tests.containers.runs import assert_same, simulated
from tests.pages import types

BLOCKS = re.findall(
    r"^```sh\n(.*?)^```", (REPOSITORY / "docs" / "containers.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
)


@types("docs/containers.md", but=["make cluster", "make images"])
@pytest.mark.timeout(1500)
def test_the_page_and_the_demonstration_of_the_root_folder(
    engine: docker.DockerClient, images: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "experiments").mkdir()
    for file in ("docker-compose.yml", "experiments/containers.toml", "experiments/sixteen_zones.toml"):
        shutil.copyfile(REPOSITORY / file, tmp_path / file)
    text = (tmp_path / "experiments" / "containers.toml").read_text("utf-8")
    (tmp_path / "given.toml").write_text(text, "utf-8")
    cluster = Project(engine, tmp_path, tag_of(images), compose_command())

    def typed(block: str) -> str:
        said = ""
        for line in block.splitlines():
            program, _, arguments = line.partition(" ")
            if program == "make":  # images are there; `make cluster` is deploy/cluster, which is these very commands
                continue
            if program == "docker-compose":
                said += cluster.compose(*arguments.split(), timeout=400).stdout
            else:
                command = [sys.executable, "-m", "console.main", *arguments.split()]
                assert program == "sgfusion"
                subprocess.run(
                    command, cwd=tmp_path, env={**cluster.surroundings(), "PYTHONPATH": str(REPOSITORY)}, check=True
                )
        return said

    whole, by_hand, operator, again, any_run = BLOCKS
    assert whole == "make cluster\n"
    with torn_down(cluster):
        said = typed(by_hand)
        assert "SGFusion" in said
        assert said.count("30/30") == 4
        results = cluster.finish(within=400)
        given = f"hrg.from={results / 'dendrogram.json'}"
        # Its devices add noise that nobody can make again, so the simulator takes the cluster's dendrogram.
        assert_same(results, simulated(text, tmp_path / "simulated", given, "simulation.exact=true"))

        status = typed(operator)
        assert json.loads(status[status.index("{") : status.rindex("}") + 1])["finished"]
        assert (results / "lubelskie" / "MODEL_CARD.md").exists()
        assert "cloud" in typed("docker-compose ps\n")  # what its table of troubles names
        assert "made (cloud" in typed("docker-compose logs certs\n")
        assert "serves at" in typed("docker-compose logs cloud\n")

        typed(again)
        assert not cluster.containers()
        assert not engine.volumes.list(filters={"name": f"{cluster.name}_"})
        typed(any_run)
