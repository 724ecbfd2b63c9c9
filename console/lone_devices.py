"""A note on zones with one device: what others get of such a zone is that device's own, if it is a zone at all."""

from collections.abc import Iterable, Mapping, Sequence

from console.formats import counted
from device.sources.zone_name import meant_zone
from simulator.geography import shortened

BEGINS = "one device alone is in"
"""How the note begins."""
FEW = 20
"""Samples of a zone below which their number is told: it may be a slip of the pen."""


def lone_devices(
    devices: Mapping[str, Sequence[str]], samples: Mapping[str, int], spelt: Sequence[str] = ()
) -> tuple[str, ...]:
    """The note, if there are such zones; `devices` are the ids of each zone's, `samples` how many it has.

    `spelt` are the zones that somebody may have misspelt, where people write their names: no cell is.
    """
    lone = {zone: _aside(zone, samples, spelt) for zone, ids in devices.items() if len(ids) == 1}
    if not lone:
        return ()
    odd_first = sorted(lone, key=lambda zone: "?" not in lone[zone])  # only the first ones are named
    named = shortened([zone + lone[zone] for zone in odd_first])
    return (
        f"{BEGINS} {'zone' if len(lone) == 1 else f'each of {len(lone)} zones:'} {named}. Other zones"
        " get its gradients as they are, not a mean of several, and the cloud its own histogram, noised unless ε is"
        " off; when it is away, the zone waits (docs/privacy.md of the repository)",
    )


def asks_for_names(notes: Iterable[str]) -> bool:
    """Whether the note is among these, and asks which zone a name is meant for."""
    return any(note.startswith(BEGINS) and "is it '" in note for note in notes)


def _aside(zone: str, samples: Mapping[str, int], spelt: Sequence[str]) -> str:
    """In brackets: how many samples, if few, and which zone they may be of. One that has no more is not asked for."""
    size = samples[zone]
    meant = meant_zone(zone, [other for other in spelt if other != zone and samples.get(other, size + 1) > size])
    said = [counted(size, "sample")] if size < FEW else []
    said += [f"is it {meant!r}?"] if meant else []
    return f" ({'; '.join(said)})" if said else ""
