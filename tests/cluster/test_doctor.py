"""`sgfusion doctor` on a real cluster: all is well, then an edge is gone and a certificate is another's."""

import json
import re
import shutil
from pathlib import Path

import pytest

from console.reach import enter
from tests.cluster.harness import cluster_of, run_of
from tests.cluster.test_follow import reach
from tests.console.commands import sgfusion

Capture = pytest.CaptureFixture[str]


def findings(capsys: Capture, *arguments: str | Path) -> tuple[int, dict[str, dict[str, str]]]:
    done = sgfusion(capsys, "doctor", *arguments, "--json")
    return done.code, {each["check"]: each for each in json.loads(done.out)["findings"] if each["check"] != "ports"}


def test_a_healthy_cluster_and_one_that_is_not(tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "results"
    with cluster_of(run_of("rounds=3000"), folder / "cluster" / "mark") as cluster:
        shutil.copytree(cluster.folder / "certs", folder / "cluster" / "certs")
        enter(cluster.folder, folder / "cluster" / "certs" / "operator")
        cluster.until_round(1)
        for asked in ((str(folder),), reach(cluster)):
            code, found = findings(capsys, *asked)
            wrong = {check: each for check, each in found.items() if each["verdict"] != "ok"}
            assert set(wrong) <= {"engine"}, wrong
            assert code == 0
            assert found["zones"]["text"].startswith("4 of 4 edges answer, the slowest in ")
            assert "run cluster, plan 1" in found["cloud"]["text"]
        _, found = findings(capsys, str(folder))
        assert re.search(r": (\d+) of \1, keys fit, 364 days left", found["certificates"]["text"])
        cluster.kill("edge-birch")
        shutil.copy(
            folder / "cluster" / "certs" / "edge-elm" / "tls.key", folder / "cluster" / "certs" / "edge-ash" / "tls.key"
        )
        code, found = findings(capsys, str(folder))
        assert code == 1
        assert "is not reached" in found["zone birch"]["text"]
        assert "edge-ash/tls.key is not the key of tls.crt" in found["certificates"]["text"]
        assert found["zones"]["text"].startswith("3 of 4 edges answer")
        assert sum("Identity" in name for name in cluster.status().refusals) == 0, "a doctor does no harm"
