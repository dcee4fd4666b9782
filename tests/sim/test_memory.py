# SPDX-License-Identifier: Apache-2.0
"""The software device's memory: every access checked, whatever its shape."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.sim.allocations import READ_GRANULE
from redline.sim.errors import MemoryFault
from redline.sim.gaps import GUARD_BYTES, WINDOW_BYTES, Gaps
from redline.sim.memory import POISON, Memory


@pytest.fixture(name="memory")
def _memory() -> Iterator[Memory]:
    memory = Memory()
    yield memory
    memory.close()


def u64(*values: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(values, np.uint64)


def test_bytes_come_back_at_every_width_and_alignment(memory: Memory) -> None:
    """What was written is read, for aligned words, odd addresses and wide rows alike."""
    address = memory.allocate(256)
    content = bytes(range(256))
    memory.store(address, content)
    for nbytes in (1, 2, 3, 4, 8, 12, 16, 64):
        for offset in (0, 1, 4, 8, 63):
            rows = memory.read(u64(address + offset, address + offset + 64), nbytes)
            assert rows[0].tobytes() == content[offset : offset + nbytes]
            assert rows[1].tobytes() == content[offset + 64 : offset + 64 + nbytes]


def test_later_rows_win_where_writes_overlap(memory: Memory) -> None:
    """Stores of one instruction to one place leave the last row's bytes, also where they overlap in part."""
    address = memory.allocate(64)
    memory.write(u64(address, address, address), np.array([[1] * 4, [2] * 4, [3] * 4], np.uint8))
    assert memory.bytes_at(address, 4) == b"\3\3\3\3"
    memory.write(u64(address, address + 2), np.array([[4] * 4, [5] * 4], np.uint8))
    assert memory.bytes_at(address, 6) == b"\4\4\5\5\5\5"


