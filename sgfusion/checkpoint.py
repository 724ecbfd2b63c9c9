"""A zone's state as bytes, and back: safetensors, no pickle (architecture, Faults).

Where the bytes are kept is the edge's matter; that they are the same state, to the bit, or refused, is ours.
"""

import hashlib
import json
from collections.abc import Iterator

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from sgfusion.errors import CheckpointError
from sgfusion.optimiser import OptimiserState
from sgfusion.tensor_file import pieces
from sgfusion.zone_trainer import ZoneState

FORMAT = "sgfusion.zone/1"


def to_pieces(state: ZoneState) -> Iterator[bytes | memoryview]:
    """The state as a safetensors file: the weights, the optimiser's slots, and the rest as metadata."""
    tensors = {"theta": state.theta, **{f"optimiser.{slot}": vector for slot, vector in state.optimiser.slots.items()}}
    about = {
        "format": FORMAT,
        "zone": state.zone,
        "round": state.round,
        "steps": state.optimiser.t,
        "sha256": _digest(tensors, state.zone, state.round, state.optimiser.t),
    }
    return pieces(tensors, {"sgfusion": json.dumps(about)})


def to_bytes(state: ZoneState) -> bytes:
    """`to_pieces` in one."""
    return b"".join(to_pieces(state))


def from_bytes(content: bytes) -> ZoneState:
    """The state of `to_bytes`; anything torn, altered or not a zone's state is refused."""
    try:
        tensors = safetensors.numpy.load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        about = json.loads(header["__metadata__"]["sgfusion"])
        if about["format"] != FORMAT:
            raise CheckpointError(f"format {about['format']!r}: a zone's checkpoint has {FORMAT!r}")
        zone, number, steps = (int(about[key]) for key in ("zone", "round", "steps"))
        if about["sha256"] != _digest(tensors, zone, number, steps):
            raise CheckpointError("the checkpoint's content does not have its checksum: use the previous one")
        if min(zone, number, steps) < 0:
            raise CheckpointError(f"zone {zone}, round {number}, step {steps}: none of them can be negative")
        slots = {name.removeprefix("optimiser."): vector for name, vector in tensors.items() if name != "theta"}
        return ZoneState(zone, number, tensors["theta"], OptimiserState(steps, slots))
    except CheckpointError:
        raise
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise CheckpointError(f"not a zone's checkpoint, or a torn one ({error!r}): use the previous one") from error


def _digest(tensors: dict[str, np.ndarray], *numbers: int) -> str:
    digest = hashlib.sha256(repr(numbers).encode())
    for name in sorted(tensors):
        digest.update(f"\n{name} {tensors[name].dtype} {tensors[name].shape}\n".encode())
        digest.update(np.ascontiguousarray(tensors[name]).data)
    return digest.hexdigest()
