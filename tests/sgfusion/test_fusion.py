"""Attention and fusion (method 7)."""

import ast
import inspect
import math
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sgfusion import fusion
from sgfusion.errors import GradientError
from sgfusion.fusion import RunningMean, Similarity, attention, fuse, fuse_weighted, mean_direction, norm

E = math.e
Rows = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
SIMILARITIES: tuple[Similarity, ...] = ("inner", "cosine")


def rows(*values: list[float]) -> Rows:
    return np.array(values, np.float32)


def vector(*values: float) -> Rows:
    return np.array(values, np.float32)


finite = st.floats(-(2.0**50), 2.0**50, width=32)
gradients = st.tuples(st.integers(0, 6), st.integers(1, 5)).flatmap(
    lambda shape: st.tuples(arrays(np.float32, shape[1], elements=finite), arrays(np.float32, shape, elements=finite))
)


# Tiny exact numbers


def test_equal_similarities_share_equally() -> None:
    assert attention(vector(1, 1), rows([2, 0], [0, 2])).tolist() == [0.5, 0.5]
    assert attention(vector(3, 0), rows([0, 1], [0, -5], [0, 0], [0, 7])).tolist() == [0.25] * 4


def test_a_single_zone_has_all_the_weight() -> None:
    for row in ([1.0, 2.0], [-1e15, 1e15], [0.0, 0.0]):
        assert attention(vector(1, 1), rows(row)).tolist() == [1.0]
        assert attention(vector(1, 1), rows(row), "cosine").tolist() == [1.0]


def test_no_zone_has_no_weights() -> None:
    for none in (np.empty((0, 2), np.float32), np.array([], np.float32)):
        assert attention(vector(1, 2), none).shape == (0,)
        assert fuse(vector(1, 2), none).tolist() == [1.0, 2.0]


def test_an_inner_product_of_ln_3_is_a_sigmoid_of_three_quarters() -> None:
    wide = np.array([math.log(3), 0.0])
    weights = attention(wide, np.array([[1.0, 5.0], [0.0, 1.0], [-1.0, 2.0]]))
    powers = np.exp([0.75, 0.5, 0.25])
    np.testing.assert_allclose(weights, powers / powers.sum(), rtol=1e-15)


def test_cosine_sees_the_angle_alone() -> None:
    local, shared = vector(3, 4), rows([6, 8], [-3, -4], [4, -3])
    powers = np.exp([1 / (1 + 1 / E), 1 / (1 + E), 0.5])
    np.testing.assert_allclose(attention(local, shared, "cosine"), powers / powers.sum(), rtol=1e-15)
    scaled = shared * vector(2, 0.25, 1024)[:, None]
    assert attention(8 * local, scaled, "cosine").tolist() == attention(local, shared, "cosine").tolist()
    assert attention(8 * local, scaled).tolist() != attention(local, shared).tolist()


def test_zero_gradients_are_neither_alike_nor_unlike() -> None:
    for similarity in SIMILARITIES:
        assert attention(vector(0, 0), rows([1, 2], [-3, 0], [0, 0], [9, 9]), similarity).tolist() == [0.25] * 4
        with_zero = attention(vector(1, 0), rows([0, 0], [0, 1]), similarity)
        assert with_zero.tolist() == [0.5, 0.5]


def test_huge_inner_products_saturate_the_sigmoid_without_overflow() -> None:
    weights = attention(vector(1e15), rows([1e15], [-1e15]))  # ± 1e30
    np.testing.assert_allclose(weights, [E / (E + 1), 1 / (E + 1)], rtol=1e-15)
    largest = float(np.finfo(np.float32).max)
    np.testing.assert_allclose(attention(vector(largest), rows([largest], [-largest])), weights, rtol=1e-15)


def test_inner_products_are_summed_in_float64() -> None:
    # In float32 the products would overflow, and their difference be NaN.
    assert attention(vector(1e20, 1e20), rows([1e20, -1e20], [0, 0])).tolist() == [0.5, 0.5]


def test_the_direction_is_the_local_gradient_plus_the_weighted_shared_ones() -> None:
    assert fuse(vector(1, 2), rows([10, 20])).tolist() == [11.0, 22.0]
    assert fuse(vector(1, 0), rows([0, 4], [0, -2])).tolist() == [1.0, 1.0]
    assert fuse_weighted(vector(1, 2), rows([4, 8], [8, 16]), np.array([0.25, 0.75])).tolist() == [8.0, 16.0]


def test_fusing_sums_in_float64_and_rounds_once() -> None:
    small = 2.0**-24 + 2.0**-30  # half of it, added in float32 twice, would vanish
    assert fuse(vector(1, 0), rows([small, 0], [small, 0])).tolist() == [1 + 2.0**-23, 0.0]


