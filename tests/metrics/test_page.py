"""docs/metrics.md as it stands: a cluster of `sgfusion up`, read by Prometheus as the page says."""

import json
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from tests.cluster.harness import RUN
from tests.metrics.page import blocks
from tests.metrics.prometheus import PATIENCE, ROOT, RULES, program, started
from tests.pages import types
from tests.slow_task import write_slow_task

EVERYBODY = {"cloud", "devices-0", "devices-1", "edge-ash", "edge-birch", "edge-cedar", "edge-elm"}


@types("docs/metrics.md#A cluster on this machine")
def test_prometheus_reads_a_cluster_of_this_machine(tmp_path: Path) -> None:
    program("prometheus")
    (config,), (command, _in_containers) = blocks("yaml"), blocks("sh")
    name, *options = shlex.split(command)
    assert name == "prometheus"
    options.remove("--web.listen-address=127.0.0.1:9090")  # a port that is free takes its place
    (tmp_path / "prometheus.yml").write_text(config, "utf-8")
    shutil.copytree(RULES.parent, tmp_path / "deploy" / "observability")
    slow = write_slow_task(tmp_path, seconds=0.05)
    (tmp_path / "run.toml").write_text(RUN.replace('"linear"', f'"{slow}"').replace("= 6\n[task]", "= 100000\n[task]"))
    up = [sys.executable, "-m", "console.main", "up", "run.toml", "--out", "results/demo", "--hosts", "2"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    with (tmp_path / "up.log").open("wb") as log:
        cluster = subprocess.Popen(up, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    try:
        with started(tmp_path, options) as prometheus:
            prometheus.until(lambda: prometheus.up() == EVERYBODY, (tmp_path / "up.log").read_text("utf-8"))
            prometheus.until(lambda: prometheus.number("min(sgfusion_cloud_zone_round) > bool 0") == 1, "rounds")
            cluster.send_signal(signal.SIGINT)
            assert cluster.wait(PATIENCE) == 130, (tmp_path / "up.log").read_text("utf-8")
            assert json.loads((tmp_path / "results" / "demo" / "cluster" / "targets.json").read_bytes()) == []
            prometheus.until(lambda: not prometheus.get("targets")["activeTargets"], "nobody is left")
    finally:
        cluster.kill()
        cluster.wait()
