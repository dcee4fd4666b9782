# SPDX-License-Identifier: Apache-2.0
"""Instructions that move data between lanes, against loops over lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from redline.sim import crosslane
from redline.sim.crosslane import CROSS_LANE
from redline.sim.op import Op

WAVES = 3
Array = NDArray[Any]


def values(wave: int, seed: int) -> Array:
    generator = np.random.default_rng(seed)
    return generator.integers(0, 1 << 32, (WAVES, wave), np.uint32)


def exec_masks(wave: int) -> Array:
    """Full, sparse, and empty."""
    masks = np.ones((WAVES, wave), np.bool_)
    masks[1] = np.random.default_rng(9).random(wave) < 0.4
    masks[2] = False
    return masks


def column(*numbers: int) -> Array:
    return np.array(numbers, np.uint32).reshape(-1, 1)


@pytest.fixture(params=[32, 64])
def wave(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_readfirstlane_takes_the_lowest_active_lane(wave: int) -> None:
    """And lane 0 of a wave that has none."""
    a, active = values(wave, 1), exec_masks(wave)
    active[0, :5] = False
    wanted = [a[0, 5], a[1, int(np.flatnonzero(active[1])[0])], a[2, 0]]
    got = CROSS_LANE["v_readfirstlane_b32"].fn(a, active=active, wave=wave)
    assert got.tolist() == [[int(v)] for v in wanted]
    scalar = CROSS_LANE["v_readfirstlane_b32"].fn(a[:, :1], active=active, wave=wave)
    assert scalar.tolist() == a[:, :1].tolist()


def test_readlane_counts_modulo_the_wave(wave: int) -> None:
    """Active or not; one lane number a wave, or one for all."""
    a = values(wave, 2)
    got = CROSS_LANE["v_readlane_b32"].fn(a, column(3, wave - 1, wave + 7), wave=wave)
    assert got.tolist() == [[int(a[0, 3])], [int(a[1, wave - 1])], [int(a[2, 7])]]
    got = CROSS_LANE["v_readlane_b32"].fn(a, column(9), wave=wave)
    assert got.tolist() == a[:, 9:10].tolist()


def test_writelane_changes_one_lane(wave: int) -> None:
    """The rest keeps its old value."""
    old = values(wave, 3)
    got = CROSS_LANE["v_writelane_b32"].fn(column(11, 22, 33), column(0, 5, wave + 6), old, wave=wave)
    wanted = old.copy()
    wanted[0, 0], wanted[1, 5], wanted[2, 6] = 11, 22, 33
    assert got.tolist() == wanted.tolist()
    assert CROSS_LANE["v_writelane_b32"].ignores_exec


def test_mbcnt_counts_the_lanes_below(wave: int) -> None:
    """Low and high together give each lane's position among the set bits of a 64-bit mask."""
    low, high, base = values(1, 4), values(1, 5), values(wave, 6)
    first = CROSS_LANE["v_mbcnt_lo_u32_b32"].fn(low, base, wave=wave)
    both = CROSS_LANE["v_mbcnt_hi_u32_b32"].fn(high, first, wave=wave)
    for row in range(WAVES):
        mask = int(low[row, 0]) | int(high[row, 0]) << 32
        for lane in range(wave):
            below = (mask & ((1 << lane) - 1)).bit_count()
            only_low = (mask & ((1 << min(lane, 32)) - 1)).bit_count()
            assert int(first[row, lane]) == (int(base[row, lane]) + only_low) % (1 << 32)
            assert int(both[row, lane]) == (int(base[row, lane]) + below) % (1 << 32)


def lane_from_nibbles(low: int, high: int, lane: int, other_row: bool) -> int:
    nibble = ((high << 32 | low) >> 4 * (lane % 16)) & 15
    row = lane // 16 ^ 1 if other_row else lane // 16
    return row * 16 + nibble


def fetched(row: int, lane: int, a: Array, old: Array, active: Array, op_sel: tuple[int, int], at: int) -> int:
    """The permlane rule for one lane: `at` is the destination, `lane` the source."""
    if active[row, lane] or op_sel[0]:
        return int(a[row, lane])
    return 0 if op_sel[1] else int(old[row, at])


