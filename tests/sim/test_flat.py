# SPDX-License-Identifier: Apache-2.0
"""Flat accesses: lanes whose address lies in the LDS aperture reach their workgroup's LDS, the others memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from redline.sim.errors import MemoryFault, UnsupportedInstruction
from redline.sim.memory import Memory
from redline.sim.operands import ParseError
from tests.sim.machine import Machine

LDS = 1 << 48  # Linux: MAKE_LDS_APP_BASE_V9
LANES = np.arange(32)


@pytest.fixture
def memory() -> Iterator[Memory]:
    device = Memory()
    yield device
    device.close()


def _machine(memory: Memory, target: str = "gfx1100") -> tuple[Machine, int]:
    """Two one-wave workgroups; even lanes point into LDS, odd ones into 256 bytes of memory."""
    machine = Machine(target, waves=2, groups=[0, 1], lds_bytes=512)
    machine.memory = memory
    at = memory.allocate(256)
    memory.store(at, np.arange(64, dtype=np.uint32).tobytes())
    machine.state.lds[:] = np.arange(256, dtype=np.uint32) + 1000
    machine.set_v64(0, np.where(LANES % 2, at + 4 * LANES, LDS + 4 * LANES).astype(np.uint64))
    return machine, at


def test_load(memory: Memory) -> None:
    """Each workgroup sees its own LDS; the offset counts in both spaces; addresses may be overwritten."""
    machine, _ = _machine(memory)
    machine.run("flat_load_b32 v0, v[0:1] offset:8")
    for group in (0, 1):
        want = np.where(LANES % 2, LANES + 2, 1000 + 128 * group + LANES + 2)
        assert machine.state.vector[0, group].tolist() == want.tolist()


def test_narrow_load(memory: Memory) -> None:
    """A byte, and the high half of a register with the low one kept."""
    machine, _ = _machine(memory)
    machine.set_v(2, 0x1234).run("flat_load_u8 v3, v[0:1]", "flat_load_d16_hi_b16 v2, v[0:1]")
    value = np.where(LANES % 2, LANES, 1000 + LANES)
    assert machine.state.vector[3, 0].tolist() == (value & 255).tolist()
    assert machine.state.vector[2, 0].tolist() == (value << 16 | 0x1234).tolist()


def test_store(memory: Memory) -> None:
    machine, at = _machine(memory)
    machine.set_v(2, LANES + 7).run("flat_store_b32 v[0:1], v2")
    assert machine.state.lds[0:32:2].tolist() == (LANES[::2] + 7).tolist()
    assert machine.state.lds[1:32:2].tolist() == (1000 + LANES[1::2]).tolist()
    stored = np.frombuffer(memory.bytes_at(at, 128), np.uint32)
    assert stored.tolist() == np.where(LANES % 2, LANES + 7, LANES).tolist()


def test_atomic(memory: Memory) -> None:
    """Old values come back in both spaces; a lane that is off does nothing."""
    machine, at = _machine(memory)
    machine.front.set_exec(np.broadcast_to(LANES != 5, (2, 32)).copy())
    machine.set_v(2, 1).set_v(3, 9).run("flat_atomic_add_u32 v3, v[0:1], v2 glc")
    old = np.where(LANES % 2, LANES, 1000 + LANES)
    assert machine.state.vector[3, 0].tolist() == np.where(LANES == 5, 9, old).tolist()
    assert machine.state.lds[0:32:2].tolist() == (1001 + LANES[::2]).tolist()
    # Both workgroups add to the same memory, each to its own LDS.
    stored = np.frombuffer(memory.bytes_at(at, 128), np.uint32)
    assert stored.tolist() == np.where((LANES % 2 == 1) & (LANES != 5), LANES + 2, LANES).tolist()


def test_outside(memory: Memory) -> None:
    """An LDS address past the workgroup's bytes faults, and so does a scratch address."""
    machine, _ = _machine(memory)
    with pytest.raises(MemoryFault, match="512 bytes"):
        machine.set_v64(0, LDS + 509).run("flat_load_b32 v2, v[0:1]")
    with pytest.raises(MemoryFault, match="outside every allocation"):
        machine.set_v64(0, 2 * LDS + 4).run("flat_load_b32 v2, v[0:1]")


def test_apertures() -> None:
    """They are 64-bit values; read as anything else they are refused."""
    machine = Machine().run("s_mov_b64 s[2:3], src_shared_base", "s_mov_b64 s[4:5], src_private_base")
    assert machine.state.scalar[0, 2:6].tolist() == [0, 0x10000, 0, 0x20000]
    with pytest.raises((ParseError, UnsupportedInstruction), match="src_shared_base"):
        Machine().run("s_mov_b32 s2, src_shared_base")
    with pytest.raises((ParseError, UnsupportedInstruction), match="src_shared_limit"):
        Machine().run("s_mov_b64 s[2:3], src_shared_limit")


def test_permlane_with_two_bits_of_op_sel() -> None:
    """LLVM 22 prints op_sel:[fi,bc] for v_permlane16_b32, which has three sources."""
    machine = Machine().set_v(1, LANES).set_v(0, 99)
    machine.run("s_mov_b32 s0, 0x33221100", "v_permlane16_b32 v0, v1, s0, s0 op_sel:[1,0]")
    selected = [0, 0, 1, 1, 2, 2, 3, 3] * 2
    assert machine.state.vector[0, 0].tolist() == [lane + row for row in (0, 16) for lane in selected]
