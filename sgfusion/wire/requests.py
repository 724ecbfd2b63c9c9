"""The name of a zone's question, in the logs of the edge that asks, of its peers and of their devices (docs/logs.md).

`lublin.12` is round 12 of zone lublin, `lublin.12.evaluation` the evaluation after it, `lublin.initial` its `θ⁰`. It is
for people and says nothing that a service acts on: one that is odd is dropped, and what it came with is answered.
"""

import re
from typing import Literal
from urllib.parse import quote

LONGEST = 120
"""Characters."""
_ODD = re.compile(r"[^\w.-]")
_REQUEST = re.compile(rf"[\w.%-]{{1,{LONGEST}}}")
_ROOM = 30  # characters after the zone


def request_of(zone: str, round: int | None = None, purpose: Literal["", "evaluation", "initial"] = "") -> str:
    """The name of what the zone asks in that round."""
    return ".".join([_safe(zone), *([] if round is None else [str(round)]), *([purpose] if purpose else [])])


def checked_request(text: str, zone: str | None = None) -> str:
    """A name that came from elsewhere; empty if it is none, or not one of that zone's."""
    if not _REQUEST.fullmatch(text) or (zone is not None and not text.startswith(f"{_safe(zone)}.")):
        return ""
    return text


def _safe(zone: str) -> str:
    """Zones may be named anything: what is no letter, digit, point or dash is percent-quoted, as in a URI."""
    return _ODD.sub(lambda odd: quote(odd[0].encode("utf-8", "replace"), safe=""), zone)[: LONGEST - _ROOM]
