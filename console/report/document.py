"""What a report consists of, before it is HTML or Markdown."""

from dataclasses import dataclass, field
from typing import TypeAlias

from console.formats import file_stem
from console.report.tables import Table


@dataclass(frozen=True)
class Heading:
    """The start of a section."""

    text: str

    @property
    def anchor(self) -> str:
        """Its address within the page."""
        return file_stem(self.text)


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; `kind` is `plain`, `note`, or `warning` for what a reader must not miss."""

    text: str
    kind: str = "plain"


@dataclass(frozen=True)
class Points:
    """A list of sentences."""

    sentences: tuple[str, ...]
    kind: str = "plain"


@dataclass(frozen=True)
class Command:
    """A command to copy, after the words that lead to it."""

    lead: str
    text: str


@dataclass(frozen=True)
class Shown:
    """A table on the page; a long one may be folded."""

    table: Table
    folded: bool = False


@dataclass(frozen=True)
class Picture:
    """A figure on the page, by the stem of its files' names; `files` are their bytes by kind."""

    stem: str
    caption: str
    files: dict[str, bytes] = field(repr=False)


Block: TypeAlias = Heading | Paragraph | Points | Command | Shown | Picture


@dataclass(frozen=True)
class Document:
    """A report."""

    title: str
    subtitle: str
    blocks: tuple[Block, ...]

    @property
    def pictures(self) -> list[Picture]:
        """Its figures."""
        return [block for block in self.blocks if isinstance(block, Picture)]

    @property
    def tables(self) -> list[Table]:
        """Its tables."""
        return [block.table for block in self.blocks if isinstance(block, Shown)]
