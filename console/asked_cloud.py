"""Which cloud a command asks: what is typed wins over what the environment says, and nothing typed is dropped."""

from dataclasses import dataclass
from pathlib import Path

import typer

from sgfusion.errors import InputError

OPTIONS = ("cloud", "certs", "insecure")


def of_environment(context: typer.Context) -> frozenset[str]:
    """Those of the options that nobody typed: the environment has them."""
    sources = {name: context.get_parameter_source(name) for name in OPTIONS}
    # An enumeration of click, or of the copy that newer versions of typer have of it.
    return frozenset(name for name, source in sources.items() if source is not None and source.name == "ENVIRONMENT")


@dataclass(frozen=True)
class AskedCloud:
    """`--cloud`, `--certs` and `--insecure` of a command."""

    cloud: str | None = None
    certs: Path | None = None
    insecure: bool = False
    environment: frozenset[str] = frozenset()
    """Which of them it says."""

    def meant(
        self, *, folder: Path | None = None, edge: str | None = None, looks_at_keys: bool = False
    ) -> "AskedCloud":
        """Without what the environment says of another cluster than was typed; an error if an option would do nothing.

        A results `folder` or an `edge` is asked in place of a cloud. `looks_at_keys`: --certs is of use without one.
        """
        typed = {name for name in OPTIONS if getattr(self, name)} - self.environment
        edge_named = "" if edge is None else f"--edge {edge}"
        instead = edge_named if folder is None else str(folder)
        if instead and "cloud" in typed:
            raise InputError(f"{instead} and --cloud {self.cloud}: each says whom to ask. Give one of them")
        cloud = None if instead else self.cloud
        idle = typed & ({"insecure"} if looks_at_keys else {"certs", "insecure"})
        if cloud is None and idle:
            beside = f", and not with {instead}" if instead else ""
            raise InputError(f"--{min(idle)} goes with --cloud HOST:PORT{beside}")
        others = folder is not None or "insecure" in typed or (cloud is None and not looks_at_keys)
        return AskedCloud(cloud, None if others and "certs" not in typed else self.certs, self.insecure)
