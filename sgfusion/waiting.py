"""What zones wait for at this moment, once that is unusual; and who holds them up, in words for people."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

MOST_NAMED = 3
"""Devices that are named in one sentence."""


@dataclass(frozen=True)
class Waiting:
    """What a zone's round waits for."""

    round: int
    """The one under way, or that is being evaluated."""
    seconds: float
    """So far, when this was said."""
    zones: tuple[int, ...] = ()
    """Drawn zones that have not answered, by number, ascending."""
    devices: tuple[str, ...] = ()
    """Its own devices that have not, the first of them."""
    more_devices: int = 0
    """How many more have not."""


def said_elsewhere(*, overdue: str, left: bool) -> bool:
    """Whether it goes without saying that a zone holds others up: what it waits for itself is told in full, or it has
    left, and nobody waits for it any longer. One that is lost, or has diverged, may still be waited for.
    """
    return bool(overdue) or left


def held_up(
    waiting: Mapping[str, Waiting], names: Mapping[int, str], known: Collection[str] = ()
) -> list[tuple[str, str]]:
    """Who holds others up, the one first that most wait for, and how; `waiting` by zone, `names` by number. Of zones
    that are `known` to be in trouble more is said elsewhere (`said_elsewhere`).
    """
    by_culprit: dict[str, dict[str, Waiting]] = {}
    for zone, wait in waiting.items():
        for number in wait.zones:
            by_culprit.setdefault(names.get(number, str(number)), {})[zone] = wait
    own = {zone: wait for zone, wait in waiting.items() if wait.devices}
    culprits = sorted({*by_culprit, *own} - set(known), key=lambda who: (-len(by_culprit.get(who, ())), who))
    return [(who, "; ".join([*_for_devices(own.get(who)), *_for_it(by_culprit.get(who, {}))])) for who in culprits]


def _for_devices(wait: Waiting | None) -> list[str]:
    if wait is None:
        return []
    more = wait.more_devices + len(wait.devices) - MOST_NAMED
    named = ", ".join(wait.devices[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    which = "its device" if len(wait.devices) + wait.more_devices == 1 else "its devices"
    return [f"round {wait.round} waits {wait.seconds:.0f} s for {which} {named}"]


def _for_it(waiting: Mapping[str, Waiting]) -> list[str]:
    if not waiting:
        return []
    longest = max(wait.seconds for wait in waiting.values())
    if len(waiting) == 1:
        ((zone, wait),) = waiting.items()
        return [f"{zone} waits {longest:.0f} s for it in round {wait.round}"]
    return [f"{len(waiting)} zones wait for it, the longest {longest:.0f} s"]
