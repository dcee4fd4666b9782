# SPDX-License-Identifier: Apache-2.0
"""The operations that random programs are made of: the rows of `ir_rows`, one for each choice of types.

What a row promises: the LLVM language reference defines its result for every operand value. Shift counts are
masked, divisors are guarded, no `nsw`, no fast-math flag, no `undef`. Nothing shows the bits of a NaN,
because LLVM leaves them open: bitcasts and copysign replace a NaN first, and minima and maxima get guards whose
reasons stand in `ir_rows`.

Left out, with the reason: `frem` (AMDGPU's expansion may be off by more than fmod), `fmuladd` (free to fuse
or not), exp, log, sin, cos, pow and bare rcp and rsq (approximations).

It does not choose operations or operands; `ir_programs` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from redline_fuzz import ir_rows

INTEGERS = ("i16", "i32", "i64")
FLOATS = ("half", "float", "double")
PAIRS = ("<2 x i16>", "<2 x half>")

BITS = {"i1": 1, "i16": 16, "i32": 32, "i64": 64, "half": 16, "float": 32, "double": 64} | dict.fromkeys(PAIRS, 32)
# How types are called in intrinsic names.
SUFFIX = {"half": "f16", "float": "f32", "double": "f64", "<2 x i16>": "v2i16", "<2 x half>": "v2f16"}
TYPE_OF_SUFFIX = {suffix: kind for kind, suffix in SUFFIX.items()}
SAME_WIDTH = {"half": "i16", "float": "i32", "double": "i64"}
WIDER = {"i16": "i32", "i32": "i64", "i64": "i128"}

FLOAT_WORDS = {
    "half": {"INF": "0xH7C00", "BELOWONE": "0xH3BFF"},
    "float": {"INF": "0x7FF0000000000000", "BELOWONE": "0x3FEFFFFFE0000000"},
    "double": {"INF": "0x7FF0000000000000", "BELOWONE": "0x3FEFFFFFFFFFFFFF"},
}
FLOAT_NUMBERS = {"ZERO": "0.0", "ONE": "1.0", "FOUR": "4.0"}

# How often a row is drawn. Rows that cost tens of machine instructions are drawn less.
USUAL, CONVERSION, COSTLY, RARE = 4, 2, 3, 1

_NAME = re.compile(r"\$([a-z][a-z0-9]*)")
_HEAD = re.compile(r"(\S[^:]*): (.+?) = (.+)")
_CHOICES = re.compile(r"    \$([a-z]) in (.+)")


@dataclass(frozen=True)
class Operation:
    """One row for one choice of types."""

    name: str
    result: str
    operands: tuple[str, ...]
    text: str
    immediates: dict[str, tuple[str, ...]] = field(default_factory=dict)
    weight: int = USUAL

    def render(self, result: str, operands: tuple[str, ...], immediates: dict[str, str]) -> list[str]:
        """IR lines with every `$` name replaced."""
        names = {"r": result} | dict(zip("abc", operands, strict=False)) | immediates
        return [_NAME.sub(lambda found: names[found[1]], line) for line in self.text.splitlines()]


def _rows(table: str, words: dict[str, str], weight: int = USUAL) -> Iterator[Operation]:
    """Operations of one table with its capital words replaced: T and U are types, S and Z their suffixes."""
    words = words | {
        short: SUFFIX.get(words[kind], words[kind]) for short, kind in (("S", "T"), ("Z", "U")) if kind in words
    }
    label = " ".join(words[kind] for kind in ("T", "U") if kind in words)
    pattern = re.compile(r"\b(" + "|".join(words) + r")\b") if words else None
    for chunk in re.split(r"\n(?=\S)", table.strip()):
        filled = pattern.sub(lambda found: words[found[1]], chunk) if pattern else chunk
        # The name keeps its own letters; only what follows it is filled in.
        name = chunk.partition(":")[0]
        yield _row(f"{name} {label}".strip(), name + ":" + filled.partition(":")[2], weight)


def _row(name: str, chunk: str, weight: int) -> Operation:
    head, *lines = chunk.splitlines()
    found = _HEAD.fullmatch(head)
    assert found, head
    kinds = [TYPE_OF_SUFFIX.get(word, word) for word in re.findall(r"<2 x \w+>|\w+", found[3])]
    choices = [_CHOICES.fullmatch(line) for line in lines]
    immediates = {choice[1]: tuple(choice[2].split()) for choice in choices if choice}
    text = [line.strip() for line, choice in zip(lines, choices, strict=True) if not choice]
    return Operation(name, TYPE_OF_SUFFIX.get(found[2], found[2]), tuple(kinds), "\n".join(text), immediates, weight)


def _all() -> Iterator[Operation]:
    for kind in INTEGERS:
        width = BITS[kind]
        words = {"T": kind, "MASK": str(width - 1), "WIDE": WIDER[kind], "W": str(width)}
        yield from _rows(ir_rows.INTEGER, words)
        yield from _rows(ir_rows.LONG_OR if kind == "i64" else ir_rows.INTEGER_OR, words)
        yield from _rows(ir_rows.DIVISION, words, RARE)
        yield from _rows(ir_rows.LANE_INTEGER, {"T": kind})
        for real in FLOATS:
            yield from _rows(ir_rows.CONVERSION, {"T": kind, "U": real}, CONVERSION)
    for kind in FLOATS:
        words = {"T": kind, "I": SAME_WIDTH[kind], **FLOAT_WORDS[kind], **FLOAT_NUMBERS}
        yield from _rows(ir_rows.FLOAT, words)
        yield from _rows(ir_rows.FLOAT_DIVISION, words, COSTLY)
        if kind != "half":
            yield from _rows(ir_rows.FLOAT_SIGN, words)
    for narrow, wide in (("i16", "i32"), ("i16", "i64"), ("i32", "i64")):
        yield from _rows(ir_rows.WIDTH, {"T": narrow, "U": wide})
    for narrow, wide in (("half", "float"), ("half", "double"), ("float", "double")):
        yield from _rows(ir_rows.FLOAT_WIDTH, {"T": narrow, "U": wide})
        if (narrow, wide) != ("half", "float"):
            yield from _rows(ir_rows.FLOAT_NARROWER, {"T": narrow, "U": wide})
    for kind, element, rows in (
        ("<2 x i16>", "i16", ir_rows.PAIR_INTEGER),
        ("<2 x half>", "half", ir_rows.PAIR_FLOAT),
    ):
        yield from _rows(ir_rows.PAIR, {"T": kind, "U": element})
        yield from _rows(rows, {"T": kind})
    yield from _rows(ir_rows.SINGLE, {})


OPERATIONS: dict[str, Operation] = {row.name: row for row in _all()}
