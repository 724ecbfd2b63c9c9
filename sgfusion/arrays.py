"""Arrays from whatever a caller hands in, or an error of ours that says what is wrong with it."""

import numpy as np
import numpy.typing as npt

from sgfusion.errors import InputError


def as_floats(values: object, what: str, error: type[InputError]) -> npt.NDArray[np.float64]:
    """`values` as float64; `what` is what the error calls them."""
    try:
        array = np.asarray(values)
    except ValueError as reason:
        said = shown(values)
        raise error(f"{what} = {said}: not numbers that make an array ({reason})", shows=said) from reason
    if array.dtype.kind not in "biuf" and array.size:
        said = shown(values)
        raise error(f"{what} = {said}: not numbers that make an array (of type {array.dtype})", shows=said)
    return array.astype(np.float64, copy=False)


def shown(value: object, most: int = 60) -> str:
    """A value for an error message, cut short if long."""
    text = repr(value)
    return text if len(text) <= most else text[: most - 3] + "..."
