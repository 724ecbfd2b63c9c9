"""Samples, and their split in order of time."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device.samples import Samples, joined, split
from sgfusion.errors import DataError

arange: Any = np.arange
full: Any = np.full
ones: Any = np.ones  # samples take any numbers, and have them as float32


def numbered(count: int) -> Samples:
    return Samples(arange(count * 2).reshape(count, 2), arange(count))


@pytest.mark.parametrize(
    ("count", "sizes"),
    [(1, (1, 0, 0)), (2, (1, 0, 1)), (3, (1, 1, 1)), (4, (2, 1, 1)), (5, (3, 1, 1)), (9, (7, 1, 1)), (10, (6, 2, 2))],
)
def test_a_fifth_is_for_the_test_one_before_it_to_choose_by_and_short_histories_are_shared_out(
    count: int, sizes: tuple[int, int, int]
) -> None:
    data = split("oslo", "u1", numbered(count))
    assert (len(data.train), len(data.validation), len(data.test)) == sizes
    assert (data.zone, data.device) == ("oslo", "u1")


@given(st.integers(1, 500))
def test_a_split_is_disjoint_whole_and_in_order(count: int) -> None:
    data = split("z", "d", numbered(count))
    assert np.concatenate([data.train.y, data.validation.y, data.test.y]).tolist() == list(range(count))
    assert len(data.train) >= max(len(data.validation), len(data.test), 1)
    if count >= 5:
        assert len(data.test) == len(data.validation) == count // 5


def test_no_samples_are_no_device() -> None:
    with pytest.raises(DataError, match="zone 'oslo', device 'u1' has no samples"):
        split("oslo", "u1", numbered(0))


def test_samples_become_float32_and_keep_their_context() -> None:
    samples = Samples(ones((2, 3, 1)), ones((2, 3)), arange(12).reshape(2, 3, 2))
    assert samples.context is not None
    assert {samples.x.dtype, samples.y.dtype, samples.context.dtype} == {np.dtype(np.float32)}
    part = samples.part(1, 2)
    assert part.context is not None
    assert part.context.tolist() == [[[6, 7], [8, 9], [10, 11]]]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["x", "y", "context"])
def test_what_is_not_finite_is_refused_with_its_sample(name: str, bad: float) -> None:
    arrays = {"x": ones((3, 2, 1)), "y": ones((3, 2)), "context": ones((3, 2, 1))}
    arrays[name][1, 0] = bad
    with pytest.raises(DataError, match=f"{name}: sample 1 is not finite"):
        Samples(**arrays)


def test_one_row_a_sample() -> None:
    with pytest.raises(DataError, match="y has 2 rows and x has 3"):
        Samples(ones((3, 1)), ones(2))
    with pytest.raises(DataError, match="context has 4 rows and x has 3"):
        Samples(ones((3, 1)), ones(3), ones((4, 1, 1)))


def test_joined_keeps_order_and_refuses_a_context_here_and_there() -> None:
    both = joined([numbered(2), numbered(3)])
    assert both.y.tolist() == [0, 1, 0, 1, 2]
    assert both.context is None
    with_context = Samples(ones((1, 1, 1)), ones(1), full((1, 1, 1), 7))
    again = joined([with_context, with_context])
    assert again.context is not None
    assert again.context.tolist() == [[[7]], [[7]]]
    with pytest.raises(DataError, match="some samples have a context and some have none"):
        joined([with_context, Samples(ones((1, 1, 1)), ones(1))])
