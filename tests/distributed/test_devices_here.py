"""What the tests beside this one count on."""

from __future__ import annotations

import jax


def test_eight_devices() -> None:
    assert [device.platform for device in jax.devices()] == ["cpu"] * 8