@pytest.mark.parametrize("op_sel", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("name", ["v_permlane16_b32", "v_permlanex16_b32"])
def test_permlane_by_nibbles(wave: int, name: str, op_sel: tuple[int, int]) -> None:
    """The same row of 16, or the other one of the pair; inactive sources by FI and BC."""
    a, old, active = values(wave, 7), values(wave, 8), exec_masks(wave)
    low, high = values(1, 9), values(1, 10)
    got = CROSS_LANE[name].fn(a, low, high, old, active=active, wave=wave, op_sel=op_sel)
    for row in range(WAVES):
        for lane in range(wave):
            source = lane_from_nibbles(int(low[row, 0]), int(high[row, 0]), lane, "x16" in name)
            assert int(got[row, lane]) == fetched(row, source, a, old, active, op_sel, lane)


@pytest.mark.parametrize("op_sel", [(0, 0), (1, 0), (0, 1)])
@pytest.mark.parametrize("name", ["v_permlane16_var_b32", "v_permlanex16_var_b32"])
def test_permlane_by_each_lane_own_choice(wave: int, name: str, op_sel: tuple[int, int]) -> None:
    """gfx12: the low four bits of the second source."""
    a, old, active, choice = values(wave, 11), values(wave, 12), exec_masks(wave), values(wave, 13)
    got = CROSS_LANE[name].fn(a, choice, old, active=active, wave=wave, op_sel=op_sel)
    for row in range(WAVES):
        for lane in range(wave):
            source = (lane // 16 ^ ("x16" in name)) * 16 + int(choice[row, lane]) % 16
            assert int(got[row, lane]) == fetched(row, source, a, old, active, op_sel, lane)


def test_permlane64_exchanges_the_halves(wave: int) -> None:
    """In a wave32 it does nothing."""
    a, old = values(wave, 14), values(wave, 15)
    got = CROSS_LANE["v_permlane64_b32"].fn(a, old, wave=wave)
    wanted = [[int(a[r, (lane + 32) % 64]) for lane in range(64)] for r in range(WAVES)] if wave == 64 else old.tolist()
    assert got.tolist() == wanted


def source_lane(address: int, lane: int, wave: int, halves: bool) -> int:
    return (lane & 32) + address // 4 % 32 if halves else address // 4 % wave


@pytest.mark.parametrize("halves", [True, False])
def test_bpermute_reads_and_permute_sends(wave: int, halves: bool) -> None:
    """Each lane names another by a byte address; inactive readers' sources give 0, the highest sender
    wins."""
    data, address, active = values(wave, 16), values(wave, 17), exec_masks(wave)
    pulled = crosslane.bpermute(address, data, active, wave=wave, halves=halves)
    pushed = crosslane.permute(address, data, active, wave=wave, halves=halves)
    for row in range(WAVES):
        wanted_pull, wanted_push = [0] * wave, [0] * wave
        for lane in range(wave):
            other = source_lane(int(address[row, lane]), lane, wave, halves)
            if active[row, other]:
                wanted_pull[lane] = int(data[row, other])
            if active[row, lane]:
                wanted_push[other] = int(data[row, lane])
        assert pulled[row].tolist() == wanted_pull
        assert pushed[row].tolist() == wanted_push


def test_rows_say_what_the_machine_must_fetch() -> None:
    """Lanes that are not written keep the old value, so it is an operand; readlane and its kin ignore EXEC."""
    assert {name for name, op in CROSS_LANE.items() if op.ignores_exec} == {
        "v_readfirstlane_b32",
        "v_readlane_b32",
        "v_writelane_b32",
    }
    keeps = {name for name in CROSS_LANE if "permlane" in name} | {"v_writelane_b32"}
    assert {name for name, op in CROSS_LANE.items() if op.reads_dst} == keeps


def test_every_cross_lane_entry_is_checked_here() -> None:
    """An instruction added to the table needs a test of its own in this file."""
    with open(__file__, encoding="utf-8") as source:
        text = source.read()
    assert [name for name in CROSS_LANE if f'"{name}"' not in text] == []


@pytest.mark.parametrize(
    "check",
    [
        test_readfirstlane_takes_the_lowest_active_lane,
        test_readlane_counts_modulo_the_wave,
        test_writelane_changes_one_lane,
        test_mbcnt_counts_the_lanes_below,
        test_permlane64_exchanges_the_halves,
        lambda wave: test_permlane_by_nibbles(wave, "v_permlane16_b32", (0, 0)),
        lambda wave: test_permlane_by_nibbles(wave, "v_permlanex16_b32", (0, 0)),
        lambda wave: test_permlane_by_each_lane_own_choice(wave, "v_permlane16_var_b32", (0, 0)),
        lambda wave: test_permlane_by_each_lane_own_choice(wave, "v_permlanex16_var_b32", (0, 0)),
    ],
)
def test_one_wrong_bit_is_noticed(check: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check above fails when every entry of the table has its lowest bit flipped."""
    for name, op in CROSS_LANE.items():
        monkeypatch.setitem(CROSS_LANE, name, _flipped(op))
    with pytest.raises(AssertionError):
        check(64)


def _flipped(op: Op) -> Op:
    def wrong(*sources: Array, **named: Any) -> Array:
        return np.asarray(op.fn(*sources, **named)) ^ np.uint32(1)

    return Op(op.dst, op.src, wrong, op.reads_dst, op.needs, op.saturating, op.ignores_exec)
