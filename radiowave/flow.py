# SPDX-License-Identifier: Apache-2.0
"""Walk all paths of one kernel and say what each memory access reaches: data flow to a fixpoint, then one last pass.

Blocks are known by their address and by the return addresses that lead back from them, so a function is looked at
once for each call. Where paths meet, `flow_state.merge` keeps what holds on all of them. A path that cannot be followed
ends the proof: its last instruction is reported as a site of path "none", and nothing else may be concluded.
Source of branches and calls: AMD's RDNA1 to RDNA4 instruction set documents, "SOPP", "SOPK" and "SOP1".
"""

from __future__ import annotations

import heapq
import re
from dataclasses import dataclass, field
from typing import Final

from radiowave.certificate import Site
from radiowave.disassemble import Instruction
from radiowave.flow_state import State, merge
from radiowave.listing import Listing
from radiowave.memory_flow import Surroundings, is_memory, memory_step
from radiowave.operands import Operation, parse
from radiowave.scalar_flow import scalar_step, words
from radiowave.values import Base, exact_pair, pointer
from radiowave.vector_flow import vector_step

#: Instructions to run in one kernel before giving up; a large GEMM kernel needs a tenth of it.
MOST_STEPS: Final = 400_000
MOST_CALLS_DEEP: Final = 8
#: Of paths that could not be followed, one is enough; hostile code has many.
_MOST_STOPS: Final = 16

_ENDS: Final = frozenset({"s_endpgm", "s_endpgm_saved", "s_endpgm_ordered_ps_done"})
_BRANCHES: Final = re.compile(r"s_(branch|cbranch_(scc[01]|vccn?z|execn?z|cdbg\w+))$")
_JUMPS: Final = frozenset({"s_setpc_b64", "s_swappc_b64", "s_call_b64"})
_FORGETS: Final = re.compile(r"s_movreld_b(32|64)$|s_movrelsd_2_b32$")

Context = tuple[int, ...]
Key = tuple[Context, int]


class _LeaderInside(Exception):
    """A jump leads into a block that was taken for one piece."""


@dataclass
class Walk:
    """What the walk over one kernel found.

    `sites` are the accesses in order of address, one row for each way in which they are reached. `stops` are where a
    path could not be followed; with any, `sites` is empty. `reached` are all instructions that were seen, in order.
    `steps` counts instructions run, again and again.
    """

    sites: tuple[Site, ...] = ()
    stops: tuple[Site, ...] = ()
    reached: tuple[Instruction, ...] = ()
    steps: int = 0


@dataclass
class _Round:
    """One attempt at a fixpoint, with a fixed set of block starts."""

    incoming: dict[Key, dict[Key | None, State]] = field(default_factory=dict)
    waiting: list[tuple[int, Context]] = field(default_factory=list)
    queued: set[Key] = field(default_factory=set)
    inside: set[int] = field(default_factory=set)
    stops: dict[int, Site] = field(default_factory=dict)
    sites: set[Site] | None = None
    steps: int = 0


def walk(
    entry: int, nbytes: int, start: State, listing: Listing, where: Surroundings, most_steps: int = MOST_STEPS
) -> Walk:
    """Follow every path from the ELF address `entry`; `nbytes` is the size of the kernel's symbol, a hint."""
    return _Walker(entry, nbytes, start, listing, where, most_steps).run()