def test_a_norm_is_computed_in_float64() -> None:
    assert norm(vector(3, 4)) == 5.0
    assert norm(vector(3e30, 4e30)) == pytest.approx(5e30, rel=1e-7)
    assert norm(vector()) == 0.0


# Properties


@given(gradients, st.sampled_from(SIMILARITIES))
def test_weights_sum_to_one_and_none_is_more_than_e_times_another(
    given_: tuple[Rows, Rows], similarity: Similarity
) -> None:
    local, shared = given_
    weights = attention(local, shared, similarity)
    assert weights.dtype == np.float64
    assert weights.shape == (len(shared),)
    if len(shared):
        assert abs(weights.sum() - 1) < 1e-14
        assert weights.max() <= weights.min() * E * (1 + 1e-14)  # a softmax of numbers in [0, 1]


@given(gradients, st.permutations(range(6)))
def test_the_order_of_rows_permutes_the_weights(given_: tuple[Rows, Rows], places: list[int]) -> None:
    local, shared = given_
    order = np.array([place for place in places if place < len(shared)], int)
    np.testing.assert_allclose(attention(local, shared[order]), attention(local, shared)[order], rtol=1e-14)


@given(gradients, st.sampled_from(["<f4", "<f8"]), st.sampled_from(SIMILARITIES))
def test_what_comes_out_is_as_long_and_of_the_type_of_the_local_gradient(
    given_: tuple[Rows, Rows], dtype: str, similarity: Similarity
) -> None:
    local, shared = given_[0].astype(dtype), given_[1].astype(dtype)
    before = local.copy(), shared.copy()
    direction = fuse(local, shared, similarity)
    assert direction.dtype == local.dtype
    assert direction.shape == local.shape
    np.testing.assert_array_equal(local, before[0])
    np.testing.assert_array_equal(shared, before[1])
    assert not np.shares_memory(direction, local)


# The same bits everywhere

PROGRAM = """
import numpy as np
from sgfusion.fusion import attention, fuse
words = np.random.Philox(key=1).random_raw(300_000) >> np.uint64(40)
shared = ((words.astype(np.float64) / 2**23 - 1) / 10).reshape(300, -1).astype(np.float32)
for similarity in ("inner", "cosine"):
    print(attention(shared[0], shared[1:], similarity).tobytes().hex())
    print(hash(fuse(shared[0], shared[1:], similarity).tobytes()))
"""


def printed_with(**environment: str) -> str:
    there = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "0", **environment}
    return subprocess.run([sys.executable, "-c", PROGRAM], env=there, capture_output=True, text=True, check=True).stdout


def test_the_number_of_blas_threads_does_not_matter() -> None:
    one, two = ({"OPENBLAS_NUM_THREADS": n, "OMP_NUM_THREADS": n, "MKL_NUM_THREADS": n} for n in "12")
    assert printed_with(**one) == printed_with(**two)


def test_the_instructions_of_the_processor_do_not_matter() -> None:
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    assert printed_with(NPY_DISABLE_CPU_FEATURES=" ".join(found)) == printed_with()


def test_no_blas_is_called() -> None:
    nodes = list(ast.walk(ast.parse(inspect.getsource(fusion))))
    assert not [node for node in nodes if isinstance(node, ast.MatMult)]
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert not names & {"dot", "vdot", "inner", "matmul", "einsum", "tensordot", "linalg"}


# Refusals


@pytest.mark.parametrize("function", [attention, fuse])
@pytest.mark.parametrize(
    ("local", "shared", "message"),
    [
        (np.zeros(2), np.zeros((1, 3)), r"shapes \(2,\) and \(1, 3\): give \[P\] and \[K, P\]"),
        (np.zeros(2), np.zeros(2), r"shapes \(2,\) and \(2,\)"),
        (np.zeros((1, 2)), np.zeros((1, 2)), r"shapes \(1, 2\)"),
        (np.zeros((1, 2)), np.zeros((0, 2)), r"shapes \(1, 2\)"),
        (np.array([0, np.inf]), np.zeros((1, 2)), "own gradient is inf in places"),
        (np.array([np.nan, 0]), np.zeros((0, 2)), "own gradient is nan in places"),
        (np.zeros(2), np.array([[0, 0], [0, np.nan]]), "shared gradient 1 is not finite: leave that zone out"),
        (np.zeros(2), np.array([[-np.inf, 0], [0, 0]]), "shared gradient 0 is not finite"),
    ],
)
def test_what_cannot_be_fused_is_refused(
    function: object, local: npt.NDArray[np.float64], shared: npt.NDArray[np.float64], message: str
) -> None:
    assert callable(function)
    with pytest.raises(GradientError, match=message):
        function(local, shared)


