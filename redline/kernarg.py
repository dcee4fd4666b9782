# SPDX-License-Identifier: Apache-2.0
"""Kernel arguments as bytes: sizes and offsets come from the code object's metadata, values from the launch.

Turns one value into exactly the bytes of its argument, describes slots, and fills the hidden arguments that code object
v5 and v6 kernels read for themselves. Does not know addresses: pointers are 8 zero bytes with a relocation.
"""

from __future__ import annotations

import struct
import unicodedata
import warnings
from dataclasses import dataclass
from typing import Any, Final

from .callsite import callsite
from .errors import RecordError
from .kernel import Argument

#: Type names of slots and typed scalars, as numpy spells them: kind letter and size in bytes.
TYPES: Final = {
    "f2": "<e", "f4": "<f", "f8": "<d",
    "i1": "<b", "i2": "<h", "i4": "<i", "i8": "<q",
    "u1": "<B", "u2": "<H", "u4": "<I", "u8": "<Q",
}  # fmt: skip
_NUMBER: Final = int | float


def slot_bytes(type: str) -> int:
    """Size of a slot type in bytes.

    >>> slot_bytes("f4")
    4
    """
    return int(type[1:])


class ArgumentWarning(UserWarning):
    """A value that is legal but is probably not what was meant."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value whose type is said: `rl.f32(1)` is 1.0 in IEEE single precision, never the bit pattern 1.

    `type` is numpy's name, kind letter and size in bytes. Raises RecordError for a value that the type cannot hold.
    """

    type: str
    value: int | float

    def __post_init__(self) -> None:
        encode(self.type, self.value, f"{self.type} scalar")


@dataclass(frozen=True, slots=True)
class Slot:
    """A named value that can be patched before every submit. One name is one value, however often it is used.

    `default` holds the little-endian bytes of `type`; None means that it must be patched before the first submit.
    """

    name: str
    type: str
    default: bytes | None


def slot(name: str, type: str, *, default: int | float | None = None) -> Slot:
    """Declare a patchable argument: `type` is f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 or u8.

    A type is numpy's name: kind letter and size in bytes. Without a default, submitting before the slot was patched is
    an error. Raises RecordError for a name that is no identifier, another type, or a default that does not fit.
    """
    if not isinstance(name, str) or not name.isidentifier() or unicodedata.normalize("NFKC", name) != name:
        raise RecordError(
            "RL0107",
            where=f"{callsite()} slot",
            seen=f"name {name!r}",
            allowed="a Python identifier, since replay.patch() takes it as a keyword",
            do="choose such a name",
        )
    if not isinstance(type, str) or type not in TYPES:
        raise RecordError(
            "RL0108",
            where=f"{callsite()} slot {name!r}",
            seen=f"type {type!r}",
            allowed=" ".join(TYPES),
            do="use a numpy-style name: kind letter and size in bytes",
        )
    return Slot(name, type, None if default is None else encode(type, default, f"slot {name!r} default"))


def f16(value: float) -> Scalar:
    """IEEE half precision, 2 bytes. Raises RecordError for a value that is no number or overflows it."""
    return Scalar("f2", value)


def f32(value: float) -> Scalar:
    """IEEE single precision, 4 bytes. Raises RecordError for a value that is no number or overflows it."""
    return Scalar("f4", value)


def f64(value: float) -> Scalar:
    """IEEE double precision, 8 bytes. Raises RecordError for a value that is no number or overflows it."""
    return Scalar("f8", value)


def i8(value: int) -> Scalar:
    """Signed, 1 byte. Raises RecordError for a value that is no int of -2**7..2**7-1."""
    return Scalar("i1", value)


def i16(value: int) -> Scalar:
    """Signed, 2 bytes. Raises RecordError for a value that is no int of -2**15..2**15-1."""
    return Scalar("i2", value)


def i32(value: int) -> Scalar:
    """Signed, 4 bytes. Raises RecordError for a value that is no int of -2**31..2**31-1."""
    return Scalar("i4", value)


def i64(value: int) -> Scalar:
    """Signed, 8 bytes. Raises RecordError for a value that is no int of -2**63..2**63-1."""
    return Scalar("i8", value)


def u8(value: int) -> Scalar:
    """Unsigned, 1 byte. Raises RecordError for a value that is no int of 0..2**8-1."""
    return Scalar("u1", value)


def u16(value: int) -> Scalar:
    """Unsigned, 2 bytes. Raises RecordError for a value that is no int of 0..2**16-1."""
    return Scalar("u2", value)


def u32(value: int) -> Scalar:
    """Unsigned, 4 bytes. Raises RecordError for a value that is no int of 0..2**32-1."""
    return Scalar("u4", value)


def u64(value: int) -> Scalar:
    """Unsigned, 8 bytes. Raises RecordError for a value that is no int of 0..2**64-1."""
    return Scalar("u8", value)


