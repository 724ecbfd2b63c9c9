"""The files that the page is made of, each with a tag by which a browser knows whether it has it already."""

import gzip
import hashlib
import importlib.util
import threading
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sgfusion.errors import MissingDependencyError, brought_by

STATIC = Path(__file__).parent / "static"
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
PLOTLY = "plotly/package_data/plotly.min.js"
_SMALL = 512  # bytes that are not worth packing


@dataclass(frozen=True, eq=False)
class Asset:
    """A file as it is sent."""

    kind: str
    content: bytes
    _packed: list[bytes] = field(default_factory=list, repr=False)
    _packing: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @cached_property
    def tag(self) -> str:
        """Changes with the content."""
        return f'"{hashlib.sha256(self.content).hexdigest()[:24]}"'

    def packed_by(self, level: int) -> bytes | None:
        """By gzip, once, in the time that the level takes; None if that is not worth it."""
        if len(self.content) < _SMALL or not self.kind.startswith(("text/", "application/", "image/svg")):
            return None
        with self._packing:
            if not self._packed:
                self._packed.append(gzip.compress(self.content, level, mtime=0))
        return self._packed[0]


class Assets:
    """All of them by name: a path of a request is looked up and never joined to one of the disk."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._folder = folder
        self._read: dict[str, tuple[tuple[int, int], Asset]] = {}

    def static(self, name: str) -> Asset | None:
        """A file of the page; read again if it has changed."""
        path = next((path for path in self._folder.iterdir() if path.name == name and path.suffix in KINDS), None)
        if path is None or not path.is_file():
            return None
        found = path.stat()
        stamp = (found.st_mtime_ns, found.st_size)
        if self._read.get(name, (None,))[0] != stamp:
            self._read[name] = (stamp, Asset(KINDS[path.suffix], path.read_bytes()))
        return self._read[name][1]

    @cached_property
    def plotly(self) -> Asset:
        """The script that draws, from the package of plotly, which is not imported: that takes a second."""
        return Asset(KINDS[".js"], plotly_path().read_bytes())


def plotly_path() -> Path:
    """Where plotly's package has the script."""
    spec = importlib.util.find_spec("plotly")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(place).parent / PLOTLY
        if path.is_file():
            return path
    raise MissingDependencyError(f"the page draws with plotly, which is not here: {brought_by('cloud')}")
