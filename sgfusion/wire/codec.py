"""Flat float32 vectors as `TensorChunk` messages, and back (architecture, The protocol; `tensor.proto`).

Both ends refuse the same vectors, so that a bad one is noticed on the machine that made it, before it travels: empty
ones (no model is without weights, and 0 is what a length that nobody set reads as), NaN and infinity.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sgfusion.errors import TensorError
from sgfusion.proto.v1.tensor_pb2 import DTYPE_FLOAT32, Dtype, TensorChunk

CHUNK_BYTES = 1 << 20
"""The most data in one chunk. A quarter of gRPC's message limit leaves room for what surrounds it."""

Message = TypeVar("Message")
_WIRE = np.dtype("<f4")
_BLOCK = CHUNK_BYTES // _WIRE.itemsize
_NOTHING = np.empty(0, np.float32)
_SHOWN = 80  # characters of a fingerprint that an error repeats: the sender chose them, and a log has to hold them


def to_chunks(
    vector: NDArray[np.float32], fingerprint: str, *, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[TensorChunk]:
    """The chunks of a vector, in order, each made when it is asked for."""

    def alone() -> tuple[TensorChunk, TensorChunk]:
        chunk = TensorChunk()
        return chunk, chunk

    return in_messages(vector, fingerprint, alone, chunk_bytes=chunk_bytes)


def in_messages(
    vector: NDArray[np.float32],
    fingerprint: str,
    message: Callable[[], tuple[Message, TensorChunk]],
    *,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[Message]:
    """`to_chunks` inside other messages: `message` makes one and gives the chunk in it, which is filled in place.

    A chunk that is made alone and then put into a message is copied, and once more if that goes into another one.

    Checks and checksum are done at the call. So a vector that changes while its chunks are still being sent reaches
    the receiver with the wrong checksum and is refused, rather than taken for a mixture of before and after.
    """
    if not _WIRE.itemsize <= chunk_bytes <= CHUNK_BYTES or chunk_bytes % _WIRE.itemsize:
        raise TensorError(f"chunk_bytes is {chunk_bytes}: give a multiple of {_WIRE.itemsize} up to {CHUNK_BYTES}")
    _refuse_empty_fingerprint(fingerprint)
    if vector.dtype.newbyteorder("=") != np.float32:
        raise TensorError(f"vector has dtype {vector.dtype}, expected float32: convert it with .astype(np.float32)")
    if vector.ndim != 1:
        raise TensorError(f"vector has shape {vector.shape}, expected one dimension: flatten it with .ravel()")
    if not vector.size:
        raise TensorError("vector is empty, expected at least one element: a model without weights is not sent")

    values = np.ascontiguousarray(vector, dtype=_WIRE)
    checksum = 0
    # In blocks: each is read from memory once for both passes, and the mask of finite elements stays small.
    for start in range(0, values.size, _BLOCK):
        block = values[start : start + _BLOCK]
        _refuse_not_finite(block, start)
        checksum = zlib.crc32(block.data, checksum)

    def cut() -> Iterator[Message]:
        step = chunk_bytes // _WIRE.itemsize
        for offset in range(0, values.size, step):
            whole, chunk = message()
            chunk.dtype, chunk.fingerprint = DTYPE_FLOAT32, fingerprint
            chunk.length, chunk.checksum, chunk.offset = values.size, checksum, offset
            chunk.data = values[offset : offset + step].tobytes()
            yield whole

    return cut()


def from_chunks(chunks: Iterable[TensorChunk], *, fingerprint: str, length: int) -> NDArray[np.float32]:
    """The vector whose chunks these are, all of them and nothing else; fingerprint and length are what we expect."""
    assembly = Assembly(fingerprint=fingerprint, length=length)
    for chunk in chunks:
        assembly.add(chunk)
    return assembly.finish()


class Assembly:
    """One vector being received, fed a chunk at a time.

    The memory is allocated once, by the length that the receiver expects; nothing the sender says makes it grow. A
    vector in a single chunk is that chunk's own bytes, not copied. A chunk that is refused changes nothing.

    Invariant: the first `_received` elements of `_vector` are the sender's and finite, and `_running` is the CRC-32 of
    their bytes on the wire.
    """

    def __init__(self, *, fingerprint: str, length: int) -> None:
        _refuse_empty_fingerprint(fingerprint)
        if length < 1:
            raise TensorError(f"expected length is {length}: give the model's number of weights, at least 1")
        self._fingerprint = fingerprint
        self._length = length
        self._vector = _NOTHING
        self._received = 0
        self._running = 0
        self._checksum: int | None = None  # the sender's, from the first chunk on

    @property
    def complete(self) -> bool:
        """Whether every element is in, so that the next message of the stream is no longer of this tensor."""
        return self._received == self._length

    def add(self, chunk: TensorChunk) -> None:
        """Takes the next chunk, or refuses it."""
        self._refuse_other_tensor(chunk)
        data = chunk.data  # protobuf copies at each access, so once
        self._refuse_wrong_place(chunk.offset, len(data))
        values = np.frombuffer(data, dtype=_WIRE)
        _refuse_not_finite(values, self._received)

        end = self._received + values.size
        if values.size == self._length:
            self._vector = values.astype(np.float32, copy=False)  # to the host's byte order, if that is another
        else:
            if not self._received:
                self._vector = np.empty(self._length, dtype=np.float32)
            self._vector[self._received : end] = values
        self._received = end
        self._running = zlib.crc32(data, self._running)
        self._checksum = chunk.checksum

    def finish(self) -> NDArray[np.float32]:
        """The vector, once all of it is in and its checksum is the sender's; nobody may write to it."""
        if not self.complete:
            raise TensorError(
                f"tensor ended after {self._received} of {self._length} elements: "
                "the sender stopped or its last chunks were lost; ask for the tensor again"
            )
        if self._running != self._checksum:
            raise TensorError(
                f"checksum of the assembled tensor is {self._running:#010x}, expected the sender's "
                f"{self._checksum:#010x}: it was altered on the way, or changed while it was sent; ask for it again"
            )
        sealed = self._vector[:]  # a view: not a vector of its own that a learner would take for one to remember
        sealed.flags.writeable = False
        return sealed

    def _refuse_other_tensor(self, chunk: TensorChunk) -> None:
        if chunk.dtype != DTYPE_FLOAT32:
            name = Dtype.Name(chunk.dtype) if chunk.dtype in Dtype.values() else f"unknown ({chunk.dtype})"
            raise TensorError(f"chunk's dtype is {name}, expected DTYPE_FLOAT32: send float32 elements and say so")
        if chunk.fingerprint != self._fingerprint:
            raise TensorError(
                f"chunk's fingerprint is {_shown(chunk.fingerprint)}, expected {_shown(self._fingerprint)}: "
                "the two ends hold different models; start both with the same run file and version"
            )
        if chunk.length != self._length:
            raise TensorError(
                f"chunk's tensor length is {chunk.length}, expected {self._length} elements: "
                "send the whole flat vector of this model"
            )
        if self._checksum is not None and chunk.checksum != self._checksum:
            raise TensorError(
                f"chunk's checksum is {chunk.checksum:#010x}, expected {self._checksum:#010x} as in the chunks before: "
                "it is of another tensor; send one tensor after the other"
            )

    def _refuse_wrong_place(self, offset: int, size: int) -> None:
        if not 0 < size <= CHUNK_BYTES or size % _WIRE.itemsize:
            raise TensorError(
                f"chunk holds {size} bytes, expected a multiple of {_WIRE.itemsize} from {_WIRE.itemsize} to "
                f"{CHUNK_BYTES}: cut the tensor into such chunks"
            )
        if offset != self._received:
            fault = (
                "a chunk is missing or out of order" if offset > self._received else "it is repeated or out of order"
            )
            raise TensorError(
                f"chunk's offset is {offset}, expected {self._received}: {fault}; send each chunk once, in order"
            )
        if size // _WIRE.itemsize > self._length - offset:
            raise TensorError(
                f"chunk ends at element {offset + size // _WIRE.itemsize}, expected at most {self._length}: "
                "it holds more than the tensor has; send nothing after the last element"
            )


def _refuse_empty_fingerprint(fingerprint: str) -> None:
    if not fingerprint:
        # A sender that forgot to set it would match.
        raise TensorError("fingerprint is '', expected the model's: an empty one matches whatever set none")


def _refuse_not_finite(values: NDArray[np.float32], start: int) -> None:
    """`start` is the place of the first of these values in the whole vector."""
    finite = np.isfinite(values)
    if not finite.all():
        first = int(finite.argmin())
        raise TensorError(
            f"element {start + first} is {values[first]}, expected a finite number: "
            "the training that made it diverged; lower its learning rate or look at its data"
        )


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
