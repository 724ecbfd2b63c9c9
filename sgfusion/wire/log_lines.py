r"""An event as a line of a log: for people, or as JSON (docs/logs.md).

Nobody's words forge a line: whatever would begin another one, move a terminal's cursor or turn text around is escaped
in both forms, and a trace, the one thing of several lines, has a bar in front of each in the text form. An error's own
words are repeated only if we, or the system, chose them: those of a task or a library may hold data.
"""

import json
import re
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

from sgfusion.errors import SGFusionError

FIELDS = ("tier", "zone", "device", "round", "request")
"""What is said of an event besides its words, in this order, where it applies."""
LONGEST = 8_000
"""Characters of an event's words: many collectors cut a line at 16 KiB, in the middle of JSON."""
MOST_FRAMES = 30
"""Of a trace, the innermost ones."""
DEEPEST = 8
"""Errors that led to one another, of which a trace tells."""
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

# Controls of both sets (ESC and CSI among them), separators of lines, marks that turn the direction of text around,
# and halves of characters, which no encoding has. Joiners are part of some scripts' names, and stay.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_WIDEST = max(map(len, LEVELS))
_COLOURS = {"DEBUG": "2", "INFO": "32", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}


def escaped(text: str) -> str:
    """Text that stays on its line, and that a terminal shows as it is."""
    return _UNSAFE.sub(lambda found: _SHORT.get(found[0]) or f"\\u{ord(found[0]):04x}", text)


def json_line(event: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """The event as a JSON object, in the order of its keys; what JSON would leave is escaped too."""
    line = json.dumps(event, ensure_ascii=ascii_only, default=str)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def text_line(event: Mapping[str, Any], *, colour: bool = False) -> str:
    """The event for people: time, level and logger in columns, the words, and the request that they are about."""

    def painted(text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if colour else text

    level = str(event["level"])
    parts = [
        painted(str(event["time"]), "2"),
        painted(f"{level:<{_WIDEST}}", _COLOURS.get(level, "0")),
        f"{escaped(str(event['logger']))}: {escaped(str(event['message']))}",
    ]
    if request := event.get("request"):
        parts.append(painted(f"[{escaped(str(request))}]", "2"))
    lines = [" ".join(parts)]
    if trace := event.get("exception"):
        lines += [f"    | {escaped(line)}" for line in str(trace).splitlines()]
    return "\n".join(lines)


def trace_of(error: BaseException) -> str:
    """Where an error came from, and what led to it; its words only if they are ours or the system's."""
    return "\n".join(_trace(error, set()))


def _trace(error: BaseException, seen: set[int]) -> Iterator[str]:
    seen.add(id(error))
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None and id(before) not in seen and len(seen) < DEEPEST:
        yield from _trace(before, seen)
        yield "which led to:"
    if frames := traceback.extract_tb(error.__traceback__)[-MOST_FRAMES:]:
        yield "Traceback (most recent call last):"
        for frame in frames:
            yield f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}'
            if frame.line:
                yield f"    {frame.line}"
    yield _named(error)
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions[:DEEPEST]:
            if id(part) not in seen:
                yield from (f"  {line}" for line in _trace(part, seen))


def _named(error: BaseException) -> str:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(error, SGFusionError):
        return f"{name}: {escaped(error.discreet[:LONGEST])}"
    words = _chosen_by_the_system(error)
    return f"{name}: {escaped(words[:LONGEST])}" if words else name


def _chosen_by_the_system(error: BaseException) -> str:
    """What the system, or Python's import, says; what anybody raised by hand may hold data."""
    if isinstance(error, OSError) and isinstance(error.errno, int) and isinstance(error.strerror, str):
        places = [repr(place) for place in (error.filename, error.filename2) if isinstance(place, str | bytes)]
        return f"[Errno {error.errno}] {error.strerror}{': ' if places else ''}{' -> '.join(places)}"
    return str(error) if isinstance(error, ImportError) and error.name else ""


def first_words(text: str) -> str:
    """Of a library's message, what it begins with: asyncio goes on with a task, and all that it gave or raised."""
    line = text.strip().partition("\n")[0]
    return cut(line.partition(" <")[0])


def cut(text: str) -> str:
    """At most as many characters as a line may have."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
