"""The edges that a command is given: `--edge ZONE=HOST:PORT`, repeated."""

from collections.abc import Iterable

from sgfusion.errors import InputError


def edges_of(texts: Iterable[str]) -> dict[str, str]:
    """By zone, the addresses that `--edge` gives."""
    found: dict[str, str] = {}
    for text in texts:
        zone, equals, address = text.partition("=")
        if not equals or not zone or not address:
            raise InputError(f"--edge {text!r}: write ZONE=HOST:PORT")
        if found.setdefault(zone, address) != address:
            raise InputError(
                f"--edge {zone}={found[zone]} and --edge {text}: a zone has one edge; leave one of them out"
            )
    return found