def test_another_similarity_is_refused_even_if_nobody_was_drawn() -> None:
    with pytest.raises(GradientError, match=r"similarity = 'euclidean': choose 'inner' or 'cosine'"):
        attention(vector(1), rows()[:0], "euclidean")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("local", "shared", "says"),
    [
        (np.ones(2), np.float64(3), r"gradients of shapes \(2,\) and \(\)"),
        (np.full(2, 1e200), np.ones((1, 2)), "own gradient is 1e\\+200"),
        (np.ones(2), np.array([[1.0, 1.0], [1e200, -1e200]]), "shared gradient 1 is not finite"),
    ],
)
def test_what_float32_cannot_hold_is_refused(
    local: npt.NDArray[np.float64], shared: npt.NDArray[np.float64], says: str
) -> None:
    with pytest.raises(GradientError, match=says):
        attention(local, shared)


# The mean over a zone's devices


def test_the_mean_of_devices_by_hand() -> None:
    mean = mean_direction([vector(1, 2), vector(3, -2), vector(5, 3)])
    assert mean.tolist() == [3.0, 1.0]
    assert mean.dtype == np.float32
    assert mean_direction(iter([vector(0.1)])).tolist() == vector(0.1).tolist()


def test_the_mean_is_summed_in_float64_in_the_order_given() -> None:
    values = np.random.Generator(np.random.Philox(key=4)).normal(size=(257, 3)).astype(np.float32)
    values[::7] *= 1e6
    expected = [sum(column) / 257 for column in values.astype(np.float64).T.tolist()]
    assert mean_direction(values).tolist() == vector(*expected).tolist()
    assert mean_direction([vector(2**25), vector(1), vector(-(2**25))]).tolist() == vector(1 / 3).tolist()
    # Float64 too has an end: there the order shows.
    big = vector(2**60)
    assert mean_direction([big, vector(1), -big]).tolist() == [0.0]
    assert mean_direction([big, -big, vector(1)]).tolist() == vector(1 / 3).tolist()


def test_the_mean_leaves_the_devices_directions_as_they_were() -> None:
    narrow, wide = rows([1, 2], [3, 4]), np.array([[1.0, 2.0], [3.0, 4.0]])  # of these, astype must copy
    mean_direction(list(narrow))
    mean_direction(list(wide))
    assert narrow.tolist() == wide.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_the_mean_of_nobody_is_an_error() -> None:
    with pytest.raises(GradientError, match="a zone has at least one device"):
        mean_direction([])


def test_a_mean_that_is_not_finite_comes_through_without_a_warning() -> None:
    largest = float(np.finfo(np.float32).max)
    assert mean_direction([np.array([4 * largest])]).tolist() == [math.inf]
    assert mean_direction([vector(largest), vector(largest)]).tolist() == [largest]
    assert math.isnan(mean_direction([vector(math.nan), vector(1)])[0])
    assert math.isnan(mean_direction([vector(math.inf), vector(-math.inf)])[0])


def test_a_running_mean_is_the_mean_so_far_and_goes_on() -> None:
    mean = RunningMean()
    with pytest.raises(GradientError, match="a zone has at least one device"):
        mean.mean()
    mean.add(vector(1, 2))
    assert mean.mean().tolist() == [1.0, 2.0]
    mean.add(vector(3, -2))
    mean.add(vector(5, 3))
    assert (mean.count, mean.mean().tolist()) == (3, [3.0, 1.0])
    assert mean.mean().dtype == np.float32


@given(arrays(np.float32, st.tuples(st.integers(1, 9), st.integers(1, 5)), elements=st.floats(width=32)), st.booleans())
def test_a_running_mean_has_the_bits_of_a_sum_in_float64_divided_and_rounded_once(many: Rows, wide: bool) -> None:
    given_ = many.astype(np.float64) if wide else many
    with np.errstate(over="ignore", invalid="ignore"):
        total = given_[0].astype(np.float64)
        for row in given_[1:]:
            total = total + row
        expected = (total / len(many)).astype(np.float32)
    np.testing.assert_array_equal(mean_direction(given_), expected)
    assert np.signbit(mean_direction(given_)[expected == 0]).tolist() == np.signbit(expected[expected == 0]).tolist()


def test_a_running_mean_refuses_a_direction_of_another_size() -> None:
    mean = RunningMean()
    mean.add(vector(1, 2))
    with pytest.raises(GradientError, match=r"shape \(1,\) after those of \(2,\)"):
        mean.add(vector(1))
    assert (mean.count, mean.mean().tolist()) == (1, [1.0, 2.0])


def test_a_running_mean_holds_one_wide_buffer_and_makes_no_other() -> None:
    size = 1 << 20
    direction = np.ones(size, np.float32)
    tracemalloc.start()
    try:
        mean = RunningMean()
        for _ in range(3):
            mean.add(direction)
        assert tracemalloc.get_traced_memory()[1] < 8 * size * 1.1  # a float64 buffer
        mean.mean()
        assert tracemalloc.get_traced_memory()[1] < 12 * size * 1.1  # and the float32 mean
    finally:
        tracemalloc.stop()
