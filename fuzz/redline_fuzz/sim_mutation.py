# SPDX-License-Identifier: Apache-2.0
"""Makes each instruction of the software device wrong in turn, as little as possible, and asks whether a check notices.

A mutant is one instruction with one change: the low bit of its result or of the data that it stores, a branch the other
way, an address four bytes further, an event that does not happen. Rows of the ALU tables are changed in the table
(`ir_mutation.Mutant`); everything else where its text becomes code, so memory, LDS, jumps, calls, barriers and lane
permutations are reached too. Which checks there are is the caller's: tests know their oracles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast
from unittest.mock import patch

import numpy as np

from redline.sim import compiler, dpp, inventory, sdwa, swizzle
from redline.sim.control import BRANCHES, displacement
from redline.sim.crosslane import CROSS_LANE
from redline.sim.memory import Memory
from redline.sim.operands import Operand, Parsed
from redline.sim.salu import SCALAR
from redline.sim.salu_float import SALU_FLOAT
from redline.sim.state import Front
from redline.sim.step import Code, Context, Outcome
from redline.sim.valu import VALU
from redline_fuzz import ir_mutation

Check = Callable[[], None]  # raises when something is wrong


@dataclass(frozen=True)
class Mutant:
    """Instruction `name` with `change` made to the code that its texts compile to."""

    name: str
    change: str

    def __str__(self) -> str:
        return f"{self.name} {self.change}"

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Texts compile to the wrong code until the block ends."""
        right, change = compiler._by_family, _CHANGES[self.change]

        def by_family(parts: tuple[Parsed, ...], context: Context) -> Code | None:
            code = right(parts, context)
            return change(code, parts[0]) if code is not None and parts[0].name == self.name else code

        with patch.object(compiler, "_by_family", by_family):
            yield


@dataclass(frozen=True)
class LaneMutant:
    """A row of a table of lane patterns or register parts, wrong: the neighbouring lane, or one bit further up."""

    table: dict[str, Any]
    name: str

    def __str__(self) -> str:
        return f"{self.name} neighbour"

    @contextmanager
    def alive(self) -> Iterator[None]:
        """The table holds the wrong row until the block ends."""
        with patch.dict(self.table, {self.name: _beside(self.table[self.name])}):
            yield


def _beside(row: Any) -> Any:
    if callable(row):  # DPP: text -> source lane of each lane of a row, -1 for none
        return lambda text: np.where(row(text) >= 0, row(text) ^ 1, -1)
    first, second = row
    if callable(second):  # swizzle: numbers -> source lane of each of 32 lanes
        return first, lambda *numbers: second(*numbers) ^ 1
    return (first + 1, second - 1) if first + second == 32 else (first + 1, second)  # SDWA: shift, bits


AnyMutant = Mutant | LaneMutant | ir_mutation.Mutant


def _flip(front: Front, operand: Operand, bit: int) -> None:
    """Change one bit of the first register of an operand, in the lanes that are on."""
    if operand.kind == "v":
        front.u32[operand.first][front.exec] ^= np.uint32(1 << bit)
    elif operand.kind == "s":
        front.s32[:, operand.first] ^= np.uint32(1 << bit)


def _low_bit(parsed: Parsed) -> int:
    return 16 if "_hi" in parsed.name else 0


def _around(code: Code, before: Callable[[Front], None], after: Callable[[Front], None]) -> Code:
    run, touch, jump = code.run, code.touch, code.jump

    def wrong_run(front: Front) -> None:
        before(front)
        assert run is not None
        run(front)
        after(front)

    def wrong_touch(front: Front, memory: Memory) -> None:
        before(front)
        assert touch is not None
        touch(front, memory)
        after(front)

    def wrong_jump(front: Front, following: int) -> Outcome:
        assert jump is not None
        outcome = jump(front, following)
        after(front)
        return outcome

    if run is not None:
        return Code(run=wrong_run)
    return Code(touch=wrong_touch) if touch is not None else Code(jump=wrong_jump)


def _wrong_result(code: Code, parsed: Parsed) -> Code:
    target, bit = parsed.operands[0], _low_bit(parsed)
    return _around(code, lambda front: None, lambda front: _flip(front, target, bit))


def _returns(parsed: Parsed) -> bool:
    return "glc" in parsed.modifiers or "RETURN" in parsed.modifiers.get("th", "")


def _wrong_old_value(code: Code, parsed: Parsed) -> Code:
    """Only the form of an atomic that gives the old value back."""
    return _wrong_result(code, parsed) if _returns(parsed) else code


def _wrong_data(code: Code, parsed: Parsed) -> Code:
    """The data register is wrong while the instruction runs."""
    returns = _returns(parsed) or "_rtn" in parsed.name
    at = 0 if parsed.name.startswith("buffer") else 1 + returns
    data, bit = parsed.operands[at], _low_bit(parsed)
    overwritten = returns and parsed.operands[0].first == data.first
    restore = (lambda front: None) if overwritten else (lambda front: _flip(front, data, bit))
    return _around(code, lambda front: _flip(front, data, bit), restore)