def encode(type: str, value: Any, where: str) -> bytes:
    """`value` as the little-endian bytes of `type`; RecordError when it does not fit."""
    number = value.item() if hasattr(value, "item") and getattr(value, "size", 1) == 1 else value
    if type[0] != "f":
        return _encode_int(type, number, where)
    if isinstance(number, _NUMBER) and not isinstance(number, bool):
        try:
            return struct.pack(TYPES[type], number)
        except (OverflowError, struct.error):
            pass
    raise _does_not_fit(where, number, f"a number that {type} can hold without overflow")


def _encode_int(type: str, number: Any, where: str) -> bytes:
    bits = 8 * slot_bytes(type)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if type[0] == "i" else (0, (1 << bits) - 1)
    if isinstance(number, int) and low <= number <= high:
        return struct.pack(TYPES[type], number)
    raise _does_not_fit(where, number, f"an int in {low}..{high} ({type})")


def scalar_bytes(argument: Argument, value: Any, where: str) -> bytes:
    """The bytes of one by-value argument.

    int: little-endian of the argument's size, signed or unsigned range. float: IEEE of that size (2, 4 or 8 bytes).
    Typed scalars, numpy scalars and arrays, bytes: exactly that many bytes. Metadata does not say what is
    a float: an int for a float parameter is its bit pattern.
    """
    place = f"{where}, argument {argument.name or argument.offset!r}"
    if isinstance(value, Scalar):
        return _exact(encode(value.type, value.value, place), argument, place)
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):  # before float: numpy's float64 is one
        return _exact(_numpy_bytes(value, place), argument, place)
    if isinstance(value, bool | int):
        return _plain_int(argument, int(value), place)
    if isinstance(value, float):
        return _plain_float(argument, value, place)
    if isinstance(value, bytes | bytearray | memoryview):
        return _exact(bytes(value), argument, place)
    raise RecordError(
        "RL0110",
        where=place,
        seen=f"{type(value).__name__} {value!r}",
        allowed="int, float, a typed scalar such as rl.f32(1), a numpy scalar or array, bytes, or rl.slot(...)",
        do="pass one of these; pointers are passed with rl.read, rl.write, rl.update or rl.access",
    )


def _plain_int(argument: Argument, value: int, place: str) -> bytes:
    bits = 8 * argument.size
    if not -(1 << bits - 1) <= value < 1 << bits:
        raise _does_not_fit(place, value, f"-2^{bits - 1}..2^{bits}-1, {argument.size} bytes")
    if argument.type_name in ("float", "double", "half", "_Float16"):
        warnings.warn(
            f"{place}: the int {value} for a {argument.type_name} parameter is passed as a bit pattern; "
            f"write rl.f{bits}({value}) for the number",
            ArgumentWarning,
            stacklevel=2,
        )
    return (value & ((1 << bits) - 1)).to_bytes(argument.size, "little")


def _plain_float(argument: Argument, value: float, place: str) -> bytes:
    if argument.size not in (2, 4, 8):
        raise _does_not_fit(place, value, f"{argument.size} bytes, which no IEEE float has")
    return encode(f"f{argument.size}", value, place)


def _numpy_bytes(value: Any, place: str) -> bytes:
    if value.dtype.hasobject:
        raise _does_not_fit(place, value, "numbers, not Python objects")
    little = value.astype(value.dtype.newbyteorder("<"), copy=False)
    return bytes(little.tobytes())


def _exact(data: bytes, argument: Argument, place: str) -> bytes:
    if len(data) != argument.size:
        raise _does_not_fit(place, f"{len(data)} bytes", f"exactly {argument.size} bytes")
    return data


def _does_not_fit(where: str, seen: object, allowed: str) -> RecordError:
    return RecordError(
        "RL0109",
        where=where,
        seen=str(seen),
        allowed=allowed,
        do="pass a value of the argument's size and range",
    )


def hidden_bytes(
    argument: Argument, global_size: tuple[int, int, int], block: tuple[int, int, int], dynamic_lds: int
) -> bytes:
    """What a hidden argument holds for this geometry (LLVM AMDGPUUsage, code object V5 hidden arguments).

    Block counts count full workgroups only; remainders are the work-items of the partial one. Unused dimensions have
    one work-item and one group.
    """
    stem, _, axis = argument.kind.removeprefix("hidden_").rpartition("_")
    at = "xyz".find(axis) if len(axis) == 1 else -1
    value = 0
    if stem == "block_count":
        value = global_size[at] // block[at]
    elif stem == "group_size":
        value = block[at]
    elif stem == "remainder":
        value = global_size[at] % block[at]
    elif argument.kind == "hidden_grid_dims":
        value = grid_dims(global_size)
    elif argument.kind == "hidden_dynamic_lds_size":
        value = dynamic_lds
    return value.to_bytes(argument.size, "little")


def grid_dims(global_size: tuple[int, int, int]) -> int:
    """The number of dimensions in use: 1, 2 or 3."""
    return 3 if global_size[2] > 1 else 2 if global_size[1] > 1 else 1
