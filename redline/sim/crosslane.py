# SPDX-License-Identifier: Apache-2.0
"""Data that moves between the lanes of a wave: readlane, writelane, permlane, mbcnt, ds_permute.

Arrays are [wave, lane]; EXEC is a bool array of that shape. A lane that reads an inactive lane gets what
each function says. DPP controls and ds_swizzle patterns belong to the machine, which knows their text.
"""

from __future__ import annotations

import numpy as np

from .op import Array, Mask, Op


def _lanes(a: Array, wave: int) -> Array:
    """[wave, lane] even where a scalar came as one column."""
    return np.broadcast_to(a, (a.shape[0], wave))


def _gather(a: Array, lane: Array) -> Array:
    """Row by row, the elements at the lane numbers given."""
    rows = max(a.shape[0], lane.shape[0])
    lane = np.broadcast_to(lane, (rows, lane.shape[1])).astype(np.intp)
    return np.take_along_axis(np.broadcast_to(a, (rows, a.shape[1])), lane, axis=1)


def read_first_lane(a: Array, *, active: Mask, wave: int) -> Array:
    """The value of the lowest active lane, of lane 0 when none is: one a wave."""
    first = np.argmax(active, axis=1)
    if a.shape[1] == 1 or not first.any():
        return np.broadcast_to(a[:, :1], (active.shape[0], 1))
    return _gather(_lanes(a, wave), first[:, np.newaxis])


def read_lane(a: Array, lane: Array, *, wave: int) -> Array:
    """The value of one lane, active or not; the number counts modulo the wave size."""
    return _gather(_lanes(a, wave), lane & np.uint32(wave - 1))


def write_lane(value: Array, lane: Array, old: Array, *, wave: int) -> Array:
    """The old register with one lane replaced, active or not."""
    here = np.arange(wave) == (lane & np.uint32(wave - 1))
    return np.where(here, value, old)


def count_below_low(mask: Array, base: Array, *, wave: int) -> Array:
    """v_mbcnt_lo: how many of the bits 31:0 below this lane's number are set, added to `base`."""
    lane = np.minimum(np.arange(wave), 32).astype(np.uint64)
    below = ((np.uint64(1) << lane) - np.uint64(1)).astype(np.uint32)
    counted: Array = np.bitwise_count(mask & below).astype(np.uint32) + base
    return counted


def count_below_high(mask: Array, base: Array, *, wave: int) -> Array:
    """v_mbcnt_hi: the same for bits 63:32; lanes below 32 (all of a wave32) count nothing."""
    lane = np.maximum(np.arange(wave) - 32, 0).astype(np.uint32)
    below = (np.uint32(1) << lane) - np.uint32(1)
    counted: Array = np.bitwise_count(mask & below).astype(np.uint32) + base
    return counted


def _fetch(a: Array, lane: Array, old: Array, active: Mask, op_sel: tuple[int, ...]) -> Array:
    """Lanes read with the permlane rules: an active source always; an inactive one when op_sel[0] (FI) is
    set, else 0 when op_sel[1] (BC) is set, else the destination keeps its old value."""
    value = _gather(a, lane)
    if op_sel[0]:
        return value
    missing = np.uint32(0) if op_sel[1] else old
    return np.where(_gather(active, lane), value, missing)


def _selected(low: Array, high: Array, wave: int, other_row: bool) -> Array:
    """Source lanes: sixteen nibbles say which lane of the row of 16; permlanex16 takes the neighbouring
    row."""
    lane = np.arange(wave)
    nibbles = np.where(lane % 16 < 8, low, high) >> (4 * (lane % 8)).astype(np.uint32)
    row = (lane & ~15) ^ (16 if other_row else 0)
    result: Array = row + (nibbles & np.uint32(15)).astype(np.int64)
    return result


def permlane16(
    a: Array, low: Array, high: Array, old: Array, *, active: Mask, wave: int, op_sel: tuple[int, ...]
) -> Array:
    """Any lane of the same row of 16, chosen by two dwords of nibbles."""
    return _fetch(_lanes(a, wave), _selected(low, high, wave, False), old, active, op_sel)


