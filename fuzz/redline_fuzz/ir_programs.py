# SPDX-License-Identifier: Apache-2.0
"""Random straight-line programs, and the LLVM IR text of their bodies.

A program is a list of steps over typed values: first the inputs, then one value per operation. The same seed
and index give the same program in every process and on every Python: the only source of chance is
`random.Random.random`, whose sequence Python promises to keep.

It does not wrap bodies into kernels or host functions (`ir_modules`), make input data (`ir_inputs`) or run
anything.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from redline_fuzz.ir_inputs import COLUMNS, COLUMNS_OF, SLOT_BYTES, TIED_COLUMNS_OF, ZERO_COLUMN
from redline_fuzz.ir_operations import BITS, FLOATS, INTEGERS, OPERATIONS, PAIRS, Operation

Item = TypeVar("Item")

LEAST_OPERATIONS = 30
MOST_OPERATIONS = 60

# Constants, so that inline constants and literals of every operand type appear. Integers cover the inline range
# -16..64 and both sides of it; floats the inline ones, and 1 / (2 pi), whose text a disassembler rounds.
INTEGER_CONSTANTS = tuple(str(n) for n in (0, 1, -1, -16, -17, 64, 65, 5, 31, 255, -256, 4660, 32767, -32768))
WIDE_CONSTANTS = tuple(str(n) for n in (0x10000, 0x12345678, -0x12345678, (1 << 31) - 1, -1 << 31))
LONG_CONSTANTS = tuple(str(n) for n in (1 << 32, 0x0123456789ABCDEF, -(1 << 32) - 1, (1 << 63) - 1, -1 << 63))
CONSTANTS: dict[str, tuple[str, ...]] = {
    "i1": ("true",),
    "i16": INTEGER_CONSTANTS,
    "i32": INTEGER_CONSTANTS + WIDE_CONSTANTS,
    "i64": INTEGER_CONSTANTS + WIDE_CONSTANTS + LONG_CONSTANTS,
    "half": ("1.0", "-1.0", "0.5", "2.0", "-4.0", "0xH3118", "0xH0001", "0xH7BFF", "0xH4248"),
    "float": ("1.0", "-1.0", "0.5", "2.0", "-4.0", "0x3FC45F3060000000", "0x36A0000000000000", "0x40091EB860000000"),
    "double": ("1.0", "-1.0", "0.5", "2.0", "-4.0", "0x3FC45F306DC9C882", "0x1", "1.5", "0x400921FB54442D18"),
    "<2 x i16>": ("splat (i16 1)", "<i16 -1, i16 300>", "<i16 64, i16 -16>", "<i16 0, i16 -32768>"),
    "<2 x half>": ("splat (half 1.0)", "<half 0.5, half -2.0>", "splat (half 0xH3118)", "<half 0.0, half 0xH0001>"),
}  # fmt: skip


@dataclass(frozen=True)
class Input:
    """A value loaded from memory: one element per lane, or one per workgroup, which the compiler keeps scalar."""

    type: str
    column: int
    uniform: bool


@dataclass(frozen=True)
class Step:
    """One operation; an operand is the index of an earlier value or the text of a constant."""

    operation: str
    operands: tuple[int | str, ...]
    immediates: tuple[tuple[str, str], ...]

    @property
    def type(self) -> str:
        return OPERATIONS[self.operation].result


@dataclass(frozen=True)
class Program:
    """`values` are inputs followed by steps; a step only names values before it."""

    seed: int
    index: int
    values: tuple[Input | Step, ...]

    @property
    def name(self) -> str:
        return f"program_{self.seed}_{self.index}"

    @property
    def steps(self) -> tuple[tuple[int, Step], ...]:
        return tuple((at, value) for at, value in enumerate(self.values) if isinstance(value, Step))

    @property
    def leaves(self) -> tuple[int, ...]:
        """Steps that no other step uses: storing these keeps everything alive."""
        used = {operand for _, step in self.steps for operand in step.operands}
        return tuple(at for at, _ in self.steps if at not in used)


class Chance:
    """Draws that only use `Random.random`: `choice` and `randrange` may change between Python versions."""

    def __init__(self, label: str) -> None:
        self._random = random.Random(label)

    def below(self, limit: int) -> int:
        return int(self._random.random() * limit)

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.below(len(items))]

    def happens(self, probability: float) -> bool:
        return self._random.random() < probability


_WEIGHTED: tuple[Operation, ...] = tuple(row for row in OPERATIONS.values() for _ in range(row.weight))


def generate(seed: int, index: int) -> Program:
    """The program with this seed and index.

    >>> generate(1, 2) == generate(1, 2), generate(1, 2) == generate(1, 3)
    (True, False)
    """
    chance = Chance(f"redline-ir {seed} {index}")
    values: list[Input | Step] = [*_inputs(chance)]
    count = LEAST_OPERATIONS + chance.below(MOST_OPERATIONS - LEAST_OPERATIONS + 1)
    values += _tied_fma(chance, values)
    uniform = [isinstance(value, Input) and value.uniform for value in values]
    while count > 0:
        want_uniform = chance.happens(0.35)
        step = _step(chance, values, uniform, want_uniform)
        if step is None:
            continue
        values.append(step)
        uniform.append(all(isinstance(operand, str) or uniform[operand] for operand in step.operands))
        count -= 1
    return Program(seed, index, tuple(values))


def _inputs(chance: Chance) -> list[Input]:
    """Three values per lane and one per workgroup of each type."""
    inputs: list[Input] = []
    for kind in (*INTEGERS, *FLOATS, *PAIRS):
        inputs += [Input(kind, chance.pick(COLUMNS_OF[kind]), False) for _ in range(2 if kind in PAIRS else 3)]
        inputs.append(Input(kind, chance.pick(COLUMNS_OF[kind]), True))
    return inputs


def _tied_fma(chance: Chance, values: list[Input | Step]) -> list[Input | Step]:
    """Sometimes three columns made for each other, whose a * b + c lies beside a rounding boundary."""
    kind = chance.pick(FLOATS)
    if chance.happens(0.5):
        return []
    first = len(values)
    a, b, c = TIED_COLUMNS_OF[kind]
    return [
        Input(kind, a, False),
        Input(kind, b, False),
        Input(kind, c, False),
        Step(f"fma {kind}", (first, first + 1, first + 2), ()),
    ]


def _step(chance: Chance, values: list[Input | Step], uniform: list[bool], want_uniform: bool) -> Step | None:
    """One random operation on values that exist; None where the type has no value yet."""
    row = chance.pick(_WEIGHTED)
    operands: list[int | str] = []
    for kind in row.operands:
        if operands and kind != "i1" and chance.happens(0.12) and any(isinstance(given, int) for given in operands):
            operands.append(chance.pick(CONSTANTS[kind]))
            continue
        candidates = [at for at, value in enumerate(values) if value.type == kind and (uniform[at] or not want_uniform)]
        if not candidates:
            return None
        # The newest values first: chains grow deep instead of wide.
        recent = candidates[-6:] if chance.happens(0.6) else candidates
        operands.append(chance.pick(recent))
    immediates = tuple((name, chance.pick(choices)) for name, choices in sorted(row.immediates.items()))
    return Step(row.name, tuple(operands), immediates)


def body(program: Program, outputs: Sequence[int], pointer: str) -> list[str]:
    """IR lines that load, compute and store.

    They expect `%in` and `%out` of type `pointer`, and `%lane64` and `%group64`, both i64. A record of one slot per
    column lies at each lane's place; output k is stored into slot k.
    """
    used = needed(program, outputs)
    lines = [
        f"%lane.in = getelementptr [{len(COLUMNS)} x i64], {pointer} %in, i64 %lane64",
        f"%group.in = getelementptr [{len(COLUMNS)} x i64], {pointer} %in, i64 %group64",
        f"%lane.out = getelementptr [{len(outputs)} x i64], {pointer} %out, i64 %lane64",
    ]
    lines += [
        f"%zero.p = getelementptr i8, {pointer} %group.in, i64 {ZERO_COLUMN * SLOT_BYTES}",
        f"%zero = load i32, {pointer} %zero.p, align 4",
        f"%zero64 = load i64, {pointer} %zero.p, align 8",
    ]
    for at, value in enumerate(program.values):
        if at not in used:
            continue
        if isinstance(value, Input):
            lines += _load(at, value, pointer)
        else:
            lines += _compute(at, value)
    for column, at in enumerate(outputs):
        lines += _store(column, at, program.values[at].type, pointer)
    return lines


def needed(program: Program, outputs: Sequence[int]) -> set[int]:
    """The outputs and every value that they depend on."""
    found = set(outputs)
    for at in range(len(program.values) - 1, -1, -1):
        value = program.values[at]
        if at in found and isinstance(value, Step):
            found.update(operand for operand in value.operands if isinstance(operand, int))
    return found


def _compute(at: int, step: Step) -> list[str]:
    names = tuple(operand if isinstance(operand, str) else f"%v{operand}" for operand in step.operands)
    return OPERATIONS[step.operation].render(f"%v{at}", names, dict(step.immediates))


def _load(at: int, value: Input, pointer: str) -> list[str]:
    record = "%group.in" if value.uniform else "%lane.in"
    return [
        f"%v{at}.p = getelementptr i8, {pointer} {record}, i64 {value.column * SLOT_BYTES}",
        f"%v{at} = load {value.type}, {pointer} %v{at}.p, align {BITS[value.type] // 8}",
    ]


def _store(column: int, at: int, kind: str, pointer: str) -> list[str]:
    lines = [f"%o{column}.p = getelementptr i8, {pointer} %lane.out, i64 {column * SLOT_BYTES}"]
    name, stored = f"%v{at}", kind
    if kind == "i1":
        lines.append(f"%o{column}.z = zext i1 %v{at} to i32")
        name, stored = f"%o{column}.z", "i32"
    return [*lines, f"store {stored} {name}, {pointer} %o{column}.p, align {BITS[stored] // 8}"]
