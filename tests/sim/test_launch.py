# SPDX-License-Identifier: Apache-2.0
"""What registers hold at the first instruction, and how a grid becomes waves, for every generation and wave size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from redline.sim.dispatch import Dispatch
from redline.sim.errors import LaunchFault
from redline.sim.generation import GENERATIONS
from redline.sim.launch import resident_batches
from redline.sim.operands import EXEC, TTMP
from redline.sim.state import PATTERN, Waves

RSRC1 = {"gfx10": 0xE0AF0000, "gfx11": 0xE0AF0000, "gfx12": 0xE00F0000}
WORKGROUPS, THREADS = 0x0045, 0x0025


def _start(target: str = "gfx1100", wave: int = 32, **changes: Any) -> list[Waves]:
    """One batch after another. Default: one whole workgroup of 32, x only, two user SGPRs."""
    gen = GENERATIONS[target]
    registers: dict[str, Any] = {
        "entry": 0x1000,
        "rsrc1": RSRC1[gen.name],
        "rsrc2": 2 << 1 | 1 << 7,
        "rsrc3": 0,
        "initiator": WORKGROUPS,
        "user_data": tuple(range(100, 116)),
        "dims": (1, 1, 1),
        "num_thread": (32, 1, 1),
    } | changes
    registers["initiator"] |= 0x8000 if wave == 32 else 0
    return list(resident_batches(Dispatch(**registers), gen))


def _one(target: str = "gfx1100", wave: int = 32, **changes: Any) -> Waves:
    (waves,) = _start(target, wave, **changes)
    return waves


def _lanes_on(waves: Waves) -> list[int]:
    columns = waves.scalar[:, EXEC : EXEC + waves.lanes // 32]
    return [int(count) for count in np.bitwise_count(columns).sum(axis=1)]


@pytest.mark.parametrize("target", ["gfx1010", "gfx1030", "gfx1100", "gfx1151"])
def test_workgroup_ids_follow_the_user_sgprs_before_gfx12(target: str) -> None:
    """Only those that RSRC2 enables, in order."""
    waves = _one(target, dims=(3, 2, 2), rsrc2=6 << 1 | 0b101 << 7)
    assert waves.scalar[:, :6].tolist() == [list(range(100, 106))] * 12
    assert waves.scalar[:, 6].tolist() == [0, 1, 2] * 4  # x
    assert waves.scalar[:, 7].tolist() == [0] * 6 + [1] * 6  # z
    assert set(waves.scalar[:, 8].tolist()) == {PATTERN}


def test_workgroup_ids_are_in_ttmp_registers_on_gfx12() -> None:
    waves = _one("gfx1201", dims=(2, 3, 2), rsrc2=2 << 1 | 0b001 << 7)
    assert waves.scalar[:, TTMP + 9].tolist() == [0, 1] * 6
    assert [divmod(int(value), 1 << 16) for value in waves.scalar[:, TTMP + 7]] == [
        (z, y) for z in range(2) for y in range(3) for _ in range(2)
    ]
    assert set(waves.scalar[:, 2].tolist()) == {PATTERN}


@pytest.mark.parametrize("components", [1, 2, 3])
@pytest.mark.parametrize("target", ["gfx1010", "gfx1100", "gfx1201"])
def test_only_the_work_item_ids_that_the_kernel_asks_for_are_there(target: str, components: int) -> None:
    """An x-only kernel uses v0 without a mask: y bits in it would be wrong addresses."""
    waves = _one(target, num_thread=(8, 4, 2), rsrc2=2 << 1 | components - 1 << 11)
    flat = np.arange(64)
    ids = [flat % 8, flat // 8 % 4, flat // 32][:components]
    if GENERATIONS[target].packed_ids:
        packed = sum(place << (10 * at) for at, place in enumerate(ids))
        assert waves.vector[0].reshape(-1).tolist() == np.asarray(packed).tolist()
        assert set(waves.vector[1].reshape(-1).tolist()) == {PATTERN}
    else:
        for register, place in enumerate(ids):
            assert waves.vector[register].reshape(-1).tolist() == place.tolist()
        assert set(waves.vector[components].reshape(-1).tolist()) == {PATTERN}


@pytest.mark.parametrize("wave", [32, 64])
def test_a_workgroup_fills_waves_and_the_last_may_be_short(wave: int) -> None:
    waves = _one(wave=wave, num_thread=(10, 10, 1), dims=(2, 1, 1))
    lanes = [32, 32, 32, 4] if wave == 32 else [64, 36]
    assert _lanes_on(waves) == lanes * 2
    assert waves.group.tolist() == [0] * len(lanes) + [1] * len(lanes)
    assert waves.alive.tolist() == [len(lanes)] * 2


def test_thread_dimensions_make_the_trailing_workgroups_partial() -> None:
    """Work-items 10 x 3 in workgroups of 8 x 2: four shapes, and waves wholly outside do not start."""
    waves = _one(initiator=THREADS, dims=(10, 3, 1), num_thread=(8, 2, 1), rsrc2=2 << 1 | 1 << 11)
    assert _lanes_on(waves) == [16, 4, 8, 2]
    x, y = waves.vector[0] & 1023, waves.vector[0] >> 10
    assert (x[1, :4].tolist(), y[1, :4].tolist()) == ([0, 1, 0, 1], [0, 0, 1, 1])
    short = _one(initiator=THREADS, dims=(300, 1, 1), num_thread=(256, 1, 1))
    assert _lanes_on(short) == [32] * 8 + [32, 12]


def test_partial_threads_of_workgroup_counts() -> None:
    """PARTIAL_TG_EN: the last workgroup of each dimension has the PARTIAL part of NUM_THREAD."""
    waves = _one(initiator=WORKGROUPS | 2, dims=(3, 1, 1), num_thread=(32, 1, 1), partial=(5, 1, 1))
    assert _lanes_on(waves) == [32, 32, 5]
    with pytest.raises(LaunchFault, match="PARTIAL"):
        _start(initiator=WORKGROUPS | 2, num_thread=(32, 1, 1), partial=(33, 1, 1))


def test_large_grids_run_some_workgroups_at_a_time() -> None:
    """Every workgroup once, in order, never split."""
    batches = _start(dims=(5000, 1, 1), num_thread=(96, 1, 1), rsrc1=RSRC1["gfx11"] | 31)
    assert len(batches) > 1
    ids = np.concatenate([waves.scalar[:, 2] for waves in batches])
    assert ids.tolist() == np.repeat(np.arange(5000), 3).tolist()
    assert all(waves.alive.tolist() == [3] * len(waves.alive) for waves in batches)


def test_a_workgroup_may_have_1024_work_items() -> None:
    assert _lanes_on(_one(num_thread=(16, 8, 8))) == [32] * 32


def test_an_empty_grid_has_no_waves() -> None:
    assert _start(dims=(0, 1, 1)) == []


@pytest.mark.parametrize(("wave", "granule"), [(32, 8), (64, 4)])
def test_registers_are_allocated_by_rsrc1_and_start_as_a_pattern(wave: int, granule: int) -> None:
    waves = _one(wave=wave, rsrc1=RSRC1["gfx11"] | 2, rsrc2=2 << 1 | 3 << 15)
    assert waves.vector.shape == (3 * granule, 1, wave)
    assert set(waves.vector[1:].reshape(-1).tolist()) == {PATTERN}
    assert waves.lds.tolist() == [PATTERN] * 384
    assert waves.scalar[0, 50] == PATTERN


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"rsrc1": 0xE0AC0000}, "FLOAT_MODE"),  # f32 denormals flushed
        ({"rsrc1": 0xE0AF1000}, "FLOAT_MODE"),  # f32 rounds up
        ({"rsrc1": 0xE02F0000}, "RSRC1"),  # IEEE off
        ({"rsrc1": 0xE08F0000}, "RSRC1"),  # DX10_CLAMP off
        ({"rsrc1": 0xE4AF0000}, "FP16_OVFL"),
        ({"rsrc2": 1}, "SCRATCH_EN"),
        ({"rsrc2": 1 << 10}, "TG_SIZE"),
        ({"rsrc2": 3 << 11}, "TIDIG"),
        ({"rsrc2": 17 << 1}, "USER_SGPR"),
        ({"num_thread": (0, 1, 1)}, "NUM_THREAD"),
        ({"num_thread": (1025, 1, 1)}, "NUM_THREAD"),
        ({"num_thread": (32, 32, 2)}, "NUM_THREAD"),
        ({"rsrc1": 0xE0AF003F}, "VGPRS"),
    ],
)
def test_registers_that_the_executor_does_not_implement_are_refused(changes: dict[str, Any], where: str) -> None:
    with pytest.raises(LaunchFault, match=where):
        _start(**changes)


def test_gfx12_has_no_ieee_bits_to_check() -> None:
    """Bits 21 and 23 mean other things there."""
    assert _one("gfx1201", rsrc1=0xE00F0000).vector.shape[0] == 8
    with pytest.raises(LaunchFault):
        _one("gfx1151", rsrc1=0xE00F0000)
