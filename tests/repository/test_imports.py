"""Edges carry numpy and gRPC and little else: cloud and edge must load where torch, numba and OpenDP are not installed,
and the kernel without gRPC too.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("torch", "grpc", "numba", "opendp")
ALL_OF_THE_KERNEL = """
import importlib, pkgutil, sgfusion
for module in pkgutil.walk_packages(sgfusion.__path__, "sgfusion."):
    if not module.name.startswith(("sgfusion.wire", "sgfusion.proto")):
        importlib.import_module(module.name)
"""

ALL_OF_CLOUD_AND_EDGE = """
import importlib, pkgutil, cloud, edge
for package in (cloud, edge):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""


def loaded_by(code: str) -> set[str]:
    code += "\nimport sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.parametrize("code", ["import sgfusion", ALL_OF_THE_KERNEL], ids=["sgfusion", "every kernel module"])
def test_the_kernel_pulls_nothing_heavy(code: str) -> None:
    loaded = loaded_by(code)
    assert not loaded & set(HEAVY)
    if code == ALL_OF_THE_KERNEL:
        assert {"sgfusion.hrg", "sgfusion.hrg_moves", "sgfusion.privacy", "sgfusion.zone_trainer"} <= loaded


def test_cloud_and_edge_pull_no_torch() -> None:
    loaded = loaded_by(ALL_OF_CLOUD_AND_EDGE)
    assert not loaded & {"torch", "numba", "opendp", "device", "simulator"}
    assert {"cloud", "edge"} <= loaded


def test_a_heavy_module_would_be_seen() -> None:
    assert "numba" in loaded_by("import sys, types; sys.modules['numba'] = types.ModuleType('numba')")
