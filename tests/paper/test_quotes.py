"""Every test in this folder quotes the method to the letter."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
METHOD = HERE.parent.parent / "docs" / "method.md"


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("*", "")).strip()


def quotes() -> Iterator[tuple[str, str]]:
    for path in sorted(HERE.glob("test_[0-9]*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield f"{path.name}::{node.name}", ast.get_docstring(node) or ""


@pytest.mark.parametrize("quote", [pytest.param(quote, id=name) for name, quote in quotes()])
def test_the_docstring_is_a_quotation(quote: str) -> None:
    parts = [plain(part) for part in quote.split("[...]")]
    assert all(parts), "quote a sentence of docs/method.md; [...] stands for what is left out"
    method = plain(METHOD.read_text("utf-8"))
    for part in parts:
        assert part in method