class _Walker:
    def __init__(
        self, entry: int, nbytes: int, start: State, listing: Listing, where: Surroundings, most_steps: int
    ) -> None:
        self._most_steps = most_steps
        self._entry, self._start, self._listing, self._where = entry, start, listing, where
        self._leaders: set[int] = {entry}
        self._reached: dict[int, Instruction] = {}
        self._round = _Round()
        self._listing.at(entry, max(nbytes, 4))

    def run(self) -> Walk:
        while True:
            try:
                self._fixpoint()
                break
            except _LeaderInside:
                continue
        sites = set() if self._round.stops else self._last_pass()
        stops = tuple(self._round.stops[at] for at in sorted(self._round.stops))
        return Walk(
            () if stops else tuple(sorted(sites, key=lambda site: (site.address, site.reach, site.arguments))),
            stops,
            tuple(self._reached[pc] for pc in sorted(self._reached)),
            self._round.steps,
        )

    def _fixpoint(self) -> None:
        self._round = _Round(steps=self._round.steps)
        self._lead(None, ((), self._entry), self._start)
        while self._round.waiting and len(self._round.stops) < _MOST_STOPS:
            pc, context = heapq.heappop(self._round.waiting)
            self._round.queued.discard((context, pc))
            if not self._block((context, pc)):
                return

    def _last_pass(self) -> set[Site]:
        """Every block once more, from the states that hold for good."""
        self._round.sites = set()
        for key in list(self._round.incoming):
            self._block(key)
        return self._round.sites

    def _lead(self, source: Key | None, target: Key, state: State) -> None:
        """An edge of the flow graph, or a newer state on it."""
        if target[1] not in self._leaders:
            self._leaders.add(target[1])
            if target[1] in self._round.inside:
                raise _LeaderInside
        edges = self._round.incoming.setdefault(target, {})
        if edges.get(source) != state:
            edges[source] = state.copy()
            if target not in self._round.queued:
                self._round.queued.add(target)
                heapq.heappush(self._round.waiting, (target[1], target[0]))

    def _before(self, key: Key) -> State:
        states = list(self._round.incoming[key].values())
        return states[0].copy() if len(states) == 1 else merge(states, key)

    def _block(self, key: Key) -> bool:
        """Run one block and follow where it leads; False once the budget is spent."""
        (context, pc), state = key, self._before(key)
        while True:
            instruction = self._listing.at(pc)
            if instruction is None:
                self._stop(Instruction(pc, 4, ""), "nothing that decodes: the path runs out of the code")
                return True
            self._reached[pc] = instruction
            self._round.steps += 1
            if self._round.steps > self._most_steps:
                self._stop(instruction, f"more than {self._most_steps:,} steps without a result")
                return False
            if not self._step(instruction, state, context):
                return True
            pc += instruction.length
            if pc in self._leaders:
                self._lead((context, instruction.pc), (context, pc), state)
                return True
            self._round.inside.add(pc)

    def _stop(self, instruction: Instruction, why: str) -> None:
        text = " ".join(instruction.text.split())
        self._round.stops[instruction.pc] = Site(instruction.pc, text, "none", "unknown", reads=False, why=why)

    def _step(self, instruction: Instruction, state: State, context: Context) -> bool:
        """One instruction; whether the path goes on behind it."""
        operations = parse(instruction.text)
        op, at = operations[0], (context, instruction.pc)
        if op.name in _ENDS:
            return False
        if _BRANCHES.match(op.name):
            return self._branch(op, instruction, state, context)
        if op.name in _JUMPS:
            self._jump(op, instruction, state, context)
            return False
        if op.name == "s_getpc_b64":
            self._set_pair(op, instruction.pc + instruction.length, state)
            return True
        if is_memory(op):
            text = " ".join(instruction.text.split())
            self._note(memory_step(op, text, state, at, self._where))
            return True
        if _FORGETS.match(op.name):
            state.forget_scalars()
            return True
        known = vector_step(operations, state) if op.name.startswith("v_") else scalar_step(op, state, at)
        if not known:
            self._stop(instruction, "an instruction that the certifier does not know")
        return known

    def _note(self, site: Site | None) -> None:
        if site is not None and self._round.sites is not None:
            self._round.sites.add(site)

    def _branch(self, op: Operation, instruction: Instruction, state: State, context: Context) -> bool:
        offset = op.operands[0].value if op.operands else None
        if offset is None:
            self._stop(instruction, "a branch without a known target")
            return False
        after = instruction.pc + instruction.length
        self._lead((context, instruction.pc), (context, _target(after, offset)), state)
        if op.name != "s_branch":
            self._lead((context, instruction.pc), (context, after), state)
        return False

    def _jump(self, op: Operation, instruction: Instruction, state: State, context: Context) -> None:
        """To an address in registers, or a call: both need exact addresses of code."""
        after = instruction.pc + instruction.length
        targets = self._targets(op, after, state)
        if not targets:
            self._stop(instruction, "a jump to an address that is not known")
            return
        if op.name != "s_setpc_b64":
            self._set_pair(op, after, state)
        for target in targets:
            inner = (*context, after) if op.name != "s_setpc_b64" else context
            if op.name == "s_setpc_b64" and context and target == context[-1]:
                inner = context[:-1]
            if len(inner) > MOST_CALLS_DEEP:
                self._stop(instruction, f"calls more than {MOST_CALLS_DEEP} deep")
                return
            self._lead((context, instruction.pc), (inner, target), state)

    def _targets(self, op: Operation, after: int, state: State) -> list[int]:
        source = op.operands[-1]
        if op.name == "s_call_b64":
            return [] if source.value is None else [_target(after, source.value)]
        values = words(source, state, 2)
        bases = pointer(values[0], values[1]) or frozenset()
        exact = all(base.kind == "code" and base.exact for base in bases)
        return sorted(base.at for base in bases) if exact else []

    def _set_pair(self, op: Operation, address: int, state: State) -> None:
        pair = exact_pair(Base("code", address, True))
        for number, value in zip(op.operands[0].registers, pair, strict=False):
            state.set_scalar(number, value)


def _target(after: int, offset: int) -> int:
    """A branch counts dwords from the next instruction, in 16 bits with sign, which LLVM prints without."""
    return after + 4 * ((offset & 0xFFFF ^ 0x8000) - 0x8000)
