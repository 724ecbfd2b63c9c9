"""Notes on the data and the run, as every command prints them."""

from collections.abc import Iterable

from rich.console import Console


def tell(notes: Iterable[str], screen: Console) -> None:
    """A line each; names and values of the data stay as they are."""
    for note in notes:
        screen.print(f"note: {note}", highlight=False, markup=False, soft_wrap=True)
