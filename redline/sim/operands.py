# SPDX-License-Identifier: Apache-2.0
"""The text of one instruction, taken apart: mnemonic, operands, modifiers; and what a constant's bits are.

Reads LLVM's disassembly as `facts` of its printer: commas separate operands, modifiers follow the last operand after
blanks, `::` joins the halves of a VOPD. Knows registers by their printed names. Knows no instruction: which operand is
read or written, and as which type, is said by the tables (`valu.py`, `salu.py`, `smem.py`, `vmem.py`, `lds.py`).
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from typing import Literal

from .names import normalise, split_suffix
from .op import OPERAND_TYPES

# Columns of the scalar register file. Only the names are architectural; 124 and up are this file's choice.
VCC, TTMP, M0, EXEC, SCALARS = 106, 108, 124, 126, 128

SPECIAL_SCALARS = {
    "vcc": (VCC, 2),
    "vcc_lo": (VCC, 1),
    "vcc_hi": (VCC + 1, 1),
    "exec": (EXEC, 2),
    "exec_lo": (EXEC, 1),
    "exec_hi": (EXEC + 1, 1),
    "m0": (M0, 1),
}

Kind = Literal["v", "s", "const", "null", "scc", "off", "other"]


# 64-bit apertures of flat addresses: what has this high half is LDS, or scratch (which does not exist here). Source:
# Linux 6.12, drivers/gpu/drm/amd/amdkfd/kfd_flat_memory.c, MAKE_LDS_APP_BASE_V9 and MAKE_SCRATCH_APP_BASE_V9.
APERTURES = {"src_shared_base": 1 << 48, "src_private_base": 2 << 48}


class ParseError(ValueError):
    """Text that this file cannot take apart; the compiler turns it into UnsupportedInstruction."""


@dataclass(frozen=True)
class Operand:
    """One printed operand. `first` and `count` are registers; `token` is the text without neg, abs and sext."""

    token: str
    kind: Kind
    first: int = 0
    count: int = 1
    high: bool = False  # v1.h: bits 31:16
    halved: bool = False  # printed as .l or .h
    neg: bool = False
    abs: bool = False
    sext: bool = False


@dataclass(frozen=True)
class Parsed:
    """One instruction (or one half of a VOPD)."""

    text: str
    printed: str  # mnemonic with its suffixes
    name: str  # normalised, see names.py
    suffixes: tuple[str, ...]
    operands: tuple[Operand, ...]
    modifiers: dict[str, str] = field(default_factory=dict)  # `clamp` -> "", `offset:4` -> "4"


_REGISTER = re.compile(r"(v|s|ttmp)(\d+)(\.[lh])?$")
_RANGE = re.compile(r"(v|s|ttmp)\[(\d+):(\d+)\]$")
_NUMBER = re.compile(r"-?(\d+|0x[0-9a-f]+|\d+\.\d+(e[-+]?\d+)?)$")
_LITERAL = re.compile(r"lit\((0x[0-9a-f]+)\)$")


def _split(text: str, separator: str) -> list[str]:
    """Split at a separator that stands outside brackets and parentheses."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "[(") - (char in "])")
        if char == separator and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def parse(text: str) -> tuple[Parsed, ...]:
    """The instructions that one line of disassembly holds: two for a VOPD, else one.

    >>> one, = parse("v_add_f32_e64 v0, -|v1|, s2 clamp")
    >>> one.name, [(o.kind, o.first, o.neg) for o in one.operands], one.modifiers
    ('v_add_f32', [('v', 0, False), ('v', 1, True), ('s', 2, False)], {'clamp': ''})
    """
    return tuple(_parse_one(half.strip()) for half in text.split(" :: "))


def _parse_one(text: str) -> Parsed:
    printed, _, rest = text.partition(" ")
    name, suffixes = normalise(printed), split_suffix(printed)[1]
    parts = _split(rest, ",")
    modifiers: dict[str, str] = {}
    if parts:
        parts[-1], *trailing = _split(parts[-1], " ")
        for item in trailing:
            key, _, value = item.partition(":")
            if key in modifiers:
                raise ParseError(f"modifier {key} is printed twice")
            modifiers[key] = value
    return Parsed(text, printed, name, suffixes, tuple(operand(part) for part in parts), modifiers)


def operand(text: str) -> Operand:
    """One operand with its sign modifiers.

    >>> operand("-|v[2:3]|")
    Operand(token='v[2:3]', kind='v', first=2, count=2, high=False, halved=False, neg=True, abs=True, sext=False)
    """
    token, neg, absolute, sext = text, False, False, False
    if inner := _inside(token, "neg(", ")"):
        token, neg = inner, True
    elif token.startswith("-") and not _NUMBER.match(token):
        token, neg = token[1:], True
    if inner := _inside(token, "sext(", ")"):
        token, sext = inner, True
    if inner := _inside(token, "|", "|"):
        token, absolute = inner, True
    kind, first, count, half = _register(token)
    return Operand(token, kind, first, count, half == ".h", half != "", neg, absolute, sext)


