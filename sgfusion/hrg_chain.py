"""One Markov chain over dendrograms: its state, its random numbers and the engine that moves it (method 3)."""

import importlib.util
import sys
from functools import cache
from types import ModuleType
from typing import Literal

import numpy as np
import numpy.typing as npt

from sgfusion import hrg_moves
from sgfusion.errors import MissingDependencyError, ScheduleError, brought_by
from sgfusion.streams import raw_stream, uniforms

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Engine = Literal["numba", "python"]


class Chain:
    """The chain's arrays (see `hrg_moves`), and streams of random numbers of its own.

    Moves and acceptances have a stream each, so the path does not depend on how many moves are made at a time.
    """

    def __init__(self, distances: Floats, seed: int, engine: Engine) -> None:
        nodes = 2 * len(distances) - 1
        self.zones = len(distances)
        self.distances = distances
        self.tree = np.zeros((nodes, 4), np.int64)
        self.best_tree = np.zeros((nodes, 4), np.int64)
        self.best_loss = float("inf")
        self.accepted = 0
        self._moves = _engine(engine)
        self._choices = raw_stream(seed, "hrg moves")
        self._acceptances = raw_stream(seed, "hrg acceptances")
        self._start = raw_stream(seed, "hrg start")
        self._near = np.zeros((nodes, 3))
        self._stack = np.zeros(self.zones + 1, np.int64)
        self._reach = np.empty((nodes, self.zones))
        self._reach[: self.zones] = distances

    def plant(self, merges: Ints) -> None:
        """Put the chain on the tree of `merges`."""
        self._moves.plant(merges, self.tree, self._reach, self._near, self._stack)

    def walk(self, moves: int, temperature: float, *, skips_equal: bool = False) -> int:
        """Make `moves` moves. Returns the one that last improved on the best tree, -1 if none did.

        `skips_equal` leaves out moves among equal zones: they change no loss, but the chain then has another law.
        """
        with np.errstate(over="ignore"):  # a rise of more temperatures than a float holds is not accepted, that is all
            accepted, self.best_loss, improved_at = self._moves.walk(
                self._choices.random_raw(moves),
                uniforms(self._acceptances, moves),
                temperature,
                self.best_loss,
                self.tree,
                self._reach,
                self._near,
                self._stack,
                self.best_tree,
                skips_equal,
            )
        self.accepted += accepted
        return int(improved_at)

    def random_merges(self) -> Ints:
        """A random tree: two nodes at a time, chosen uniformly."""
        nodes, merges = list(range(self.zones)), []
        for i in range(self.zones - 1):
            merges.append([nodes.pop(int(u * len(nodes))) for u in uniforms(self._start, 2)])
            nodes.append(self.zones + i)
        return np.array(merges, np.int64).reshape(-1, 2)

    def average_linkage(self) -> Ints:
        """The tree that always joins the two nearest clusters, equal zones level."""
        return self._linkage(self.distances, level=True)

    def linkage_in_order(self, order: Ints) -> Ints:
        """The same with ties broken as SciPy does for the zones' own numbers; `order` lists those numbers."""
        place = np.argsort(order)
        merges = self._linkage(self.distances[np.ix_(place, place)], level=False)
        return renumber(merges, place)

    def _linkage(self, distances: Floats, *, level: bool) -> Ints:
        merges, scratch = np.zeros((self.zones - 1, 2), np.int64), np.zeros((4, self.zones + 1), np.int64)
        self._moves.average_linkage(distances.copy(), merges, *scratch, level)
        return merges

    def merges(self, tree: Ints) -> Ints:
        """The tree's merges, children before parents: a move keeps the numbers of nodes, not their order."""
        children = tree[:, :2].tolist()
        parents_first, stack = [], [2 * self.zones - 2]
        while stack:
            node = stack.pop()
            if node >= self.zones:
                parents_first.append(node)
                stack.extend(children[node])
        number = {node: self.zones + i for i, node in enumerate(reversed(parents_first))}
        pairs = [[number.get(child, child) for child in children[node]] for node in number]
        return np.array(pairs, np.int64).reshape(-1, 2)


def order_by_distances(distances: Floats) -> Ints:
    """The zones in an order that follows from their distances alone, whatever their numbers.

    Zones are compared by their sorted distances; big-endian bytes of floats >= 0 sort as the floats do. Zones whose
    sorted distances are the same keep the order they have.
    """
    rows = np.sort(distances, axis=1).astype(">f8")
    return np.array(sorted(range(len(rows)), key=lambda zone: rows[zone].tobytes()), np.int64)


def zero_means_equal(distances: Floats) -> bool:
    """Whether zones at distance 0 have the same distances to all others, as they have in every metric."""
    kinds: dict[bytes, int] = {}
    kind = np.array([kinds.setdefault(row.tobytes(), len(kinds)) for row in distances])
    return bool(((distances == 0) <= (kind[:, None] == kind[None, :])).all())


def renumber(merges: Ints, order: Ints) -> Ints:
    """Merges over zones in `order`, as merges over the zones' own numbers."""
    number = np.arange(2 * len(order) - 1)
    number[: len(order)] = order
    return number[merges]


def _engine(name: Engine) -> ModuleType:
    if name == "python":
        return hrg_moves
    if name == "numba":
        return _compiled()
    raise ScheduleError(f"engine = {name!r}: choose 'numba' or 'python'")


@cache
def _compiled() -> ModuleType:
    """A second instance of `hrg_moves` whose functions are compiled, and so call each other's compiled selves."""
    try:
        import numba  # noqa: PLC0415 (importing sgfusion must not pull numba: edges and devices do not have it)
    except ImportError as error:
        raise MissingDependencyError(
            f"the engine 'numba' is not installed: {brought_by('cloud')}; or choose engine='python'"
            " (the same result, a hundred times slower)"
        ) from error
    name = f"{hrg_moves.__name__}_compiled"
    spec = importlib.util.spec_from_file_location(name, hrg_moves.__file__)
    assert spec is not None and spec.loader is not None  # noqa: S101, PT018 (it is the file we have just imported)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # numba's cache looks its functions' module up by name
    spec.loader.exec_module(module)
    for function in hrg_moves.COMPILED:
        plain = getattr(module, function)
        try:
            compiled = numba.njit(plain, cache=True, nogil=True)
        except RuntimeError:  # no folder to keep the cache in, as in a read-only container: compile each time
            compiled = numba.njit(plain, nogil=True)
        setattr(module, function, compiled)
    return module
