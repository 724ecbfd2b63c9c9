import itertools
import zlib
from dataclasses import dataclass

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from sgfusion.errors import TensorError
from sgfusion.proto.v1.tensor_pb2 import DTYPE_FLOAT32, DTYPE_UNSPECIFIED, Dtype, TensorChunk
from sgfusion.wire.codec import CHUNK_BYTES, Assembly, from_chunks, to_chunks

MODEL = "linear/3f9a"


def vector_of(*values: float) -> NDArray[np.float32]:
    return np.array(values, dtype=np.float32)


def chunk_of(data: bytes, *, length: int, offset: int = 0) -> TensorChunk:
    """A chunk made by hand, as a sender that checks nothing would."""
    return TensorChunk(
        dtype=DTYPE_FLOAT32, fingerprint=MODEL, length=length, checksum=zlib.crc32(data), offset=offset, data=data
    )


def received(chunks: list[TensorChunk], length: int) -> NDArray[np.float32]:
    return from_chunks(chunks, fingerprint=MODEL, length=length)


# Tiny exact numbers


def test_two_elements_are_these_bytes() -> None:
    (chunk,) = to_chunks(vector_of(1.0, -2.0), MODEL)
    assert chunk == TensorChunk(
        dtype=DTYPE_FLOAT32,
        fingerprint=MODEL,
        length=2,
        checksum=0xC3872656,
        offset=0,
        data=bytes.fromhex("0000803f 000000c0"),
    )


def test_three_elements_in_chunks_of_two() -> None:
    chunks = list(to_chunks(vector_of(1.0, 2.0, 3.0), MODEL, chunk_bytes=8))
    assert [(chunk.offset, len(chunk.data)) for chunk in chunks] == [(0, 8), (2, 4)]
    assert {(chunk.length, chunk.fingerprint, chunk.checksum) for chunk in chunks} == {(3, MODEL, chunks[0].checksum)}
    vector = received(chunks, 3)
    assert vector.dtype == np.float32
    assert vector.tolist() == [1.0, 2.0, 3.0]


