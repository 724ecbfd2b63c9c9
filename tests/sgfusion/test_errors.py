"""The tree in the docstring of `errors.py` is the tree of its classes."""

import ast
import builtins
import inspect
import re
from pathlib import Path

import pytest

import sgfusion
from sgfusion import errors

CLASSES = {
    name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__
}
KERNEL = Path(str(sgfusion.__file__)).parent
TIERS = ("sgfusion", "cloud", "edge", "device", "simulator", "console")
LINE = re.compile(r"^    (?P<indent>[│ ]*)(?:[├└]── )?(?P<name>\w+)(?: \(also an? (?P<also>\w+)\))?(?P<about>.*)$")


def drawn() -> dict[str, tuple[str | None, str | None, str]]:
    """Each class in the drawing: what it stands under, what else it is, and what is said of it."""
    assert errors.__doc__ is not None
    tree: dict[str, tuple[str | None, str | None, str]] = {}
    above: list[str] = []
    for line in errors.__doc__.split("::")[1].strip("\n").splitlines():
        found = LINE.match(line)
        assert found, line
        depth = len(found["indent"]) // 4 + ("──" in line)
        above[depth:] = [found["name"]]
        assert found["name"] not in tree
        tree[found["name"]] = (above[depth - 1] if depth else None, found["also"], found["about"].strip())
    return tree


def test_the_drawing_has_every_class_and_no_other() -> None:
    assert drawn().keys() == CLASSES.keys()
    assert len(CLASSES) > 15


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_stands_where_it_is_drawn(name: str) -> None:
    above, also, about = drawn()[name]
    bases = [base.__name__ for base in CLASSES[name].__bases__]
    assert bases == [base for base in (above or "Exception", also) if base]
    assert about or above is None
    assert CLASSES[name].__doc__


def test_there_is_one_root_and_every_class_is_under_it() -> None:
    assert [name for name, (above, _, _) in drawn().items() if above is None] == ["SGFusionError"]
    assert all(issubclass(kind, errors.SGFusionError) for kind in CLASSES.values())


def test_a_wrong_input_is_a_value_error_and_what_happens_in_a_run_is_not() -> None:
    wrong_input = {name for name, kind in CLASSES.items() if issubclass(kind, ValueError)}
    assert {"InputError", "SamplerError", "CheckpointError", "RunFileError"} <= wrong_input
    assert not wrong_input & {"RoundError", "PeerUnavailableError", "DivergedError", "LedgerError"}
    assert issubclass(errors.MissingDependencyError, ImportError)


def test_no_other_module_has_an_error_class_of_its_own() -> None:
    """Nor has a tier one of ours; a `BadLineError` of its own that it raises for itself is none."""
    builtin = {name for name in vars(builtins) if name.endswith(("Error", "Exception"))}
    for tier in TIERS:
        known = {*CLASSES, *(builtin if tier == "sgfusion" else ())}
        for path in sorted(set((KERNEL.parent / tier).rglob("*.py")) - {KERNEL / "errors.py"}):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef):
                    bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
                    assert not known & bases, f"{path}: {node.name}"


def test_no_message_sends_anybody_to_a_package_index() -> None:
    """There is no SGFusion there: a clone is what people have."""
    texts = {path: path.read_text("utf-8") for name in TIERS for path in (KERNEL.parent / name).rglob("*.py")}
    assert len(texts) > 100
    assert [path for path, text in texts.items() if re.search(r"pip install (--upgrade )?'?sgfusion", text)] == []
    assert errors.brought_by("device") == "in the repository type make install, or pip install '.[device]'"
    assert errors.brought_by().endswith("pip install .")
