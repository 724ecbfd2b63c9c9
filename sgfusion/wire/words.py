"""Words for people on the wire: how much is sent of one's own, and what is made of other processes'.

What an edge or a device says ends on an operator's terminal. So it is escaped once, as it comes off the wire: all that
is kept, told or printed of it afterwards stays on its line and moves no cursor.
"""

from sgfusion.wire.log_lines import escaped

LONGEST_TEXT = 1000
"""Characters of a reason: senders cut what is longer, for a round must not go unreported for its words."""
LONGEST_ID = 200
"""Characters of a name: of a device, a kind of refusal, a version, a metric."""


def short(text: str) -> str:
    """As much of a text for people as goes on the wire: one that names zones grows with their number."""
    return text[:LONGEST_TEXT]


def heard(text: str, longest: int = LONGEST_TEXT) -> str:
    """A text of others, escaped. Nobody is refused for what that adds: it is cut, unless it was too long before."""
    if text.isprintable():  # nearly always, and then there is nothing to escape
        return text
    return escaped(text)[: max(longest, len(text))]


def heard_name(name: str) -> str:
    """A name that others gave, escaped likewise."""
    return heard(name, LONGEST_ID)
