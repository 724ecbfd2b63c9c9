"""Times written as text."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from sgfusion.errors import DataError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso_times(texts: Iterable[str], what: str) -> npt.NDArray[np.int64]:
    """Microseconds since 1970 of times in ISO form, in UTC where a text names no offset; 0 of an empty text."""
    return np.array([_microseconds(text, what) if text else 0 for text in texts], np.int64)


def _microseconds(text: str, what: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise DataError(
            f"{what} has {text!r}: give numbers, timestamps, or ISO form as 2024-05-31T18:30:00; or leave it out, and"
            " samples keep the file's order",
            shows=repr(text),
        ) from error
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)