def test_a_chunk_holds_one_mebibyte() -> None:
    vector = np.arange(CHUNK_BYTES // 4 + 1, dtype=np.float32)
    chunks = list(to_chunks(vector, MODEL))
    assert [len(chunk.data) for chunk in chunks] == [1_048_576, 4]
    assert received(chunks, vector.size).tobytes() == vector.tobytes()


def test_chunks_may_differ_in_size() -> None:
    vector = vector_of(1.0, 2.0, 3.0)
    by_one, by_two = (list(to_chunks(vector, MODEL, chunk_bytes=size)) for size in (4, 8))
    assert received([by_two[0], by_one[2]], 3).tolist() == [1.0, 2.0, 3.0]


def test_the_bytes_are_little_endian_whatever_the_order_in_memory() -> None:
    vector = vector_of(1.0, -2.0, 3.5)
    swapped = vector.astype(">f4")  # what np.float32 is on a big-endian host
    assert list(to_chunks(swapped, MODEL)) == list(to_chunks(vector, MODEL))


def test_a_strided_vector_is_sent_as_its_elements() -> None:
    assert received(list(to_chunks(np.arange(6, dtype=np.float32)[::2], MODEL)), 3).tolist() == [0.0, 2.0, 4.0]


@pytest.mark.parametrize("chunk_bytes", [4, 8])
def test_the_received_vector_is_not_the_senders_and_is_sealed(chunk_bytes: int) -> None:
    sent = vector_of(1.0, 2.0)
    vector = received(list(to_chunks(sent, MODEL, chunk_bytes=chunk_bytes)), 2)
    sent[0] = 9.0
    assert vector.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 9.0


# What the sender refuses, at the call and not at the first chunk


@pytest.mark.parametrize(
    ("vector", "says"),
    [
        (np.zeros(2), r"dtype float64, expected float32.*astype"),
        (np.zeros(2, dtype=np.int32), r"dtype int32, expected float32"),
        (np.zeros((2, 3), dtype=np.float32), r"shape \(2, 3\), expected one dimension.*ravel"),
        (np.float32(1.0).reshape(()), r"shape \(\), expected one dimension"),
        (vector_of(), r"vector is empty, expected at least one element"),
        (vector_of(0.0, np.nan), r"element 1 is nan, expected a finite number"),
        (vector_of(0.0, 1.0, -np.inf), r"element 2 is -inf, expected a finite number"),
    ],
)
def test_sender_refuses(vector: NDArray[np.float32], says: str) -> None:
    with pytest.raises(TensorError, match=says):
        to_chunks(vector, MODEL)


def test_sender_names_the_place_in_the_whole_vector() -> None:
    vector = np.zeros(CHUNK_BYTES // 4 + 8, dtype=np.float32)
    vector[CHUNK_BYTES // 4 + 5] = np.inf
    with pytest.raises(TensorError, match="element 262149 is inf"):
        to_chunks(vector, MODEL)


def test_sender_refuses_an_empty_fingerprint() -> None:
    with pytest.raises(TensorError, match="fingerprint is ''"):
        to_chunks(vector_of(1.0), "")


@pytest.mark.parametrize("chunk_bytes", [-4, 0, 3, 6, CHUNK_BYTES + 4])
def test_sender_refuses_chunks_that_no_receiver_takes(chunk_bytes: int) -> None:
    with pytest.raises(TensorError, match=f"chunk_bytes is {chunk_bytes}"):
        to_chunks(vector_of(1.0), MODEL, chunk_bytes=chunk_bytes)


# What the receiver refuses


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("dtype", DTYPE_UNSPECIFIED, "dtype is DTYPE_UNSPECIFIED, expected DTYPE_FLOAT32"),
        ("dtype", 77, r"dtype is unknown \(77\), expected DTYPE_FLOAT32"),
        ("fingerprint", "flights/11", "fingerprint is 'flights/11', expected 'linear/3f9a'"),
        ("fingerprint", "", "fingerprint is '', expected"),
        ("length", 5, "length is 5, expected 4"),
        ("length", 3, "length is 3, expected 4"),
        ("length", 1 << 60, "length is 1152921504606846976, expected 4"),
        ("offset", 3, "offset is 3, expected 2: a chunk is missing or out of order"),
        ("offset", 0, "offset is 0, expected 2: it is repeated or out of order"),
        ("checksum", 1, "checksum is 0x00000001, expected 0x.* another tensor"),
        ("data", b"", "holds 0 bytes, expected a multiple of 4"),
        ("data", bytes(7), "holds 7 bytes, expected a multiple of 4"),
        ("data", bytes(CHUNK_BYTES + 4), "holds 1048580 bytes, expected .* to 1048576"),
        ("data", bytes(12), "ends at element 5, expected at most 4"),
        ("data", vector_of(3.0, np.nan).tobytes(), "element 3 is nan"),
        ("data", vector_of(np.inf, 4.0).tobytes(), "element 2 is inf"),
    ],
)
def test_receiver_refuses_a_second_chunk_and_is_unchanged_by_it(field: str, value: object, says: str) -> None:
    first, second = to_chunks(vector_of(1.0, 2.0, 3.0, 4.0), MODEL, chunk_bytes=8)
    bad = TensorChunk()
    bad.CopyFrom(second)
    setattr(bad, field, value)
    assembly = Assembly(fingerprint=MODEL, length=4)
    assembly.add(first)
    with pytest.raises(TensorError, match=says):
        assembly.add(bad)
    assembly.add(second)
    assert assembly.finish().tolist() == [1.0, 2.0, 3.0, 4.0]


def test_every_dtype_but_float32_is_refused() -> None:
    (chunk,) = to_chunks(vector_of(1.0), MODEL)
    for dtype in set(Dtype.values()) - {DTYPE_FLOAT32}:
        chunk.dtype = dtype
        with pytest.raises(TensorError, match=Dtype.Name(dtype)):
            received([chunk], 1)


def test_a_long_fingerprint_is_not_repeated_in_full() -> None:
    chunks = to_chunks(vector_of(1.0), "x" * 1_000_000)
    with pytest.raises(TensorError, match="fingerprint is 'xxx") as refusal:
        from_chunks(chunks, fingerprint=MODEL, length=1)
    assert len(str(refusal.value)) < 300


def test_an_altered_element_is_refused_by_the_checksum() -> None:
    (chunk,) = to_chunks(vector_of(1.0, -2.0), MODEL)
    chunk.data = vector_of(1.0, 2.0).tobytes()
    with pytest.raises(TensorError, match="expected the sender's 0xc3872656"):
        received([chunk], 2)


def test_a_vector_that_changes_while_it_is_sent_is_refused() -> None:
    vector = vector_of(1.0, 2.0)
    chunks = to_chunks(vector, MODEL, chunk_bytes=4)
    first = next(chunks)
    vector += 1.0
    with pytest.raises(TensorError, match="changed while it was sent"):
        received([first, *chunks], 2)


def test_a_stream_that_ends_early_is_refused() -> None:
    chunks = list(to_chunks(vector_of(1.0, 2.0, 3.0), MODEL, chunk_bytes=4))
    with pytest.raises(TensorError, match="ended after 2 of 3 elements"):
        received(chunks[:2], 3)
    with pytest.raises(TensorError, match="ended after 0 of 3 elements"):
        received([], 3)


def test_a_stream_without_end_is_left_at_the_first_chunk_too_many() -> None:
    endless = (chunk_of(bytes(4), length=2, offset=place) for place in itertools.count())
    with pytest.raises(TensorError, match="ends at element 3, expected at most 2"):
        from_chunks(endless, fingerprint=MODEL, length=2)
    assert next(endless).offset == 3


def test_the_receivers_memory_is_what_it_expects_not_what_the_sender_claims() -> None:
    assembly = Assembly(fingerprint=MODEL, length=2)
    with pytest.raises(TensorError, match="holds more than the tensor has"):
        assembly.add(chunk_of(bytes(CHUNK_BYTES), length=2))
    assembly.add(chunk_of(bytes(8), length=2))
    assert assembly.finish().nbytes == 8


def test_no_tensor_is_empty() -> None:
    with pytest.raises(TensorError, match="expected length is 0"):
        received([chunk_of(b"", length=0)], 0)
    with pytest.raises(TensorError, match="expected length is -1"):
        Assembly(fingerprint=MODEL, length=-1)


def test_receiver_must_name_a_model() -> None:
    with pytest.raises(TensorError, match="fingerprint is ''"):
        Assembly(fingerprint="", length=1)


def test_an_assembly_says_when_it_has_all() -> None:
    assembly = Assembly(fingerprint=MODEL, length=2)
    seen = [assembly.complete]
    for chunk in to_chunks(vector_of(1.0, 2.0), MODEL, chunk_bytes=4):
        assembly.add(chunk)
        seen.append(assembly.complete)
    assert seen == [False, False, True]


# For any vector

finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


@dataclass(frozen=True)
class Sent:
    vector: NDArray[np.float32]
    chunks: list[TensorChunk]


@st.composite
def sent(draw: st.DrawFn, *, at_least: int = 1, whole: bool = False, unique: bool = False) -> Sent:
    """A vector and its chunks, the last one shorter than the others unless `whole`."""
    elements = draw(st.integers(1, 8))
    last = elements if whole else draw(st.integers(1, elements))
    size = elements * (draw(st.integers(at_least, 8)) - 1) + last
    vector = draw(arrays(np.float32, size, elements=finite, unique=unique))
    return Sent(vector, list(to_chunks(vector, MODEL, chunk_bytes=4 * elements)))


def two_places(chunks: list[TensorChunk]) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, len(chunks) - 1), min_size=2, max_size=2, unique=True)