@pytest.mark.parametrize("nbytes", [1, 4, 8, 16])
def test_one_byte_outside_faults(memory: Memory, nbytes: int) -> None:
    """The first byte before and after an allocation faults, in one row among good ones, and says where."""
    address = memory.allocate(64, label="x")
    memory.allocate(64, label="y")
    good, past, before = address + 64 - nbytes, address + 64 - nbytes + 1, address - 1
    memory.write(u64(address, good), np.zeros((2, nbytes), np.uint8))
    for bad in (past, before):
        with pytest.raises(MemoryFault) as caught:
            memory.write(u64(good, bad, address), np.zeros((3, nbytes), np.uint8))
        assert (caught.value.address, caught.value.nbytes, caught.value.access) == (bad, nbytes, "write")
    with pytest.raises(MemoryFault, match="starts 3 bytes before the end of 'x', 64 bytes"):
        memory.bytes_at(address + 61, 8)
    with pytest.raises(MemoryFault, match=f"{GUARD_BYTES // 2} bytes past 'x'"):
        memory.read(u64(address + 64 + GUARD_BYTES // 2), 4)


def test_a_row_that_spans_two_allocations_faults(memory: Memory) -> None:
    """Lowest and highest address may both be good, and a row between them in the guard gap."""
    first, second = memory.allocate(64), memory.allocate(64)
    memory.read(u64(first, second), 4)
    with pytest.raises(MemoryFault):
        memory.read(u64(first, first + 64 + 16, second), 4)


def test_reads_may_end_in_the_last_sixteen_bytes_and_writes_may_not(memory: Memory) -> None:
    """LLVM loads four dwords for three where they are aligned; what lies there is poison."""
    address = memory.allocate(12)
    row = memory.read(u64(address), 16)[0]
    assert int.from_bytes(row[12:].tobytes(), "little") == POISON
    assert memory.bytes_at(address, READ_GRANULE) == row.tobytes()
    for fails in (
        lambda: memory.read(u64(address), READ_GRANULE + 1),
        lambda: memory.store(address, bytes(13)),
        lambda: memory.write(u64(address), np.zeros((1, 16), np.uint8)),
    ):
        with pytest.raises(MemoryFault):
            fails()


def test_fresh_and_freed_memory_holds_poison_and_freed_memory_faults(memory: Memory) -> None:
    """Nobody's bytes look like somebody's: not zero, NaN as a float, no address."""
    address = memory.allocate(1 << 16)
    assert memory.u32_at(address) == memory.u32_at(address + 0xFFFC) == POISON
    assert np.isnan(np.array([POISON], np.uint32).view(np.float32)[0])
    assert np.isnan(np.array([POISON] * 2, np.uint32).view(np.float64)[0])
    memory.store(address, bytes(1 << 16))
    memory.free(address)
    with pytest.raises(MemoryFault):
        memory.u32_at(address)
    again = memory.allocate(1 << 16)
    assert again == address
    assert memory.u32_at(again + 0x8000) == POISON


def test_unmapped_memory_is_closed_to_the_device_until_access_is_allowed(memory: Memory) -> None:
    """hsa_amd_agents_allow_access matters here, as it does on hardware."""
    address = memory.allocate(64, label="host", mapped=False)
    for fails in (lambda: memory.read(u64(address), 4), lambda: memory.u32_at(address)):
        with pytest.raises(MemoryFault, match="inside 'host', 64 bytes at .*, which the device has no access to"):
            fails()
    memory.map_for_device(address)
    assert memory.u32_at(address) == POISON


def test_small_allocations_stay_inside_one_window(memory: Memory) -> None:
    """All addresses of an allocation below 4 GiB share their high half, so kernel arguments may elide it."""
    half = WINDOW_BYTES // 2 + 4096
    addresses = [memory.allocate(half) for _ in range(4)]
    for address in addresses:
        assert address // WINDOW_BYTES == (address + half - 1) // WINDOW_BYTES
    with pytest.raises(MemoryError, match="no gap"):
        memory.allocate(1 << 40)


def test_a_closed_memory_serves_the_next_one_cleanly() -> None:
    """The range is reused, the content is not."""
    first = Memory()
    address = first.allocate(4096)
    first.store(address, bytes([7]) * 4096)
    first.close()
    first.close()
    with pytest.raises(MemoryError, match="closed"):
        first.allocate(64)
    second = Memory()
    assert first.find(second.allocate(64)) is None
    second.close()
    second = Memory()
    assert second.allocations == ()
    assert second.u32_at(second.allocate(4096)) == POISON
    second.close()


@given(data=st.data())
def test_checks_agree_with_a_byte_by_byte_table(data: st.DataObject) -> None:
    """Random allocations, frees and accesses against a set of addresses."""
    memory = Memory()
    live: dict[int, int] = {}
    for _ in range(data.draw(st.integers(1, 12), label="allocations")):
        nbytes = data.draw(st.integers(1, 600), label="bytes")
        live[memory.allocate(nbytes, align=2 ** data.draw(st.integers(4, 9)))] = nbytes
        if len(live) > 1 and data.draw(st.booleans(), label="free"):
            gone = data.draw(st.sampled_from(sorted(live)), label="which")
            memory.free(gone)
            del live[gone]
    writable = {address + i for address, nbytes in live.items() for i in range(nbytes)}
    for _ in range(20):
        base = data.draw(st.sampled_from(sorted(live)), label="base")
        address, nbytes = base + data.draw(st.integers(-20, 640)), data.draw(st.sampled_from([1, 2, 4, 8, 16]))
        inside = all(address + i in writable for i in range(nbytes))
        try:
            memory.write(u64(base, address), np.zeros((2, nbytes), np.uint8))
            faulted = False
        except MemoryFault:
            faulted = True
        assert faulted == (not inside or live[base] < nbytes)
    memory.close()


def test_memory_may_be_freed_while_the_table_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector can end a dropped replay in the middle of an allocation, on the same thread: no dead lock, and
    neither change is lost."""
    memory = Memory()
    first, second, third = (memory.allocate(64) for _ in range(3))
    take = memory._gaps.take

    def collect(nbytes: int, align: int) -> int | None:
        for address in (first, third, first):
            memory.free(address)
        return take(nbytes, align)

    monkeypatch.setattr(memory._gaps, "take", collect)
    fresh = memory.allocate(64)
    monkeypatch.undo()
    assert [row.address for row in memory.allocations] == sorted([second, fresh])
    assert memory.u32_at(fresh) == POISON
    with pytest.raises(ValueError, match="no allocation starts at"):
        memory.free(first)
    memory.close()


def test_ten_thousand_buffers_cost_no_more_each_than_one() -> None:
    """Allocating, mapping, finding and freeing do not look at the other buffers: a table that is copied at each call
    needs half a minute for this."""
    memory, begin = Memory(), time.perf_counter()
    addresses = [memory.allocate(64, align=4096, mapped=False) for _ in range(10_000)]
    for address in addresses:
        memory.map_for_device(address)
    last = memory.find(addresses[-1], 64)
    assert last is not None
    assert last.mapped
    for address in addresses[1::2]:
        memory.free(address)
    addresses[1::2] = [memory.allocate(64, align=4096) for _ in addresses[1::2]]
    assert len({*addresses}) == len(memory.allocations) == 10_000
    columns = np.array(addresses, np.uint64)
    memory.write(columns, np.arange(10_000, dtype=np.uint64)[:, None].view(np.uint8))
    assert memory.read(columns, 8).view(np.uint64)[:, 0].tolist() == list(range(10_000))
    for address in addresses:
        memory.free(address)
    assert memory.allocations == ()
    assert time.perf_counter() - begin < 10
    memory.close()


@given(data=st.data())
def test_gaps_never_overlap_and_grow_together_again(data: st.DataObject) -> None:
    """Each range that is taken has its bytes and its guard for itself; when all are given back, there is one gap."""
    size = 1 << 18
    gaps = Gaps(0, size)
    live: dict[int, int] = {}
    for _ in range(data.draw(st.integers(1, 30), label="steps")):
        if data.draw(st.booleans(), label="give back") and live:
            gone = data.draw(st.sampled_from(sorted(live)), label="which")
            gaps.give_back(gone, live.pop(gone))
            continue
        nbytes, align = data.draw(st.integers(1, 1 << 16)), 1 << data.draw(st.integers(0, 14))
        address = gaps.take(nbytes, align)
        if address is not None:
            assert address % align == 0
            assert address + nbytes + GUARD_BYTES <= size
            for other, bytes_there in live.items():
                assert address + nbytes + GUARD_BYTES <= other or other + bytes_there + GUARD_BYTES <= address
            live[address] = nbytes
    for address, nbytes in live.items():
        gaps.give_back(address, nbytes)
    assert gaps.take(size - GUARD_BYTES, 1) == 0
