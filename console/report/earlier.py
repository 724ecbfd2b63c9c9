"""Tables and figures of an earlier report that this one does not have: of a part run, or of a removed entry."""

import re
from collections.abc import Collection
from pathlib import Path

from sgfusion.durable import fsync_folder

OURS = {
    "tables": re.compile(r"(data|zones|(main|rounds-to-target|zones-won|paired-tests)-.+)\.(csv|md)"),
    "figures": re.compile(
        r"(top-k|epsilon|(learning-curves|draws|dendrogram|probabilistic-dendrogram|histogram)-.+)\.(png|svg)"
    ),
}
"""The names that reports give their files, by folder. Whatever else a user keeps there is not ours to remove."""


def remove_earlier(folder: Path, written: Collection[Path]) -> None:
    """Remove what an earlier report wrote into the results folder's `tables` and `figures`, and this one did not.

    Called last: a kill before it leaves too many files, never too few.
    """
    for name, ours in OURS.items():
        found = [path for path in (folder / name).glob("*") if ours.fullmatch(path.name)]
        # A report writes plain files: a link or a folder of such a name is somebody else's.
        earlier = [path for path in found if path not in written and path.is_file() and not path.is_symlink()]
        for path in earlier:
            path.unlink(missing_ok=True)
        if earlier:
            fsync_folder(folder / name)
