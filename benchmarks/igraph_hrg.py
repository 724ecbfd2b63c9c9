"""The hierarchical random graph fit of the igraph C library, called through ctypes, to time ours against.

Only a benchmark uses it. It needs Debian's ``libigraph3`` (igraph 0.10, 64-bit integers); the structures below follow
that version's headers, so any other version counts as not installed. igraph keeps one random number generator and one
error handler for the whole process: fit from one thread at a time.
"""

import ctypes
import ctypes.util
import time
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_int64, c_uint64, c_void_p
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

_SONAME = "libigraph.so.3"
_VERSION = (0, 10)


class _Vector(ctypes.Structure):
    """igraph_vector_int_t and igraph_vector_t: where the elements start, where the memory ends, where they end."""

    _fields_ = (("begin", c_void_p), ("memory_end", c_void_p), ("end", c_void_p))


class _Graph(ctypes.Structure):
    """igraph_t: node count, directedness, the indexed edge list, attributes and cached properties."""

    _fields_ = (
        ("n", c_int64),
        ("directed", c_bool),
        *((name, _Vector) for name in ("from", "to", "oi", "ii", "os", "is")),
        ("attr", c_void_p),
        ("cache", c_void_p),
    )


class _Hrg(ctypes.Structure):
    """igraph_hrg_t: the binary tree, one entry per internal node."""

    _fields_ = tuple((name, _Vector) for name in ("left", "right", "prob", "vertices", "edges"))


@dataclass(frozen=True, slots=True, eq=False)
class IgraphFit:
    """One fit: what it cost, and the tree the walk stood at when it stopped.

    Entry i of ``left`` and ``right`` holds the children of internal node i, 0 being the root. A child c >= 0 is the
    graph's node c; a child c < 0 is internal node -c - 1.
    """

    seconds: float  # CPU time of the fit alone, without building the graph
    left: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]


@cache
def load() -> ctypes.CDLL | None:
    """The library with its functions declared, or None when igraph 0.10 is not installed."""
    try:
        lib = ctypes.CDLL(ctypes.util.find_library("igraph") or _SONAME)
        major, minor = c_int(), c_int()
        lib.igraph_version.argtypes = [POINTER(c_char_p), POINTER(c_int), POINTER(c_int), POINTER(c_int)]
        lib.igraph_version.restype = None
        lib.igraph_version(None, byref(major), byref(minor), None)
    except (OSError, AttributeError):
        return None
    if (major.value, minor.value) != _VERSION:
        return None
    lib.igraph_set_error_handler.argtypes = [c_void_p]
    lib.igraph_set_error_handler.restype = c_void_p
    lib.igraph_strerror.argtypes = [c_int]
    lib.igraph_strerror.restype = c_char_p
    lib.igraph_rng_default.argtypes = []
    lib.igraph_rng_default.restype = c_void_p
    lib.igraph_rng_seed.argtypes = [c_void_p, c_uint64]
    lib.igraph_create.argtypes = [POINTER(_Graph), POINTER(_Vector), c_int64, c_bool]
    lib.igraph_hrg_init.argtypes = [POINTER(_Hrg), c_int64]
    lib.igraph_hrg_fit.argtypes = [POINTER(_Graph), POINTER(_Hrg), c_bool, c_int64]
    for destroy, argument in ((lib.igraph_destroy, _Graph), (lib.igraph_hrg_destroy, _Hrg)):
        destroy.argtypes = [POINTER(argument)]
        destroy.restype = None
    return lib


def available() -> bool:
    """Whether the library can be called here."""
    return load() is not None


def fit_hrg(adjacency: npt.NDArray[np.bool_], seed: int, steps: int = 0) -> IgraphFit:
    """Fits from igraph's random start with `steps` moves, on an undirected graph without loops.

    With no number of moves igraph goes on until it calls the walk settled: it makes 65,536 at a time and stops once
    the mean log-likelihood of two such runs in a row differs by less than 1, so the number of
    moves, and with it the time, varies with the seed.
    """
    lib = load()
    if lib is None:
        raise RuntimeError("igraph 0.10 is not installed: apt-get install libigraph3")
    n = len(adjacency)
    if adjacency.dtype != np.bool_ or adjacency.shape != (n, n) or not np.array_equal(adjacency, adjacency.T):
        raise ValueError("the adjacency must be a square, symmetric boolean matrix")
    if n < 3:
        raise ValueError(f"a walk over dendrograms needs at least 3 nodes, not {n}")
    # igraph's default handler aborts the process; this one prints the reason, cleans up and returns the code.
    lib.igraph_set_error_handler(lib.igraph_error_handler_printignore)
    _check(lib, lib.igraph_rng_seed(lib.igraph_rng_default(), seed))
    ends = np.ascontiguousarray(np.argwhere(np.triu(adjacency, k=1)), dtype=np.int64)  # node, node, node, ...
    stop = ends.ctypes.data + ends.nbytes
    edges = _Vector(ends.ctypes.data, stop, stop)  # igraph copies what this points at
    graph, hrg = _Graph(), _Hrg()
    _check(lib, lib.igraph_create(byref(graph), byref(edges), n, False))  # noqa: FBT003
    try:
        _check(lib, lib.igraph_hrg_init(byref(hrg), n))
        try:
            began = time.process_time()
            code = lib.igraph_hrg_fit(byref(graph), byref(hrg), False, steps)  # noqa: FBT003
            seconds = time.process_time() - began
            _check(lib, code)
            return IgraphFit(seconds, _copied(hrg.left, n - 1), _copied(hrg.right, n - 1))
        finally:
            lib.igraph_hrg_destroy(byref(hrg))
    finally:
        lib.igraph_destroy(byref(graph))


def _check(lib: ctypes.CDLL, code: int) -> None:
    """Raises what igraph's error code means, unless it means success."""
    if code:
        raise RuntimeError(f"igraph: {lib.igraph_strerror(code).decode()}")


def _copied(vector: _Vector, length: int) -> npt.NDArray[np.int64]:
    """The vector's integers in memory of our own."""
    return np.ctypeslib.as_array(ctypes.cast(vector.begin, POINTER(c_int64)), (length,)).copy()
