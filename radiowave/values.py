# SPDX-License-Identifier: Apache-2.0
"""What the certifier knows about one 32-bit scalar register: a constant, half of a pointer, or a number's origin.

A 64-bit pointer lies in two registers. Each `Half` carries a token; two halves make one address only when their tokens
are equal, so halves of different values, or of one value at different times, never do. Tokens are names of values: the
value itself where it is a fixed number for the whole kernel, else the instruction or the join of paths that made it.
`flow.py` renames the latter at every join, which is why a token of an earlier round of a loop cannot be met.

A pointer plus an integer stays in the object that it points into (C's rule): an assumption that certificates rest on.
What counts as such an integer is `is_index`. Nothing here reads instructions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final, Literal, NamedTuple

WORD: Final = 1 << 32
# A constant distance beyond this is no index into an object: low adds of 0xfffffff8 without the high half's -1.
FARTHEST: Final = 1 << 31
MOST_BASES: Final = 8


class Base(NamedTuple):
    """What a pointer points into. `at`: offset in the kernarg segment, kernarg offset of the argument that holds the
    pointer, or ELF address. `exact`: the pointer is there, not somewhere in the object that is there."""

    kind: Literal["kernarg", "argument", "code"]
    at: int
    exact: bool


# Where a number came from that is no tracked pointer: kernarg offsets of pointers, ("code", address), or a word:
# "kernarg", "loaded" (device memory), "local" (LDS, scratch), "abi", "unset" (never written), "unknown"; "elsewhere"
# says that the number is on some path made from none of the pointers named beside it (`either`).
Atom = int | str | tuple[str, int]


class Const(NamedTuple):
    """A known number, 0 <= value < 2^32."""

    value: int


class Half(NamedTuple):
    """Half of a pointer into one of `bases`."""

    bases: frozenset[Base]
    token: Hashable
    is_high: bool


class Other(NamedTuple):
    """A number that is not followed. Without atoms it holds neither pointers nor memory: sizes, ids, masks.

    `is_small`: at most eight bits of something, or its sign, so the upper half of a 64-bit index and of no pointer.
    """

    atoms: frozenset[Atom]
    is_small: bool = False


class Lanes(NamedTuple):
    """The execution mask with which the wave began: no lane is ever active outside of it."""


Value = Const | Half | Other | Lanes

PLAIN: Final = Other(frozenset())
SMALL: Final = Other(frozenset(), True)
UNSET: Final = Other(frozenset({"unset"}))
UNKNOWN: Final = Other(frozenset({"unknown"}))
LOADED: Final = Other(frozenset({"loaded"}))
ALL_LANES: Final = Lanes()


def atoms_of(value: Value) -> frozenset[Atom]:
    """Where the number came from, with pointers taken for what they point into."""
    if isinstance(value, Other):
        return value.atoms
    if isinstance(value, Half):
        return frozenset(_atom(base) for base in value.bases)
    return frozenset()


def _atom(base: Base) -> Atom:
    if base.kind == "kernarg":
        return "kernarg"
    return base.at if base.kind == "argument" else ("code", base.at)


def either(first: frozenset[Atom], second: frozenset[Atom]) -> frozenset[Atom]:
    """Where one of two numbers came from. In a sum what is no pointer is an index; beside a pointer, by which it may be
    replaced, it is another address. A register that was never written holds nothing that a program uses."""
    together = first | second
    if _has_pointer(first) == _has_pointer(second) or {"unset"} in (first, second):
        return together
    return together | {"elsewhere"}


def _has_pointer(atoms: frozenset[Atom]) -> bool:
    return "kernarg" in atoms or any(not isinstance(atom, str) for atom in atoms)


def mixed(values: Iterable[Value]) -> Value:
    """The result of arithmetic that is not followed."""
    atoms = frozenset().union(*(atoms_of(value) for value in values))
    return Other(atoms) if atoms else PLAIN


def fixed_token(base: Base) -> Hashable:
    """The token of a value that is one number for the whole kernel; distances count modulo 2^32 in a low half."""
    return (base.kind, base.at % WORD)


def exact_pair(base: Base) -> tuple[Half, Half]:
    """Both halves of a pointer that is one number for the whole kernel."""
    token = fixed_token(base)
    return Half(frozenset({base}), token, False), Half(frozenset({base}), token, True)


def pointer(low: Value, high: Value) -> frozenset[Base] | None:
    """What the address in two registers points into, None when they are not the two halves of one pointer."""
    if not isinstance(low, Half) or not isinstance(high, Half):
        return None
    return high.bases if high.is_high and not low.is_high and low.token == high.token else None


def pair_of(bases: frozenset[Base], token: Hashable) -> tuple[Half, Half]:
    """Both halves of a pointer into `bases`, named by `token` unless it is one fixed number."""
    if len(bases) == 1:
        (base,) = bases
        if base.exact:
            return exact_pair(base)
    return Half(bases, token, False), Half(bases, token, True)


def inexact(bases: frozenset[Base]) -> frozenset[Base]:
    """The same objects, at unknown places."""
    return frozenset(Base(b.kind, 0 if b.kind == "kernarg" else b.at, False) for b in bases)


def settled(bases: frozenset[Base]) -> frozenset[Base]:
    """The same, said in a form that does not grow for ever: a loop that walks through a table adds a place each round.

    A place is left out where the object as a whole is in.
    """
    if len(bases) > MOST_BASES:
        bases = inexact(bases)
    whole = {(b.kind, b.at) for b in bases if not b.exact}
    return frozenset(b for b in bases if not b.exact or (b.kind, 0 if b.kind == "kernarg" else b.at) not in whole)


def moved(bases: frozenset[Base], distance: int) -> frozenset[Base]:
    """The same objects, a known distance further; behind an argument nobody knows how far."""
    return frozenset(
        b._replace(exact=False) if b.kind == "argument" else b._replace(at=b.at + distance) if b.exact else b
        for b in bases
    )


def is_index(low: Value, high: Value) -> bool:
    """Whether two registers hold an integer that C would add to a pointer.

    32 bits read from memory may be one, extended; 64 bits may be a pointer themselves and are not.
    """
    if isinstance(low, Const) and isinstance(high, Const):
        return abs(signed(low.value, high.value)) < FARTHEST
    if isinstance(low, Half) or not atoms_of(low) <= {"loaded"}:
        return False
    if isinstance(low, Const) and low.value >= FARTHEST:
        return False  # a negative constant, without the upper half that says so
    return high in (Const(0), SMALL) or (high == PLAIN and not atoms_of(low))


def signed(low: int, high: int) -> int:
    """The signed 64-bit number of two words."""
    value = low | high << 32
    return value - (1 << 64) if value >> 63 else value


def join_pair(first: tuple[Value, Value], second: tuple[Value, Value], token: Hashable) -> tuple[Value, Value] | None:
    """Two ways to fill a pair of registers that both make it one pointer, or null; None where they do not."""
    found: frozenset[Base] = frozenset()
    for low, high in (first, second):
        bases = pointer(low, high)
        if bases is None and (low, high) != (Const(0), Const(0)):
            return None
        found |= bases or frozenset()
    return pair_of(settled(found), token) if found else None


def join(first: Value, second: Value) -> Value:
    """Two values that one register may have. Halves that are not one fixed number do not survive on their own."""
    if first == second and not _is_renamed(first):
        return first
    numbers = all(isinstance(v, Const) or v in (SMALL, PLAIN, ALL_LANES) for v in (first, second))
    if numbers:
        small = all(v == SMALL or (isinstance(v, Const) and v.value < 256) for v in (first, second))
        return SMALL if small else PLAIN
    return one_of(first, second)


def one_of(first: Value, second: Value) -> Value:
    """One of two numbers, neither of which is followed."""
    atoms = either(atoms_of(first), atoms_of(second))
    return Other(atoms) if atoms else PLAIN


def _is_renamed(value: Value) -> bool:
    if not isinstance(value, Half):
        return False
    return len(value.bases) != 1 or any(value.token != fixed_token(base) for base in value.bases)
