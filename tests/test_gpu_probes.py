# SPDX-License-Identifier: Apache-2.0
"""The probes that users with a GPU run, on the software device and small, so that they are known to work."""

from __future__ import annotations

import numpy as np
import pytest

import redline as rl
from tests.gpu import probes


def test_forms_are_counted_right(device: rl.Device) -> None:
    """None is wrong, and each has a route of its own but for the boundary's entry."""
    found = probes.forms(device, 3)
    assert len(found) == 10
    assert [name for name, row in found.items() if row["wrong"]] == []
    assert len({row["hash"] for row in found.values()}) >= 7


def test_necessity_takes_one_fence_at_a_time(device: rl.Device) -> None:
    """This device has no caches and runs in order: nothing is needed here, and everything is asked."""
    found = probes.necessity(device, 2)
    assert found["nothing"] == 0
    assert {"the drain before position 1", "K at position 1", "V at position 1"} <= set(found)
    assert set(found.values()) == {0}


def test_a_wrong_result_would_be_counted(device: rl.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probes can fail: other numbers are expected than the kernels compute."""
    monkeypatch.setattr(probes, "expected", lambda _values: [np.zeros(1, np.float32)] * 3)
    assert all(row["wrong"] == 3 for row in probes.forms(device, 1).values())


def test_floor_and_endurance_run(device: rl.Device) -> None:
    """Figures of the software device mean nothing; that there are some does."""
    floor = probes.floor(device, 3)
    assert all(0 < row["median_ns"] <= row["p90_ns"] for row in floor.values())
    assert probes.endurance(device, 20) == {"replays": 20, "wrong": 0}
