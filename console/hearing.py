"""Whether a cloud that is watched answers: a stream says nothing both of a calm run and of a cloud that is frozen.

So it is asked once it has been quiet for a while. Decided here, without a clock; `looking.py` asks and tells.
"""

QUIET = 2.0
"""Seconds without a word after which the cloud is asked."""
WITHIN = 3.0
"""Seconds for its answer."""


class Hearing:
    """When the cloud was last heard of, and what there is to tell of its silence."""

    def __init__(self, now: float) -> None:
        self._heard = now
        self.silent = False
        """Whether it was asked in vain since."""
        self._news: list[str] = []

    def quiet(self, now: float) -> bool:
        """Whether to ask it."""
        return now - self._heard >= QUIET

    def heard(self, now: float) -> None:
        """It has said something, or answered."""
        if self.silent:
            self._news.append(f"the cloud answers again: nothing was heard of it for {now - self._heard:.0f} s")
        self._heard, self.silent = now, False

    def unanswered(self, now: float) -> None:
        """It was asked in vain."""
        if not self.silent:
            self.silent = True
            self._news.append(self.words(now))

    def words(self, now: float) -> str:
        """That it does not answer; empty if it does."""
        return (
            f"the cloud does not answer: nothing was heard of it for {now - self._heard:.0f} s" if self.silent else ""
        )

    def news(self) -> list[str]:
        """What was not told yet: once when it falls silent, once when it is back."""
        news, self._news = self._news, []
        return news
