from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sgfusion.tensor_file import pieces

VECTORS = st.dictionaries(
    st.text(st.characters(codec="utf-8", exclude_characters='"\\', exclude_categories=["C"]), min_size=1, max_size=8),
    hnp.arrays(np.float32, st.integers(0, 20), elements=st.floats(width=32)),
    min_size=1,
    max_size=4,
)


@given(VECTORS.filter(lambda vectors: "__metadata__" not in vectors), st.booleans())
def test_the_file_is_the_librarys(vectors: Mapping[str, npt.NDArray[np.float32]], said: bool) -> None:
    metadata = {"about": 'é"\\'} if said else None
    assert b"".join(pieces(vectors, metadata)) == safetensors.numpy.save(dict(vectors), metadata)


def test_vectors_are_not_copied() -> None:
    vector = np.ones(1000, np.float32)
    _, piece = pieces({"theta": vector})
    vector[0] = 7
    assert isinstance(piece, memoryview)
    assert np.frombuffer(piece, "<f4")[0] == 7
