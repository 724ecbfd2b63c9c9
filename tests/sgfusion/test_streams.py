"""Random numbers that are a pure function of what they are for (method 5)."""

import hashlib
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfusion.errors import InputError
from sgfusion.streams import raw_stream, uniforms

WORDS = 1 << 64


def words_of(seed: int, purpose: str, *place: int, count: int) -> list[int]:
    return [int(word) for word in raw_stream(seed, purpose, *place).random_raw(count)]


def philox_block(counter: list[int], key: list[int]) -> list[int]:
    """Philox4x64-10 by the book (Salmon et al., SC 2011): four words for a counter and a key."""
    for _ in range(10):
        low, high = 0xD2E7470EE14C6C93 * counter[0], 0xCA5A826395121157 * counter[2]
        counter = [
            (high >> 64) ^ counter[1] ^ key[0],
            high % WORDS,
            (low >> 64) ^ counter[3] ^ key[1],
            low % WORDS,
        ]
        key = [(key[0] + 0x9E3779B97F4A7C15) % WORDS, (key[1] + 0xBB67AE8584CAA73B) % WORDS]
    return counter


# Golden values: whoever changes one of these changes every run that was ever made.

GOLDEN_WORDS = [
    (0, "hrg draw", (0, 0), (0x260A44D99076A91D, 0xB82135F6E09E4DCC, 0xFFC7F05FE6E03EF7)),
    (7, "hrg draw", (3, 200), (0x871422D8F64BAC10, 0xABC66E7FE94A2128, 0x2775B96E9CACCAB9)),
    (7, "chi draw", (3, 200), (0x029ADCCCA98C0BEF, 0xFF9805D9E115ADD6, 0x5CD34B50D8CE51AA)),
    (WORDS - 1, "fit", (), (0x7EEC373B043165F0, 0x5C28B1FEF61A89A6, 0xCF5D975E31EA15FA)),
    (2026, "fit", (5,), (0xFF57BA63A75FCBC8, 0x68B34B311117E1D2, 0x4E0E828BEC010D4C)),
]


@pytest.mark.parametrize(("seed", "purpose", "place", "words"), GOLDEN_WORDS)
def test_the_first_words_are_these(seed: int, purpose: str, place: tuple[int, ...], words: tuple[int, ...]) -> None:
    assert tuple(words_of(seed, purpose, *place, count=len(words))) == words


def test_the_first_uniforms_are_these() -> None:
    assert uniforms(raw_stream(7, "hrg draw", 3, 200), 6).tolist() == [
        0.5276510028545959,
        0.6709965765269676,
        0.15414008093346176,
        0.011454084430151612,
        0.4777142750528457,
        0.9359560422895913,
    ]


@given(
    seed=st.integers(0, WORDS - 1),
    purpose=st.text("abc μ", max_size=12),
    place=st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1)),
)
def test_a_stream_is_philox_with_the_seed_and_the_purpose_as_key_and_the_place_above_the_counter(
    seed: int, purpose: str, place: tuple[int, int]
) -> None:
    key = [seed, int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "little")]
    blocks = [philox_block([block, *place, 0], key) for block in (1, 2, 3)]
    assert words_of(seed, purpose, *place, count=12) == [word for block in blocks for word in block]


# What makes streams differ


def test_seed_purpose_and_each_number_of_the_place_make_another_stream() -> None:
    places = [(1, "a", 2, 3), (2, "a", 2, 3), (1, "b", 2, 3), (1, "a", 3, 2), (1, "a", 2, 4), (1, "a", 0, 3)]
    streams = [frozenset(words_of(seed, purpose, *place, count=64)) for seed, purpose, *place in places]
    assert len(frozenset.union(*streams)) == 64 * len(streams)


def test_a_place_left_out_is_zero() -> None:
    assert words_of(5, "fit", count=3) == words_of(5, "fit", 0, count=3) == words_of(5, "fit", 0, 0, count=3)


def test_a_stream_goes_on_where_it_stopped() -> None:
    in_parts, at_once = raw_stream(1, "a"), raw_stream(1, "a")
    parts = [*uniforms(in_parts, 2), *uniforms(in_parts, 0), *uniforms(in_parts, 5)]
    assert parts == uniforms(at_once, 7).tolist()


# From words to uniforms


def uniforms_of(*words: int) -> list[float]:
    stream = SimpleNamespace(random_raw=lambda count: np.array(words[:count], np.uint64))
    return [float(number) for number in uniforms(cast("Any", stream), len(words))]


def test_a_uniform_is_the_high_53_bits_of_a_word() -> None:
    assert uniforms_of(0, 2**11 - 1, 2**11, 2**63, WORDS - 1) == [0.0, 0.0, 2.0**-53, 0.5, 1 - 2.0**-53]


def test_uniforms_are_doubles_below_one() -> None:
    numbers = uniforms(raw_stream(3, "a"), 1000)
    assert numbers.dtype == np.float64
    assert numbers.shape == (1000,)
    assert ((numbers >= 0) & (numbers < 1)).all()


def test_uniforms_fill_the_unit_interval_evenly() -> None:
    counts = np.bincount((uniforms(raw_stream(11, "a"), 64_000) * 64).astype(int), minlength=64)
    distance = float(((counts - 1000.0) ** 2 / 1000.0).sum())
    assert distance < 145  # chi-square with 63 degrees of freedom passes it once in 10⁸


# Refusals


@pytest.mark.parametrize("seed", [-1, WORDS, -WORDS])
def test_a_seed_outside_64_bits_is_refused_by_name(seed: int) -> None:
    with pytest.raises(InputError, match=rf"^seed = {seed}: .*0 to 2\^64 - 1"):
        raw_stream(seed, "a")


@pytest.mark.parametrize(
    ("seed", "place", "says"),
    [(1.5, (), "seed = 1.5"), (-1, (), "seed = -1"), (1, (-1,), "place = -1"), (1, (0, 2**64), f"place = {2**64}")],
)
def test_what_is_no_word_is_refused(seed: int, place: tuple[int, ...], says: str) -> None:
    with pytest.raises(InputError, match=f"{says}: give a whole number"):
        raw_stream(seed, "test", *place)
