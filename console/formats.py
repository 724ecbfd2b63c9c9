"""Numbers and words as a reader wants them."""

import math
import re
from collections.abc import Sequence

NOTHING = "–"


def number(value: float | None) -> str:
    """Two decimals from 10 on, three below; a dash for nothing."""
    if value is None or math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.{2 if abs(value) >= 10 else 3}f}"


def mean(values: Sequence[float]) -> float:
    """The mean; NaN of nothing."""
    return math.fsum(values) / len(values) if values and all(map(math.isfinite, values)) else _not_finite(values)


def deviation(values: Sequence[float]) -> float | None:
    """The sample's standard deviation (n - 1); None for fewer than two values, which have none."""
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return None
    middle = mean(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1))


def spread(values: Sequence[float]) -> str:
    """`mean ± deviation` over the seeds, as precise as the mean is."""
    middle, around = mean(values), deviation(values)
    if around is None or not math.isfinite(middle):
        return number(middle)
    return f"{number(middle)} ± {around:.{2 if abs(middle) >= 10 else 3}f}"


def p_value(p: float | None) -> str:
    """Two significant digits."""
    if p is None:
        return NOTHING
    return f"{p:.1e}" if p < 1e-4 else f"{p:#.2g}"


def percent(share: float) -> str:
    """A signed share in per cent."""
    return f"{share:+.2%}" if math.isfinite(share) else NOTHING


def whole(value: float) -> str:
    """A count, with its thousands apart."""
    return f"{value:,.0f}"


def counted(count: int, noun: str) -> str:
    """`1 job`, `2 jobs`: of nouns that take an s."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def size(count: float) -> str:
    """Bytes in units of a thousand, to three digits."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.0f} B" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB"


def listed(names: Sequence[str], most: int = 12) -> str:
    """`a, b and c`; no more than `most` of them by name."""
    if len(names) > most:
        names = (*names[: most - 1], f"{len(names) - most + 1} more")
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "none"


def file_stem(*parts: str) -> str:
    """Names joined to one that is fit for a file and for an address within a page."""
    return "-".join(re.sub(r"[^\w.]+", "-", part).strip("-").lower() for part in parts)


def _not_finite(values: Sequence[float]) -> float:
    """NaN of nothing or of NaN; else the infinity that is among them."""
    return sum(values) if values else math.nan


def sentences(*texts: str) -> str:
    """One after the other, each with an end; empty ones are none."""
    said = [text for text in texts if text]
    return " ".join([*(text if text.endswith((".", "?")) else f"{text}." for text in said[:-1]), *said[-1:]])
