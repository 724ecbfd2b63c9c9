"""docs/edge.md as tests need it: what it has people type, and what it says that they will see."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "edge.md").read_text("utf-8")
_EXAMPLES = re.compile(r"(…|\b[0-9a-f]{16}\b|\d+)")  # what is cut, digests, numbers


def typed(heading: str, language: str = "sh") -> list[str]:
    """The commands of one of the page's steps, a text for each block."""
    return re.findall(rf"^```{language}\n(.*?)^```", _section(heading), re.MULTILINE | re.DOTALL)


def quoted() -> list[str]:
    """All words that the page's tables of errors quote as seen. The column of that name is the last but one."""
    rows = [line.split(" | ") for line in _section("What each error means").splitlines() if line.startswith("| ")]
    return [words for row in rows if len(row) > 1 for words in re.findall(r"`([^`]+)`", row[-2])]


def explained(begins: str, said: str) -> bool:
    """Whether the words on the page that begin so are what was said, but for numbers and what is cut."""
    (words,) = {words for words in quoted() if words.startswith(begins)}
    return re.search(_pattern(words), said) is not None


def _pattern(words: str) -> str:
    pieces = _EXAMPLES.split(words)
    return "".join(_any_like(piece) if place % 2 else re.escape(piece) for place, piece in enumerate(pieces))


def _any_like(example: str) -> str:
    if example == "…":
        return ".*"
    return r"\d+(?:\.\d+)?" if example.isdecimal() and len(example) < 16 else "[0-9a-f]{16}"


def _section(heading: str) -> str:
    _, found, rest = PAGE.partition(f"\n## {heading}\n")
    assert found, heading
    return rest.partition("\n## ")[0]
