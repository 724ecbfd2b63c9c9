"""Write what the images need, as pyproject.toml has it: one list for pip, the wheelhouse and the images.

`python3 requirements.py DIR` writes DIR/core.txt (what every tier carries), cloud.txt and device.txt (what these add),
experiments.txt (device.txt, and what every data source needs) and build.txt (what builds our own wheel). Only the
standard library: it runs before anything is installed.
"""

import sys
import tomllib
from pathlib import Path


def main(place: Path) -> None:
    """Write one requirements file a group, from the pyproject.toml of the working directory."""
    about = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))
    extras = about["project"]["optional-dependencies"]
    groups = {
        "core": about["project"]["dependencies"],
        "cloud": extras["cloud"],
        "device": extras["device"],
        "experiments": extras["device"] + [each for each in extras["experiments"] if not each.startswith("sgfusion[")],
        "build": about["build-system"]["requires"],
    }
    place.mkdir(parents=True, exist_ok=True)
    for group, requirements in groups.items():
        (place / f"{group}.txt").write_text("".join(f"{each}\n" for each in requirements), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
