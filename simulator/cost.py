"""What training costs: gradients that devices compute, and bytes that a real deployment would send.

Bytes are those of weights and directions as flat float32, both ways, over every hop: edge to device, and edge to edge
(zone methods) or cloud to edge (methods with central models). Framing and TLS are left out.
"""

from dataclasses import dataclass

FLOAT = 4
"""Bytes of a float32."""
MASS = 8
"""Bytes of a histogram's bin."""


@dataclass
class Cost:
    """A running account for a model of `parameters` weights."""

    parameters: int
    device_gradients: int = 0
    bytes_sent: int = 0

    def gradients(self, devices: int, *, hops: int = 0, passes: int | None = None) -> None:
        """`devices` devices get weights and return a direction, and so do `hops` hops above them.

        `passes` are the gradients that they compute for it: one each, but for local epochs.
        """
        self.device_gradients += devices if passes is None else passes
        self.bytes_sent += (devices + hops) * 2 * FLOAT * self.parameters

    def central(
        self, devices: int, edges: int, models: int, means: int, *, to_device: int, passes: int | None = None
    ) -> None:
        """`models` models go to each edge and `to_device` of them on to each device, which returns one direction.

        Edges return `means` in all: an edge adds up what is of one model, and cannot add up what is of several.
        """
        self.device_gradients += devices if passes is None else passes
        self.bytes_sent += (devices * (to_device + 1) + edges * models + means) * FLOAT * self.parameters

    def histograms(self, devices: int, bins: int) -> None:
        """Each device's label histogram to its edge, and the zone's to the cloud."""
        self.bytes_sent += (devices + 1) * bins * MASS
