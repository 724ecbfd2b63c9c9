"""A copy of the repository to try its commands in: what images are built from, and no more."""

import shutil
from pathlib import Path

from tests.containers.engine import REPOSITORY

PACKAGES = ("sgfusion", "cloud", "edge", "device", "simulator", "console")
FILES = ("pyproject.toml", "constraints.txt", "README.md", "LICENSE", ".dockerignore")


def copy_tree(folder: Path) -> None:
    """Copy it into that folder; `.venv`, whose pip fills the wheelhouse, is the repository's own."""
    for package in (*PACKAGES, "deploy"):
        shutil.copytree(REPOSITORY / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for file in FILES:
        shutil.copy2(REPOSITORY / file, folder / file)
    (folder / ".venv").symlink_to(REPOSITORY / ".venv")