def flipped(content: bytes, bit: int) -> bytes:
    return content[: bit // 8] + bytes([content[bit // 8] ^ 1 << bit % 8]) + content[bit // 8 + 1 :]


@given(
    vector=arrays(np.float32, st.integers(1, 40), elements=finite),
    chunk_bytes=st.integers(1, 50).map(lambda elements: 4 * elements),
)
@example(vector=vector_of(-0.0, 0.0), chunk_bytes=4)
@example(vector=np.array([1, 0x007FFFFF, 0x80000001], dtype="<u4").view("<f4"), chunk_bytes=8)  # subnormal
@example(vector=np.array([0x7F7FFFFF, 0xFF7FFFFF], dtype="<u4").view("<f4"), chunk_bytes=4)  # the largest
def test_what_is_sent_is_received_bit_for_bit(vector: NDArray[np.float32], chunk_bytes: int) -> None:
    wire = [chunk.SerializeToString() for chunk in to_chunks(vector, MODEL, chunk_bytes=chunk_bytes)]
    assert len(wire) == -(-vector.nbytes // chunk_bytes)
    assert received([TensorChunk.FromString(message) for message in wire], vector.size).tobytes() == vector.tobytes()


@given(data=st.data(), tensor=sent())
def test_a_dropped_chunk_is_refused(data: st.DataObject, tensor: Sent) -> None:
    del tensor.chunks[data.draw(st.integers(0, len(tensor.chunks) - 1))]
    with pytest.raises(TensorError, match=r"missing|ended after"):
        received(tensor.chunks, tensor.vector.size)


@given(data=st.data(), tensor=sent())
def test_a_duplicated_chunk_is_refused(data: st.DataObject, tensor: Sent) -> None:
    twice = data.draw(st.sampled_from(tensor.chunks))
    tensor.chunks.insert(data.draw(st.integers(0, len(tensor.chunks))), twice)
    with pytest.raises(TensorError, match="out of order"):
        received(tensor.chunks, tensor.vector.size)


@given(data=st.data(), tensor=sent(at_least=2))
def test_swapped_chunks_are_refused(data: st.DataObject, tensor: Sent) -> None:
    one, other = data.draw(two_places(tensor.chunks))
    tensor.chunks[one], tensor.chunks[other] = tensor.chunks[other], tensor.chunks[one]
    with pytest.raises(TensorError, match="out of order"):
        received(tensor.chunks, tensor.vector.size)


@given(data=st.data(), tensor=sent(at_least=2, whole=True, unique=True))
def test_swapped_content_is_refused(data: st.DataObject, tensor: Sent) -> None:
    one, other = (tensor.chunks[place] for place in data.draw(two_places(tensor.chunks)))
    one.data, other.data = other.data, one.data
    with pytest.raises(TensorError, match="checksum"):
        received(tensor.chunks, tensor.vector.size)


@given(data=st.data(), tensor=sent())
def test_a_flipped_bit_of_the_data_is_refused(data: st.DataObject, tensor: Sent) -> None:
    chunk = data.draw(st.sampled_from(tensor.chunks))
    chunk.data = flipped(chunk.data, data.draw(st.integers(0, 8 * len(chunk.data) - 1)))
    with pytest.raises(TensorError, match=r"checksum|finite"):
        received(tensor.chunks, tensor.vector.size)


@given(data=st.data(), tensor=sent())
def test_a_flipped_bit_anywhere_in_a_message_never_gives_another_vector(data: st.DataObject, tensor: Sent) -> None:
    wire = [chunk.SerializeToString() for chunk in tensor.chunks]
    hit = data.draw(st.integers(0, len(wire) - 1))
    wire[hit] = flipped(wire[hit], data.draw(st.integers(0, 8 * len(wire[hit]) - 1)))
    try:
        vector = received([TensorChunk.FromString(message) for message in wire], tensor.vector.size)
    except (TensorError, DecodeError):
        return
    assert vector.tobytes() == tensor.vector.tobytes()


@given(data=st.data(), tensor=sent(at_least=2))
def test_a_chunk_of_another_vector_of_the_same_model_is_refused(data: st.DataObject, tensor: Sent) -> None:
    vector = data.draw(arrays(np.float32, tensor.vector.size, elements=finite))
    assume(vector.tobytes() != tensor.vector.tobytes())
    strangers = list(to_chunks(vector, MODEL, chunk_bytes=len(tensor.chunks[0].data)))
    place = data.draw(st.integers(0, len(strangers) - 1))
    tensor.chunks[place] = strangers[place]
    with pytest.raises(TensorError, match="another tensor"):
        received(tensor.chunks, tensor.vector.size)
