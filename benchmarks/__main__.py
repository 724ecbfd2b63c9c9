"""All benchmarks, one after the other, each a command of its own: `make bench`.

With `--quick` each measures as little as it can, to see within minutes whether all of them work here: figures of so
few and short turns are not judged, not kept and not to be quoted. Flower, which would be installed, is left out.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from benchmarks.page_browser import chromium

FULL: dict[str, tuple[str, ...]] = {"hrg": (), "simulator": (), "round": (), "soak": (), "page": ()}
"""By name, with what is said to each: nothing, for all that it measures."""
QUICK_ROUND = ("--turns", "1", "--devices", "4", "--weights", "300", "--flower", "off", "--cluster-turns", "1")
TWO_ZONES = ("--set", "rounds=2", "--set", 'zones.names=["lubelskie","podlaskie"]')
NOT_TO_BE_QUOTED = "Quick: all of it works. Its figures, of turns as few and short as can be, are not to be quoted."


def quick(folder: str) -> dict[str, tuple[str, ...]]:
    """The same, as small as they come; what one of them writes goes to that folder."""
    looks = "1" if chromium() else "0"
    return {
        "hrg": ("--zones", "16", "32", "--no-igraph", "--out", folder),
        "simulator": ("--repeats", "1", "--rounds", "1", "--no-limits"),
        "round": (*QUICK_ROUND, *TWO_ZONES, "--no-limits"),
        "soak": ("--minutes", "0.1", "--zones", "2", "--every", "0.5", "--no-limits"),
        "page": ("--zones", "8", "--viewers", "1", "--seconds", "1", "--turns", "1", "--looks", looks, "--no-limits"),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run them; the exit code is that of the first that fails, and none comes after it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="whether they work, in minutes")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="sgfusion-benchmark-") as folder:
        for name, options in (quick(folder) if given.quick else FULL).items():
            print(f"benchmarks.{name}", flush=True)
            code = subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *options], check=False).returncode  # noqa: S603 (ourselves)
            if code:
                print(f"benchmarks.{name} failed with exit code {code}", file=sys.stderr)
                return code
    if given.quick:
        print(NOT_TO_BE_QUOTED)
    return 0


if __name__ == "__main__":
    sys.exit(main())
