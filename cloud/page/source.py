"""What the page is a page of: a run that a cloud serves, or one whose results are in a folder."""

from typing import Literal, Protocol

Kind = Literal["status", "plan", "news", "alone"]


class Source(Protocol):
    """A run to look at. Texts are JSON in the page's words (docs/protocol.md)."""

    @property
    def live(self) -> bool:
        """Whether it may still change."""

    def picture(self) -> str:
        """Everything to draw from scratch, as an object. What `news` gives later may be in it already, but for events:
        who takes both sees each event once, and of all else the latest.
        """

    async def zone(self, name: str) -> str | None:
        """Every round of a zone; None if there is no such zone."""

    async def round(self, number: int) -> str:
        """One round of every zone that has had it."""

    async def changed(self) -> None:
        """Return when there may be news; never, if nothing changes any more."""

    def news(self) -> list[tuple[Kind, str]]:
        """What has changed since this was last asked for."""

    def forget(self) -> None:
        """Nobody looks: what `news` would tell is not kept."""
