"""Random numbers that are a pure function of what they are for, by a counter-based generator (method 5).

Philox is keyed, so a stream has no history: whoever knows (seed, purpose, place) has its numbers, in any process, on
any platform, after any crash. Only raw 64-bit words are taken from numpy, whose streams of raw words never change
between versions; the step from words to uniforms is ours.
"""

import hashlib

import numpy as np
import numpy.typing as npt

from sgfusion.errors import InputError

WORDS = 1 << 64


def raw_stream(seed: int, purpose: str, *place: int) -> np.random.Philox:
    """The stream of 64-bit words for `purpose` at `place` (up to two numbers, such as zone and round)."""
    words = [checked_word("seed", seed), *(checked_word("place", number) for number in place)]
    tag = int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "little")
    # Words advance the lowest word of the counter; the place stands above it, so streams never overlap.
    counter = [0, *words[1:], *([0] * (3 - len(place)))]
    return np.random.Philox(key=np.array([words[0], tag], np.uint64), counter=np.array(counter, np.uint64))


def checked_word(name: str, number: object) -> int:
    """A seed or a place as a 64-bit word, refused unless it is one."""
    if isinstance(number, int | np.integer) and 0 <= number < WORDS:
        return int(number)
    raise InputError(f"{name} = {number}: give a whole number from 0 to 2^64 - 1")


def uniforms(stream: np.random.Philox, count: int) -> npt.NDArray[np.float64]:
    """The next `count` numbers in [0, 1), 53 bits each."""
    numbers: npt.NDArray[np.float64] = (stream.random_raw(count) >> np.uint64(11)) * np.float64(2.0**-53)
    return numbers
