"""The benchmark runs and writes what it says; its figures are not tested, they are measured."""

import csv
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_it_writes_a_table_and_a_plot(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.hrg", "--zones", "8", "16", "--no-igraph", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "hrg.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["zones"] for row in rows] == ["8", "16"]
    assert all(float(row["loss"]) <= float(row["linkage_loss"]) * (1 + 1e-12) for row in rows)
    assert all(float(row["loss"]) <= float(row["paper_loss"]) * (1 + 1e-12) for row in rows)
    assert (tmp_path / "hrg.md").read_text().startswith("| zones |")
    assert (tmp_path / "hrg.png").read_bytes().startswith(b"\x89PNG")
