"""Named float32 vectors as a safetensors file, in pieces that are not copied: of a large model every copy counts.

The bytes are those that the safetensors library writes; it makes all of them at once, beside a copy of each vector.
"""

import json
import struct
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]


def pieces(vectors: Mapping[str, Vector], metadata: Mapping[str, str] | None = None) -> Iterator[bytes | memoryview]:
    """The file: its header, then each vector's own memory, in the order of their names."""
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    arrays, end = [], 0
    for name in sorted(vectors):
        array = np.ascontiguousarray(vectors[name], "<f4")
        start, end = end, end + array.nbytes
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [start, end]}
        arrays.append(array)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    yield struct.pack("<Q", len(text)) + text
    for array in arrays:
        yield array.data.cast("B")
