# SPDX-License-Identifier: Apache-2.0
"""What a memory instruction reaches, and what it leaves in the registers: each becomes one `Site`.

A scalar load counts as read through an argument only where both halves of its address are proved to be one pointer
(`values.pointer`). For vector accesses the union of all sources is taken: with pointer arguments among them, the access
goes through one of these, and the rest is an index; without any, it reaches memory that no argument carries.
Sources: LLVM AMDGPUUsage, "Memory Model gfx10-gfx11" and "gfx12" (which cache bits read at L2); AMD's RDNA instruction
set documents for operand order.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, NamedTuple

from radiowave.certificate import Reach, Site
from radiowave.code_object import KernelFacts
from radiowave.flow_state import NONE, Atoms, State
from radiowave.metadata import Argument
from radiowave.object_memory import ObjectMemory
from radiowave.operands import Operand, Operation
from radiowave.scalar_flow import words
from radiowave.values import (
    LOADED,
    PLAIN,
    UNKNOWN,
    Base,
    Const,
    Half,
    Other,
    Value,
    atoms_of,
    exact_pair,
    mixed,
    moved,
    pair_of,
    pointer,
)

# The kernarg segment is padded to this, so a load may run past its last argument (LLVM widens loads).
_SEGMENT_ALIGN: Final = 16
_DWORDS: Final = {"dword": 1, "dwordx2": 2, "dwordx3": 3, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16}
_SCALAR: Final = re.compile(r"s_(buffer_|scratch_)?load_(\w+)$")
_VECTOR: Final = re.compile(r"(global|flat|buffer|tbuffer|scratch|ds|image)_\w+$")
_CACHE_ONLY: Final = re.compile(r"(global_(inv|wb|wbinv)|buffer_gl[01]_inv|buffer_(wb|inv)\w*)$")
#: Value kinds of hidden arguments that are numbers; the others are pointers of the runtime.
_HIDDEN_NUMBERS: Final = re.compile(
    r"hidden_(block_count|group_size|remainder|global_offset|grid_dims|dynamic_lds|none)"
)


@dataclass(frozen=True)
class Surroundings:
    """What the accesses of one kernel are judged by."""

    kernel: KernelFacts
    target: str
    memory: ObjectMemory

    @property
    def segment_bytes(self) -> int:
        """The kernarg segment with its padding."""
        return -(-self.kernel.kernarg_bytes // _SEGMENT_ALIGN) * _SEGMENT_ALIGN

    def argument_at(self, offset: int) -> Argument | None:
        """The argument that holds this byte of the kernarg segment."""
        for argument in self.kernel.arguments:
            if argument.offset <= offset < argument.offset + argument.size:
                return argument
        return None

    def kernarg_word(self, offset: int) -> Value:
        """What the four bytes at an offset of the kernarg segment hold."""
        argument = self.argument_at(offset)
        if argument is None or offset % 4:
            return UNKNOWN
        if argument.kind == "global_buffer" and argument.size == 8:
            at = (offset - argument.offset) // 4
            return exact_pair(Base("argument", argument.offset, True))[at] if argument.offset % 4 == 0 else UNKNOWN
        is_number = argument.kind == "by_value" or _HIDDEN_NUMBERS.match(argument.kind)
        return PLAIN if is_number else Other(frozenset({"abi"}))


class Reached(NamedTuple):
    """What an access reaches, as in `Site`."""

    reach: Reach
    why: str
    arguments: tuple[int, ...] = ()
    variables: tuple[str, ...] = ()
    beside_kernarg: bool = False


_ARGUMENTS: Final = "its address is made from these pointer arguments"
_ELSEWHERE: Final = "its address is made from these pointers on some paths and from none on others"
_OWN_ARGUMENTS: Final = Reached("kernarg_indexed", "an index into the kernel's own arguments")
_CONSTANT: Final = Reached("constant", "bytes of the code object that nothing writes")
_LOADED: Final = Reached("loaded", "its address was read from memory")
_ABI: Final = Reached("abi", "its address belongs to the dispatcher")


def is_memory(op: Operation) -> bool:
    """Whether an instruction is for `memory_step`."""
    return bool(_SCALAR.match(op.name) or _VECTOR.match(op.name))


def memory_step(op: Operation, text: str, state: State, at: tuple[Hashable, int], where: Surroundings) -> Site | None:
    """Run one memory instruction; None for one that makes no access that meets the caches."""
    found = _SCALAR.match(op.name)
    if found:
        return _scalar_load(op, text, state, at, where, found.group(1) or "", _dwords(found.group(2)))
    if _VECTOR.match(op.name) and not _CACHE_ONLY.match(op.name):
        return _vector_access(op, text, state, at[1], where)
    return None


def _dwords(size: str) -> int:
    if size in _DWORDS:
        return _DWORDS[size]
    bits = re.search(r"(\d+)$", size)
    return max(int(bits.group(1)) // 32, 1) if bits else 16


# Scalar loads


def _scalar_load(
    op: Operation, text: str, state: State, at: tuple[Hashable, int], where: Surroundings, how: str, count: int
) -> Site:
    target, base = op.operands[:2]
    low, high = (*words(base, state, base.count), UNKNOWN)[:2]
    bases = pointer(low, high)
    distance, is_known = _distance(op, state)
    if how == "scratch_":
        bases = None
    if bases is not None and distance is None:
        bases = None
    found = _untracked(low, high)
    if bases is not None:
        found = _scalar_reach(bases, distance or 0, is_known, 4 * count, where, how)
    results = _loaded(found.reach, bases, (distance or 0) if is_known else None, target.count, at, where)
    if how and found.reach != "unknown":
        results = [LOADED if found.reach == "argument" else UNKNOWN] * target.count
    for number, value in zip(target.registers, results, strict=False):
        state.set_scalar(number, value)
    return Site(at[1], text, "scalar", found.reach, found.arguments, why=found.why, variables=found.variables)


def _distance(op: Operation, state: State) -> tuple[int | None, bool]:
    """Bytes behind the base: (constant part, whether that is all). None: not an index."""
    immediate = re.search(r"offset:(-?(?:0x)?[0-9a-f]+)", op.modifiers)
    total, known = int(immediate.group(1), 0) if immediate else 0, True
    for operand in op.operands[2:]:
        if operand.value is not None:
            total += operand.value
        elif operand.bank == "s" and operand.text != "null":
            value = state.scalar(operand.first)
            if isinstance(value, Const):
                total += value.value
            elif isinstance(value, Half) or not atoms_of(value) <= {"loaded"}:
                return None, False
            else:
                known = False
    return (total, known) if abs(total) < 1 << 23 else (None, False)


def _scalar_reach(
    bases: frozenset[Base], distance: int, is_known: bool, nbytes: int, where: Surroundings, how: str
) -> Reached:
    """What a proved pointer reaches. Bases of different kinds have nothing in common that a certificate could say."""
    kinds = {base.kind for base in bases}
    if len(kinds) != 1:
        return Reached("unknown", "its address may come from arguments and from elsewhere")
    if kinds == {"argument"}:
        return Reached("argument", _ARGUMENTS, tuple(sorted(base.at for base in bases)))
    if how:
        return Reached("unknown", "a resource descriptor that is not made from a pointer argument")
    if kinds == {"kernarg"}:
        return _kernarg_reach(bases, distance, is_known, nbytes, where)
    return _code_reach(bases, distance, is_known, nbytes, where)


def _kernarg_reach(bases: frozenset[Base], distance: int, is_known: bool, nbytes: int, where: Surroundings) -> Reached:
    if not is_known or not all(base.exact for base in bases):
        return _OWN_ARGUMENTS
    places = [base.at + distance for base in bases]
    if all(place >= 0 and place + nbytes <= where.segment_bytes and place % 4 == 0 for place in places):
        return Reached("kernarg", "the kernel's own arguments")
    return Reached("unknown", f"outside of the {where.segment_bytes} bytes of the kernarg segment")


def _code_reach(bases: frozenset[Base], distance: int, is_known: bool, nbytes: int, where: Surroundings) -> Reached:
    memory = where.memory
    exact = is_known and all(base.exact for base in bases)
    places = [base.at + (distance if exact else 0) for base in bases]
    if not all(memory.is_immutable(place) for place in places):
        return _variable(places, where)
    if exact and not all(memory.holds(place, nbytes) for place in places):
        return Reached("unknown", "past the end of a section")
    return _CONSTANT


def _variable(places: list[int], where: Surroundings, arguments: tuple[int, ...] = ()) -> Reached:
    names = tuple(sorted({where.memory.variable(place) for place in places if not where.memory.is_immutable(place)}))
    return Reached("variable", f"the module's own memory: {', '.join(names)}", arguments, names)


def _untracked(low: Value, high: Value) -> Reached:
    """Why an address is no proved pointer, in the word that says most."""
    atoms = atoms_of(low) | atoms_of(high)
    if atoms == {"loaded"}:
        return _LOADED
    return _ABI if atoms == {"abi"} else Reached("unknown", "no proof that its halves are one pointer of a known kind")


def _loaded(
    reach: Reach,
    bases: frozenset[Base] | None,
    distance: int | None,
    count: int,
    at: tuple[Hashable, int],
    where: Surroundings,
) -> list[Value]:
    """What a scalar load leaves in its registers."""
    if reach == "kernarg" and bases is not None and distance is not None:
        return _kernarg_words([base.at + distance for base in bases], count, at, where)
    if reach == "constant" and bases is not None:
        return _constant_words(bases, distance, count, where)
    if reach in ("argument", "loaded", "variable"):
        return [LOADED] * count
    return [UNKNOWN] * count


def _kernarg_words(places: list[int], count: int, at: tuple[Hashable, int], where: Surroundings) -> list[Value]:
    """One known place gives its words; of several, a pointer where each of them holds one."""
    rows = [[where.kernarg_word(place + 4 * i) for i in range(count)] for place in places]
    if len(rows) == 1:
        return rows[0]
    results = [mixed(column) for column in zip(*rows, strict=True)]
    for i in range(count - 1):
        pairs = [pointer(row[i], row[i + 1]) for row in rows]
        bases = [pair for pair in pairs if pair is not None]
        if len(bases) == len(rows):
            results[i : i + 2] = pair_of(frozenset().union(*bases), ("load", at, i))
    return results


def _constant_words(bases: frozenset[Base], distance: int | None, count: int, where: Surroundings) -> list[Value]:
    memory = where.memory
    if distance is None or len(bases) != 1 or not all(base.exact for base in bases):
        has_pointers = any(memory.has_pointers(base.at, 0) for base in bases)
        return [UNKNOWN if has_pointers else PLAIN] * count
    place = next(iter(moved(bases, distance))).at
    results: list[Value] = [UNKNOWN if memory.has_pointers(place + 4 * i, 4) else PLAIN for i in range(count)]
    for i in range(count - 1):
        target = memory.pointer(place + 4 * i)
        if target is not None:
            results[i : i + 2] = exact_pair(Base("code", target, True))
    return results


# Vector accesses


def _vector_access(op: Operation, text: str, state: State, address: int, where: Surroundings) -> Site | None:
    space = op.name.partition("_")[0]
    is_atomic = "atomic" in op.name or (space == "ds" and "rtn" in op.name)
    is_store = not is_atomic and ("store" in op.name or "write" in op.name)
    returns = _returns(op, space, is_atomic, is_store)
    atoms = _address_atoms(op, state, space, is_store, is_atomic, returns)
    found = _vector_reach(atoms, space, where)
    if returns:
        _return(op, state, space, atoms)
    if space == "ds":
        return None
    at_l2 = is_atomic or _is_device_scope(op, where.target)
    return Site(
        address,
        text,
        "vector",
        found.reach,
        found.arguments,
        reads=not is_store,
        writes=is_store or is_atomic,
        at_l2=at_l2,
        why=found.why,
        variables=found.variables,
        beside_kernarg=found.beside_kernarg,
    )


def _returns(op: Operation, space: str, is_atomic: bool, is_store: bool) -> bool:
    if space == "ds":
        return not is_store and bool(re.search(r"_rtn|load|read|permute|swizzle|consume|append|condxchg", op.name))
    if is_atomic:
        return bool(re.search(r"\bglc\b|TH_ATOMIC_RETURN", op.modifiers))
    return not is_store and not re.search(r"\blds\b", op.modifiers)


def _address_atoms(op: Operation, state: State, space: str, is_store: bool, is_atomic: bool, returns: bool) -> Atoms:
    operands = list(op.operands)
    scalars = [o for o in operands if o.bank == "s" and o.count > 1]
    if space in ("buffer", "tbuffer", "image"):
        wide = [o for o in scalars if o.count >= 4]
        return _pointer_atoms(wide[0], state) if wide else frozenset({"unknown"})
    if space in ("global", "flat") and scalars:
        return _pointer_atoms(scalars[-1], state)
    if returns:
        operands = operands[1:]
    vectors = [o for o in operands if o.bank == "v"]
    return _atoms(vectors[0], state) if vectors else frozenset({"unknown"})


def _pointer_atoms(operand: Operand, state: State) -> Atoms:
    """The address in the first two registers: a 64-bit base, or the first words of a resource descriptor."""
    low, high = words(operand, state, operand.count)[:2]
    return atoms_of(low) | atoms_of(high)


def _atoms(operand: Operand, state: State) -> Atoms:
    return NONE.union(*(state.vector(n) for n in operand.registers))


def _vector_reach(atoms: Atoms, space: str, where: Surroundings) -> Reached:
    if space == "scratch":
        return Reached("private", "scratch")
    arguments = tuple(sorted(atom for atom in atoms if isinstance(atom, int)))
    places = sorted(atom[1] for atom in atoms if isinstance(atom, tuple))
    beside = "kernarg" in atoms
    if not all(where.memory.is_immutable(place) for place in places):
        return _variable(places, where, arguments)._replace(beside_kernarg=beside)
    if "elsewhere" in atoms:
        return Reached("unknown", _ELSEWHERE, arguments, beside_kernarg=beside)
    if arguments:
        return Reached("argument", _ARGUMENTS, arguments, beside_kernarg=beside)
    if "kernarg" in atoms:
        return _OWN_ARGUMENTS
    if places:
        return _CONSTANT
    if "loaded" in atoms:
        return _LOADED
    return _ABI if atoms == {"abi"} else Reached("unknown", "nothing shows where its address comes from")


def _return(op: Operation, state: State, space: str, atoms: Atoms) -> None:
    """What a load leaves behind; loads of 16 bits keep the other half."""
    target = op.operands[0]
    got: Atoms = frozenset({"local" if space in ("ds", "scratch") else "loaded"})
    if "permute" in op.name or "swizzle" in op.name:
        got = NONE.union(*(state.any_lane(n) for o in op.operands[1:] if o.bank == "v" for n in o.registers))
    if op.name in ("ds_consume", "ds_append"):
        got = NONE
    for number in target.registers:
        kept = state.vector(number) if "d16" in op.name else NONE
        state.set_vector(number, got | kept)
    # A texture fail or LDS word behind the data (`tfe`) is a number of no interest.
    if "tfe" in op.modifiers:
        state.set_vector(target.first + target.count, got)


def _is_device_scope(op: Operation, target: str) -> bool:
    flags = set(op.modifiers.split())
    if target.startswith("gfx10"):
        return {"glc", "dlc"} <= flags
    return "glc" in flags if target.startswith("gfx11") else bool(flags & {"scope:SCOPE_DEV", "scope:SCOPE_SYS"})
