"""Which SGFusion this is."""

from functools import cache
from importlib import metadata


@cache
def version() -> str:
    """As it is installed."""
    return metadata.version("sgfusion")
