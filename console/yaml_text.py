"""Words as YAML that Compose reads back as the same words."""

import json
import re
from collections.abc import Sequence

_NOT_TEXT = frozenset({"y", "yes", "on", "true", "n", "no", "off", "false", "null"})
"""What YAML takes for something else; a zone may be called so, and Norway is."""


def flow(words: Sequence[str]) -> str:
    """A list on one line."""
    return f"[{', '.join(map(quoted, words))}]"


def listed(words: Sequence[str]) -> str:
    """A line for each, below a key of a service."""
    return "\n".join(f"      - {quoted(word)}" for word in words)


def quoted(word: str) -> str:
    """As YAML reads it back; Compose takes a dollar for a variable unless there are two."""
    plain = re.fullmatch(r"[A-Za-z/.][\w./-]*(:[\w/.-]*[a-z][\w/.-]*)*|--?[a-z]+", word) is not None
    plain = plain and word.lower() not in _NOT_TEXT
    return word if plain else json.dumps(word, ensure_ascii=False).replace("$", "$$")
