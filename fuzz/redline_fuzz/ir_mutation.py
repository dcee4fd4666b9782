# SPDX-License-Identifier: Apache-2.0
"""Would the random programs notice a wrong instruction? Make each one wrong in turn and see.

A mutant is one row of the executor's ALU tables with one of its results changed as little as possible: the low bit of
a number, or every eighth lane of a mask. It is noticed when a program whose machine code uses the instruction gives a
difference or a fault. The tables are restored after each. Memory, jumps and waits are not mutated here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import radiowave
from radiowave.elf import Elf
from radiowave.image import LoadImage
from redline.sim.operands import parse
from redline.sim.salu import SCALAR
from redline.sim.valu import VALU
from redline_fuzz.ir_compare import Bytes
from redline_fuzz.ir_inputs import Bits
from redline_fuzz.ir_modules import kernel_module
from redline_fuzz.ir_programs import Program, generate
from redline_fuzz.ir_run import BATCH, Pair, Sides, data_for, findings

PROGRAMS_TRIED = 24  # a mutant that this many programs with the instruction do not notice counts as missed

# Mutants that nothing can notice, with the reason.
_CORRECTED = "a starting value; the fused multiply-adds behind it correct its last place"
_DEAD = "LLVM uses this instruction only where nobody reads its second result"
EXPECTED = (
    dict.fromkeys(("v_rsq_f64", "v_sqrt_f32", "v_s_rcp_f32", "v_s_sqrt_f32"), _CORRECTED)
    | dict.fromkeys(
        ("v_mac_f32", "v_mad_f32", "v_madmk_f32"), "gfx101x uses it inside integer division, which corrects"
    )
    | {f"v_mad_co_{kind} result 1": _DEAD for kind in ("i64_i32", "u64_u32")}
    | {f"s_{name} result 1": _DEAD for name in ("add_co_i32", "sub_co_i32", "min_i32", "min_u32", "max_i32", "max_u32")}
    | {"s_mov_b64": "in wave32 a bound of saturation: moved by one, only a value equal to it tells"}
    | {f"s_lshl{count}_add_u32 result 1": _DEAD for count in (1, 2, 3, 4)}
)


@dataclass(frozen=True)
class Case:
    """One program with what it needs to run again and again."""

    program: Program
    code: bytes
    inputs: Bits
    host: Bytes
    mnemonics: frozenset[str]


@dataclass(frozen=True)
class Mutant:
    """Row `name` of `table` with result `result` changed."""

    table: dict[str, Any]
    name: str
    result: int

    def __str__(self) -> str:
        return f"{self.name} result {self.result}" if self.result else self.name

    @contextmanager
    def alive(self) -> Iterator[None]:
        """The table holds the wrong row until the block ends."""
        right = self.table[self.name]
        changes = {"fn": _wrong(right.fn, self.result)}
        if getattr(right, "saturating", None) is not None:
            changes["saturating"] = _wrong(right.saturating, self.result)
        self.table[self.name] = dataclasses.replace(right, **changes)
        try:
            yield
        finally:
            self.table[self.name] = right


def _wrong(function: Callable[..., Any], result: int) -> Callable[..., Any]:
    def changed(*sources: Any, **needs: Any) -> Any:
        right = function(*sources, **needs)
        if not isinstance(right, tuple):
            return _nudge(np.asarray(right))
        return tuple(_nudge(value) if at == result else value for at, value in enumerate(right))

    return changed


def _nudge(value: NDArray[Any]) -> NDArray[Any]:
    """The low bit of each number, or every eighth lane of a mask."""
    if value.dtype == np.bool_:
        nudged: NDArray[Any] = value ^ (np.arange(value.shape[-1]) % 8 == 0)
    else:
        bits = np.ascontiguousarray(value).view(f"u{value.dtype.itemsize}")
        nudged = (bits ^ bits.dtype.type(1)).view(value.dtype)
    return nudged


def run(
    pair: Pair, seed: int = 1, count: int = 480, progress: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """Every mutant of the instructions that `count` programs use on this pair; the record is JSON-ready."""
    with Sides([pair]) as sides:
        cases = [case for first in range(0, count, BATCH) for case in _cases(sides, pair, seed, first)]
        mutants = list(_mutants(frozenset().union(*(case.mnemonics for case in cases))))
        missed: list[str] = []
        for done, mutant in enumerate(mutants, 1):
            using = [case for case in cases if mutant.name in case.mnemonics][:PROGRAMS_TRIED]
            with mutant.alive():
                if not any(_differs(sides, pair, case) for case in using):
                    missed.append(str(mutant))
            if progress is not None:
                progress(done, len(mutants))
    return {
        "pair": f"{pair[0]} wave{pair[1]}",
        "programs": count,
        "mutants": len(mutants),
        "noticed": len(mutants) - len(missed),
        "missed": {name: EXPECTED.get(name, "") for name in missed},
        "equal": all(name in EXPECTED for name in missed),
    }


def _cases(sides: Sides, pair: Pair, seed: int, first: int) -> list[Case]:
    programs = [generate(seed, index) for index in range(first, first + BATCH)]
    inputs = data_for(seed, first)
    wanted = [(program, program.leaves) for program in programs]
    hosts = sides.host.run(wanted, inputs)
    jobs = [radiowave.CompileJob(kernel_module([one], *pair), *pair) for one in wanted]
    codes = radiowave.compile_many(jobs)
    return [
        Case(program, code, inputs, host, _mnemonics(sides, pair, code, program.name))
        for program, code, host in zip(programs, codes, hosts, strict=True)
    ]


def _mnemonics(sides: Sides, pair: Pair, code: bytes, name: str) -> frozenset[str]:
    """Names of the kernel's instructions as the executor's tables spell them."""
    facts = radiowave.CodeObject.parse(code).kernels[name]
    raw = LoadImage(Elf(code)).executable_bytes(facts.entry_va, facts.code_bytes, name)
    listing = sides.disassembler.decode(raw, 0, *pair)
    texts = [line.text for line in listing if line.text and not line.text.startswith("s_delay_alu")]
    return frozenset(part.name for text in texts for part in parse(text))


def _mutants(names: frozenset[str]) -> Iterator[Mutant]:
    for name in sorted(names & VALU.keys()):
        yield from (Mutant(VALU, name, result) for result in range(len(VALU[name].dst)))
    for name in sorted(names & SCALAR.keys()):
        results = 2 if SCALAR[name].dst and SCALAR[name].scc == "value" else 1
        yield from (Mutant(SCALAR, name, result) for result in range(results))


def _differs(sides: Sides, pair: Pair, case: Case) -> bool:
    with sides.device(pair[0], case.code) as runner:
        return bool(findings(case.program, pair, runner, case.inputs, case.host))
