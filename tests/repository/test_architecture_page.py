"""docs/architecture.md: its tree has every module, where it is, and no other."""

import re

from tests.pages import ROOT, blocks

PACKAGES = ("sgfusion", "cloud", "edge", "device", "simulator", "console")
AS_A_WHOLE = {"device/sources", "device/tasks", "simulator/methods", "console/report", "console/doctor"}
"""Folders that a line tells of; it may name some of their files."""
NAME = re.compile(r"(?<![\w/])\w+\.py\b")


def shown() -> set[str]:
    """The modules in the tree. Those that a line mentions beside its own are in the same folder."""
    (tree,) = [block.text for block in blocks("docs/architecture.md") if "THE KERNEL" in block.text]
    open_at: list[str] = []
    found = set()
    for line in tree.splitlines():
        level = (len(line) - len(line.lstrip())) // 2
        if folder := re.match(r"([\w/]+)/( |$)", line.lstrip()):
            open_at[level:] = [folder[1]]
        within = open_at[:level]  # a description that goes on stands further right than any folder
        found |= {"/".join([*within, name]) for name in NAME.findall(line)}
    return {path for path in found if path.split("/")[0] in PACKAGES}


def modules() -> set[str]:
    paths = (path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {str(path) for path in paths if path.name != "__init__.py" and "proto" not in path.parts}


def test_the_tree_names_every_module_and_no_other() -> None:
    assert sorted(shown() - modules()) == []
    assert sorted(path for path in modules() - shown() if path.rpartition("/")[0] not in AS_A_WHOLE) == []