def _other_way(code: Code, parsed: Parsed) -> Code:
    """A conditional branch that is taken when it should not be."""
    assert code.jump is not None
    right, distance = code.jump, displacement(parsed)

    def jump(front: Front, following: int) -> Outcome:
        outcome = right(front, following)
        if outcome is None:
            return following + distance
        if isinstance(outcome, np.ndarray):
            taken = np.uint64(following + distance)
            return np.where(outcome == taken, np.uint64(following), taken)
        return None

    return Code(jump=jump)


def _further(code: Code, parsed: Parsed) -> Code:
    """One dword past the target."""
    assert code.jump is not None
    right = code.jump

    def jump(front: Front, following: int) -> Outcome:
        outcome: Any = right(front, following)
        moved: Outcome = outcome + (4 if isinstance(outcome, int) else np.uint64(4))
        return moved

    return Code(jump=jump)


def _ignored(code: Code, parsed: Parsed) -> Code:
    return Code(run=lambda front: None)


_CHANGES: dict[str, Callable[[Code, Parsed], Code]] = {
    "result": _wrong_result,
    "old value": _wrong_old_value,
    "data": _wrong_data,
    "other way": _other_way,
    "further": _further,
    "ignored": _ignored,
}
_CONTROL: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(BRANCHES, ("other way",)),
    "s_branch": ("further",),
    "s_setpc_b64": ("further",),
    "s_swappc_b64": ("further", "result"),
    "s_call_b64": ("further", "result"),
    "s_getpc_b64": ("result",),
    **dict.fromkeys(("s_endpgm", "s_barrier", "s_barrier_signal", "s_barrier_wait"), ("ignored",)),
}


def mutants() -> dict[str, list[AnyMutant]]:
    """Every mutant by group."""
    vector: list[AnyMutant] = [
        ir_mutation.Mutant(CROSS_LANE if name in CROSS_LANE else VALU, name, result)
        for name, op in VALU.items()
        for result in range(len(op.dst))
    ]
    scalar: list[AnyMutant] = [
        ir_mutation.Mutant(SCALAR, name, result)
        for name, row in SCALAR.items()
        if name not in SALU_FLOAT
        for result in range(2 if row.dst and row.scc == "value" else 1)
    ]
    floats: list[AnyMutant] = [ir_mutation.Mutant(SALU_FLOAT, name, 0) for name in SALU_FLOAT]
    groups: dict[str, list[AnyMutant]] = {"Vector ALU": vector, "Scalar ALU": scalar, "Scalar floats": floats}
    groups["Scalar loads"] = [Mutant(name, "result") for name in inventory.scalar_loads()]
    for space in inventory.SPACES:
        groups[space] = [m for name in inventory.vector_memory(space) for m in _memory_mutants(name)]
    groups["LDS"] = [m for name in inventory.lds() for m in _memory_mutants(name)]
    groups["Lane patterns"] = [
        LaneMutant(table, name)
        for table in (dpp.CONTROLS, swizzle.PATTERNS, sdwa.SELECTS)
        for name in cast(dict[str, Any], table)
    ]
    groups["Control"] = [Mutant(name, change) for name, changes in _CONTROL.items() for change in changes]
    return groups


def _memory_mutants(name: str) -> list[Mutant]:
    if "permute" in name or "swizzle" in name or "load" in name:
        return [Mutant(name, "result")]
    if name.startswith("ds_"):
        return [Mutant(name, change) for change in (("data", "result") if "_rtn" in name else ("data",))]
    return [Mutant(name, change) for change in (("data", "old value") if "_atomic_" in name else ("data",))]


def noticed(mutant: AnyMutant, checks: Iterable[Check]) -> bool:
    """Whether any check fails while the mutant is alive."""
    with mutant.alive():
        for check in checks:
            try:
                check()
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException:  # whatever goes wrong is a notice; pytest's own failures are no Exception
                return True
    return False


def run(
    checks_for: Callable[[str, AnyMutant], Iterable[Check]],
    chosen: dict[str, list[AnyMutant]] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Every mutant against the caller's checks; the record is JSON-ready. Checks must pass without mutants."""
    groups = mutants() if chosen is None else chosen
    made, seen, missed, done = Counter[str](), Counter[str](), list[str](), 0
    total = sum(map(len, groups.values()))
    for group, members in groups.items():
        for mutant in members:
            made[group] += 1
            if noticed(mutant, checks_for(group, mutant)):
                seen[group] += 1
            else:
                missed.append(f"{group}: {mutant}")
            done += 1
            if progress is not None:
                progress(done, total)
    return {
        "mutants": total,
        "noticed": sum(seen.values()),
        "groups": {group: f"{seen[group]} of {made[group]}" for group in groups},
        "missed": missed,
        "equal": not missed,
    }
