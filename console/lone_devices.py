"""A note on zones with one device: what others get of such a zone is that device's own."""

from collections.abc import Mapping, Sequence

from simulator.geography import shortened


def lone_devices(devices: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The note, if there are such zones; `devices` are the ids of each zone's."""
    lone = [zone for zone, ids in devices.items() if len(ids) == 1]
    if not lone:
        return ()
    return (
        f"one device alone is in {'zone' if len(lone) == 1 else f'{len(lone)} zones:'} {shortened(lone)}. Other zones"
        " get its gradients as they are, not a mean of several, and the cloud its own histogram, noised unless ε is"
        " off; when it is away, the zone waits (docs/privacy.md)",
    )
