"""Method 2: zone histograms."""

import numpy as np
import pytest

from sgfusion.distance import zone_distances
from sgfusion.histogram import class_edges, label_mass, zone_histogram
from sgfusion.privacy import privatize


def test_a_zone_histogram_is_the_mean_of_what_its_devices_released() -> None:
    """`Y_z = 1/m_z Σ_{u in z} M(Y_u, ε)`, on the edge."""
    devices = [[0, 0, 1], [2], [1, 1, 2, 2, 2]]
    released = np.array([privatize(label_mass(labels, class_edges(3)), epsilon=1.0) for labels in devices])
    zone = zone_histogram(released)
    assert zone.tolist() == [pytest.approx(sum(released[:, b]) / 3, rel=1e-12) for b in range(3)]
    assert zone.sum() == pytest.approx(1, rel=1e-12)


def test_every_device_counts_the_same() -> None:
    """every device counts the same"""
    busy, idle = [0] * 1000, [1]
    released = [
        privatize(label_mass(labels, class_edges(2)), epsilon=1e300) for labels in (busy, idle)
    ]  # hardly noised
    assert zone_histogram(released).tolist() == [0.5, 0.5]
    assert zone_histogram(released[::-1]).tolist() == [0.5, 0.5]


def test_the_cloud_cannot_tell_zones_with_the_same_mean_apart() -> None:
    """The cloud only ever sees `Y_z` and `m_z`."""
    alike = zone_histogram([[0.5, 0.5], [0.5, 0.5]])
    unlike = zone_histogram([[1.0, 0.0], [0.0, 1.0]])
    assert alike.shape == (2,)  # a number a bin: no trace of which device gave what
    assert alike.tolist() == unlike.tolist() == [0.5, 0.5]
    assert zone_distances([alike, unlike, [1.0, 0.0]], "manhattan").tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]


def test_the_order_of_the_devices_changes_nothing_but_rounding() -> None:
    """`Y_z = 1/m_z Σ_{u in z} M(Y_u, ε)`, on the edge."""
    rows = np.random.default_rng(3).dirichlet(np.ones(5), size=20)
    np.testing.assert_allclose(zone_histogram(rows[::-1]), zone_histogram(rows), rtol=1e-12)
