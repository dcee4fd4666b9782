# SPDX-License-Identifier: Apache-2.0
"""Kernel arguments as bytes: scalars of every kind, typed scalars, slots, hidden arguments, layouts from metadata."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import redline as rl
from redline.kernarg import encode, hidden_bytes, scalar_bytes


def _arg(size: int, name: str = "n") -> rl.Argument:
    return rl.Argument(name, 0, size, "by_value")


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@given(data=st.data())
def test_an_int_is_little_endian_of_the_arguments_size(size: int, data: st.DataObject) -> None:
    """Both the signed and the unsigned range are allowed; the bytes are two's complement."""
    value = data.draw(st.integers(-(1 << 8 * size - 1), (1 << 8 * size) - 1))
    signed = value if value < 1 << 8 * size - 1 else value - (1 << 8 * size)
    assert scalar_bytes(_arg(size), value, "here") == signed.to_bytes(size, "little", signed=True)


@pytest.mark.parametrize("value", [-129, 256])
def test_an_int_out_of_range_is_refused(value: int) -> None:
    """The message has the value and the range."""
    with pytest.raises(rl.RecordError, match=rf"{value}; allowed: -2\^7\.\.2\^8-1"):
        scalar_bytes(_arg(1), value, "here")


@pytest.mark.parametrize(("size", "code"), [(2, "<e"), (4, "<f"), (8, "<d")])
def test_a_float_is_ieee_of_the_arguments_size(size: int, code: str) -> None:
    """Half, single and double; NaN and infinity pass, overflow does not."""
    for value in (0.5, -0.0, 1 / 3, float("inf"), float("nan")):
        assert scalar_bytes(_arg(size), value, "here") == struct.pack(code, value)
    if size < 8:
        with pytest.raises(rl.RecordError, match="without overflow"):
            scalar_bytes(_arg(size), 1e300, "here")


def test_a_float_needs_a_size_that_floats_have() -> None:
    """There is no IEEE float of one byte."""
    with pytest.raises(rl.RecordError, match="no IEEE float"):
        scalar_bytes(_arg(1), 1.0, "here")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (rl.f32(1), "0000803f"),
        (rl.f16(1), "003c"),
        (rl.f64(1), "000000000000f03f"),
        (rl.i8(-1), "ff"),
        (rl.i16(-2), "feff"),
        (rl.i32(-2), "feffffff"),
        (rl.i64(-2), "feffffffffffffff"),
        (rl.u8(255), "ff"),
        (rl.u16(65535), "ffff"),
        (rl.u32(1), "01000000"),
        (rl.u64(1), "0100000000000000"),
        (np.float32(1), "0000803f"),
        (np.int16(-2), "feff"),
        (np.array([1, 2], ">u2"), "01000200"),
        (b"\1\2\3", "010203"),
    ],
)
def test_typed_values_are_exactly_their_bytes(value: Any, expected: str) -> None:
    """Typed scalars, numpy scalars and arrays of either byte order, bytes; another size is refused."""
    data = bytes.fromhex(expected)
    assert scalar_bytes(_arg(len(data)), value, "here") == data
    with pytest.raises(rl.RecordError, match="exactly 5 bytes"):
        scalar_bytes(_arg(5), value, "here")


def test_a_numpy_double_is_eight_bytes() -> None:
    """numpy.float64 is a Python float too; it still means exactly its own bytes."""
    assert scalar_bytes(_arg(8), np.float64(0.5), "here") == struct.pack("<d", 0.5)
    with pytest.raises(rl.RecordError, match="8 bytes; allowed: exactly 4"):
        scalar_bytes(_arg(4), np.float64(0.5), "here")


def test_typed_scalars_check_their_value_when_made() -> None:
    """The error is where the value is written down."""
    for make, value in ((rl.i8, 128), (rl.u8, -1), (rl.f32, 1e39), (rl.i32, 1.5), (rl.f32, "1")):
        with pytest.raises(rl.RecordError):
            make(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["two words", "", "1st", None, "\ufb01"])
def test_a_slot_name_is_a_keyword(name: Any) -> None:
    """replay.patch() takes it as one."""
    with pytest.raises(rl.RecordError, match="identifier"):
        rl.slot(name, "f4")


def test_slot_types_and_defaults() -> None:
    """Types are numpy's names; a default is encoded at once."""
    assert rl.slot("s", "f2", default=1).default == bytes.fromhex("003c")
    with pytest.raises(rl.RecordError, match="f2 f4 f8"):
        rl.slot("s", "float")
    with pytest.raises(rl.RecordError, match="int in 0..255"):
        rl.slot("s", "u1", default=256)


def test_numpy_values_patch_slots() -> None:
    """A numpy scalar or one-element array stands for its number."""
    assert encode("i4", np.int64(7), "slot") == encode("i4", np.array([7]), "slot") == struct.pack("<i", 7)
    with pytest.raises(rl.RecordError):
        encode("i4", np.array([1, 2]), "slot")


def _hidden(kind: str, size: int) -> rl.Argument:
    return rl.Argument("", 0, size, f"hidden_{kind}")


@pytest.mark.parametrize(
    ("kind", "size", "expected"),
    [
        ("block_count_x", 4, 3),
        ("block_count_y", 4, 1),
        ("block_count_z", 4, 1),
        ("group_size_x", 2, 256),
        ("group_size_y", 2, 1),
        ("remainder_x", 2, 232),
        ("remainder_y", 2, 0),
        ("global_offset_x", 8, 0),
        ("grid_dims", 2, 1),
        ("dynamic_lds_size", 4, 48),
        ("none", 8, 0),
    ],
)
def test_hidden_arguments_of_a_partial_grid(kind: str, size: int, expected: int) -> None:
    """Case 46: grid 1000, block 256 gives block_count_x 3, group_size_x 256, remainder_x 232, grid_dims 1."""
    data = hidden_bytes(_hidden(kind, size), (1000, 1, 1), (256, 1, 1), 48)
    assert data == expected.to_bytes(size, "little")


def test_block_counts_count_full_groups_only() -> None:
    """LLVM AMDGPUUsage: partial workgroups do not count, so a grid below one workgroup has none."""
    assert hidden_bytes(_hidden("block_count_x", 4), (100, 1, 1), (256, 1, 1), 0) == bytes(4)
    assert hidden_bytes(_hidden("grid_dims", 2), (4, 1, 2), (1, 1, 1), 0) == b"\3\0"


def test_offsets_come_from_the_metadata_never_from_c_rules() -> None:
    """Case 47: a layout with 8-byte strides puts n at 24 because the metadata says so; neighbours are untouched."""
    arguments = (
        rl.Argument("p", 0, 8, "global_buffer"),
        rl.Argument("blob", 8, 12, "by_value"),
        rl.Argument("n", 24, 4, "by_value"),
    )
    from dataclasses import replace

    k = replace(rl.Kernel.synthetic("k"), arguments=arguments, kernarg_bytes=32)
    g = rl.Graph()
    x = g.buffer("x", 16)
    launch = g.launch(k, grid=1, block=1, args=[rl.read(x), b"\xaa" * 12, 0x01020304])
    assert launch.kernarg == bytes(8) + b"\xaa" * 12 + bytes(4) + bytes([4, 3, 2, 1]) + bytes(4)