def permlanex16(
    a: Array, low: Array, high: Array, old: Array, *, active: Mask, wave: int, op_sel: tuple[int, ...]
) -> Array:
    """Any lane of the other row of 16 in the same pair of rows."""
    return _fetch(_lanes(a, wave), _selected(low, high, wave, True), old, active, op_sel)


def _own_choice(choice: Array, wave: int, other_row: bool) -> Array:
    row = (np.arange(wave) & ~15) ^ (16 if other_row else 0)
    result: Array = row + (choice & np.uint32(15)).astype(np.int64)
    return result


def permlane16_var(a: Array, choice: Array, old: Array, *, active: Mask, wave: int, op_sel: tuple[int, ...]) -> Array:
    """gfx12: each lane's own second source names the lane of its row."""
    return _fetch(_lanes(a, wave), _own_choice(choice, wave, False), old, active, op_sel)


def permlanex16_var(a: Array, choice: Array, old: Array, *, active: Mask, wave: int, op_sel: tuple[int, ...]) -> Array:
    return _fetch(_lanes(a, wave), _own_choice(choice, wave, True), old, active, op_sel)


def permlane64(a: Array, old: Array, *, wave: int) -> Array:
    """The halves of a wave64 change places, whatever EXEC is at the source; in a wave32 nothing happens."""
    if wave == 32:
        return old
    return np.roll(_lanes(a, wave), 32, axis=1)


def bpermute(address: Array, data: Array, active: Mask, *, wave: int, halves: bool) -> Array:
    """ds_bpermute_b32: each lane reads lane address / 4; 0 from an inactive lane.

    `halves` (gfx10, gfx11): the lane number counts modulo 32 and stays inside the reader's half of a
    wave64. Without it (gfx12) it counts modulo the wave size.
    """
    lane = _lane_of_address(address, wave, halves)
    return np.where(_gather(active, lane), _gather(_lanes(data, wave), lane), np.uint32(0))


def permute(address: Array, data: Array, active: Mask, *, wave: int, halves: bool) -> Array:
    """ds_permute_b32: each active lane sends to lane address / 4; the highest sender wins, 0 where none
    sends."""
    lane = _lane_of_address(address, wave, halves)
    sent = _lanes(data, wave)
    result = np.zeros(active.shape, np.uint32)
    rows = np.arange(active.shape[0])
    for sender in range(wave):  # in order, so that a later sender overwrites an earlier one
        sends = active[:, sender]
        result[rows[sends], lane[sends, sender]] = sent[sends, sender]
    return result


def _lane_of_address(address: Array, wave: int, halves: bool) -> Array:
    lane = (_lanes(address, wave) >> np.uint32(2)).astype(np.int64)
    if not halves:
        return lane % wave
    result: Array = lane % 32 + (np.arange(wave) & 32)
    return result


_PERMLANE_NEEDS = ("active", "wave", "op_sel")

CROSS_LANE: dict[str, Op] = {
    "v_readfirstlane_b32": Op(("s32",), ("b32",), read_first_lane, needs=("active", "wave"), ignores_exec=True),
    "v_readlane_b32": Op(("s32",), ("b32", "s32"), read_lane, needs=("wave",), ignores_exec=True),
    "v_writelane_b32": Op(("b32",), ("s32", "s32"), write_lane, reads_dst=True, needs=("wave",), ignores_exec=True),
    "v_mbcnt_lo_u32_b32": Op(("u32",), ("b32", "u32"), count_below_low, needs=("wave",)),
    "v_mbcnt_hi_u32_b32": Op(("u32",), ("b32", "u32"), count_below_high, needs=("wave",)),
    "v_permlane16_b32": Op(("b32",), ("b32", "s32", "s32"), permlane16, reads_dst=True, needs=_PERMLANE_NEEDS),
    "v_permlanex16_b32": Op(("b32",), ("b32", "s32", "s32"), permlanex16, reads_dst=True, needs=_PERMLANE_NEEDS),
    "v_permlane16_var_b32": Op(("b32",), ("b32", "b32"), permlane16_var, reads_dst=True, needs=_PERMLANE_NEEDS),
    "v_permlanex16_var_b32": Op(("b32",), ("b32", "b32"), permlanex16_var, reads_dst=True, needs=_PERMLANE_NEEDS),
    "v_permlane64_b32": Op(("b32",), ("b32",), permlane64, reads_dst=True, needs=("wave",)),
}