def _inside(text: str, before: str, after: str) -> str:
    if text.startswith(before) and text.endswith(after) and len(text) > len(before) + len(after):
        return text[len(before) : -len(after)]
    return ""


def _register(token: str) -> tuple[Kind, int, int, str]:
    if found := _REGISTER.match(token):
        return _file(found[1], int(found[2]), 1, found[3] or "")
    if found := _RANGE.match(token):
        first, last = int(found[2]), int(found[3])
        if last < first:
            raise ParseError(f"register range {token}")
        return _file(found[1], first, last - first + 1, "")
    if token in SPECIAL_SCALARS:
        return "s", *SPECIAL_SCALARS[token], ""
    if _NUMBER.match(token) or _LITERAL.match(token) or token in APERTURES:
        return "const", 0, 0, ""
    names: dict[str, Kind] = {"null": "null", "scc": "scc", "src_scc": "scc", "off": "off"}
    return names.get(token, "other"), 0, 0, ""


def _file(letter: str, first: int, count: int, half: str) -> tuple[Kind, int, int, str]:
    limit = {"v": 256, "s": VCC, "ttmp": 16}[letter]
    if first + count > limit:
        raise ParseError(f"register {letter}{first}+{count} does not exist")
    if letter == "v":
        return "v", first, count, half
    if half:
        raise ParseError(f"half of a scalar register {letter}{first}{half}")
    return "s", first + (TTMP if letter == "ttmp" else 0), count, ""


# 1/(2 pi) is printed shortened; the bits are the architectural constants.
_INVERSE_TAU = {"0.15915494": (0x3118, 0x3E22F983, 0), "0.15915494309189532": (0, 0, 0x3FC45F306DC9C882)}


def immediate_offset(parsed: Parsed, without_effect: frozenset[str] = frozenset()) -> int:
    """The immediate that a memory instruction adds to its address; 0 when none is printed.

    Every other modifier is refused, but those that change nothing here.
    """
    only_modifiers(parsed, without_effect | {"offset"})
    return integer(parsed.modifiers.get("offset", "0"))


def only_modifiers(parsed: Parsed, allowed: frozenset[str]) -> None:
    if unknown := parsed.modifiers.keys() - allowed:
        raise ParseError(f"modifier {min(unknown)!r}")


def integer(token: str) -> int:
    """The value of an integer token, decimal or hexadecimal.

    >>> integer("-16"), integer("lit(0xffffffff)")
    (-16, 4294967295)
    """
    if found := _LITERAL.match(token):
        return int(found[1], 16)
    try:
        return int(token, 0)
    except ValueError as error:
        raise ParseError(f"{token} is not an integer") from error


def constant_bits(token: str, kind: str) -> int:
    """The bits that a printed constant has for an operand of `kind` (a name of OPERAND_TYPES).

    The same token means other bits for other types: `1.0` is 0x3c00, 0x3f800000 or 0x3ff0000000000000, and `5` in a
    float operand is the bit pattern 5. A literal of a 64-bit float is its high half.

    >>> [hex(constant_bits("1.0", kind)) for kind in ("f16", "f32", "f64")]
    ['0x3c00', '0x3f800000', '0x3ff0000000000000']
    >>> hex(constant_bits("0x3ff80000", "f64")), hex(constant_bits("-1", "f16"))
    ('0x3ff8000000000000', '0xffff')
    """
    width = OPERAND_TYPES[kind].bits
    if token in APERTURES:
        if width != 64:
            raise ParseError(f"{token} in an operand of {width} bits")
        return APERTURES[token]
    if "." in token:
        return _float_bits(token, kind, width)
    value = integer(token)
    if width == 64 and ("x" in token):
        if kind == "f64":
            return value << 32
        return value - (value >> 31 << 32) & (1 << 64) - 1 if kind == "i64" else value
    if width == 16 and value >> 15 == 0x1FFFF:  # true16 text extends the sign of a 16-bit literal to 32 bits
        value &= 0xFFFF
    if value >> width not in (0, -1):
        raise ParseError(f"constant {token} does not fit an operand of {width} bits")
    return value & (1 << width) - 1


def _float_bits(token: str, kind: str, width: int) -> int:
    negative, magnitude = token.startswith("-"), token.lstrip("-")
    if kind in ("u16", "i16", "b16"):
        raise ParseError(f"float constant {token} in a 16-bit integer operand")
    half = kind in ("f16", "pk_f16")
    if magnitude in _INVERSE_TAU:
        bits = _INVERSE_TAU[magnitude][0 if half else width // 32]
        if bits == 0:
            raise ParseError(f"constant {token} in an operand of {width} bits")
    elif half:
        bits = int.from_bytes(struct.pack("<e", float(magnitude)), "little")
    else:
        bits = int.from_bytes(struct.pack("<d" if width == 64 else "<f", float(magnitude)), "little")
    return bits | (1 << (15 if half else width - 1) if negative else 0)
