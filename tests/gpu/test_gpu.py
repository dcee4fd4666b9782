# SPDX-License-Identifier: Apache-2.0
"""The probes on a real GPU, at full length, and the record of them: `make test-gpu` (REDLINE_DEVICE, default hsa:0)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import redline as rl
from redline.doctor import report
from tests.gpu import probes

pytestmark = pytest.mark.gpu

RECORD = Path("redline-gpu-record.json")


@pytest.fixture(scope="module", name="gpu")
def _gpu() -> Iterator[rl.Device]:
    with rl.open(os.environ.get("REDLINE_DEVICE", "hsa:0")) as device:
        yield device


@pytest.fixture(scope="module", name="record")
def _record(gpu: rl.Device) -> Iterator[probes.Record]:
    """What to send us; written whatever failed."""
    found: probes.Record = {"schema": 1, "device": repr(gpu.agent), "pci_id": gpu.agent.pci_id, "report": report()}
    yield found
    RECORD.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    print(f"record: {RECORD}")


def test_every_form_is_right(gpu: rl.Device, record: probes.Record) -> None:
    """A thousand replays of each."""
    record["forms"] = probes.forms(gpu, 1000)
    assert {name: row for name, row in record["forms"].items() if row["wrong"]} == {}


def test_which_fences_this_card_needs(gpu: rl.Device, record: probes.Record) -> None:
    """Only the whole set must be right; the others are what we want to know."""
    record["necessity"] = probes.necessity(gpu, 2000)
    assert record["necessity"]["nothing"] == 0


def test_the_dispatch_floor(gpu: rl.Device, record: probes.Record) -> None:
    """Measured, not asserted."""
    record["floor"] = probes.floor(gpu, 10_000)
    assert set(record["floor"]) == {"1 launches", "941 launches"}


def test_a_million_replays(gpu: rl.Device, record: probes.Record) -> None:
    """Adds one each time; float32 counts to 2**24 exactly."""
    record["endurance"] = probes.endurance(gpu, 1_000_000)
    assert record["endurance"] == {"replays": 1_000_000, "wrong": 0}
