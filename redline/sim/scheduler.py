# SPDX-License-Identifier: Apache-2.0
"""Which waves run when: fronts that part at branches, meet again at equal addresses, and wait at barriers.

The lowest address runs first, so that waves that parted meet where their ways join. A step quota lets others run when
a front spins on something that they must do. Waves can also be run a few at a time in a shuffled order, which shows
races that lockstep hides. Does not execute instructions itself; their code is in `code.Step`.
"""

from __future__ import annotations

import itertools
import random
import sys
import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .buffers import DescriptorError
from .code import FETCH, Program
from .errors import BarrierFault, Cancelled, MemoryFault, UnsupportedInstruction
from .memory import Memory
from .state import Front, Waves
from .step import Event, Outcome


@dataclass(frozen=True)
class Policy:
    """How waves are run.

    `batch` is the most waves that step together (None: all that stand at one address). With a `seed` the next waves
    and the number of steps they get are drawn at random. `quota` is how many steps the lowest front may run while
    others wait for their turn.
    """

    batch: int | None = None
    seed: int | None = None
    quota: int = 20_000


class Scheduler:
    """Runs resident waves to their end."""

    def __init__(self, waves: Waves, program: Program, memory: Memory, policy: Policy, cancelled: threading.Event):
        self._waves, self._program, self._memory = waves, program, memory
        self._policy, self._cancelled = policy, cancelled
        self._random = None if policy.seed is None else random.Random(policy.seed)
        self._ready: list[Front] = []
        self._waiting: list[Front] = []
        self._clock = 0
        self.wave_instructions = 0  # executed so far, one for each wave that takes a step
        self._streak = 0  # steps of the lowest front while others were ready

    def run(self, entry: int) -> None:
        """From the first instruction until every wave has ended."""
        count = len(self._waves.group)
        size = self._policy.batch or count
        self._ready = [Front(self._waves, lo, min(lo + size, count), entry) for lo in range(0, count, size)]
        while self._ready:
            front, limit, steps = self._choose()
            self._settle(front, self._advance(front, limit, steps))
            if not self._ready and self._waiting:
                raise BarrierFault(self._waiting[0].pc, sum(front.count for front in self._waiting))

    # Choosing

    def _choose(self) -> tuple[Front, int | None, int]:
        """The front to run, the address where it stops to meet another, and its steps."""
        self._clock += 1
        if self._random is not None:
            front = self._random.choice(self._ready)
            steps = self._random.randint(1, 64)
            return front, None, steps
        if self._policy.batch is not None:
            return min(self._ready, key=lambda front: front.last_run), None, self._policy.quota
        front = min(self._ready, key=lambda front: front.pc)
        if len(self._ready) == 1:
            self._streak = 0
            return front, None, self._policy.quota
        if self._streak >= self._policy.quota:
            self._streak = 0
            front = min(self._ready, key=lambda front: front.last_run)
            return front, None, self._policy.quota
        limit = min(other.pc for other in self._ready if other is not front)
        return front, limit, self._policy.quota - self._streak

    # Running

    def _advance(self, front: Front, limit: int | None, steps: int) -> Outcome:
        """Run until an event, a parting, the limit or the last step; leaves `front.pc` at the next instruction."""
        program, memory, is_cancelled = self._program, self._memory, self._cancelled.is_set
        known = program.steps
        stop = sys.maxsize if limit is None else limit
        pc, done, outcome = front.pc, 0, None
        step = program.step(pc)
        try:
            while True:
                if is_cancelled():
                    raise Cancelled
                code = step.code
                done += 1
                pc = step.following
                if code.run is not None:
                    code.run(front)
                elif code.touch is not None:
                    code.touch(front, memory)
                elif code.jump is not None:
                    outcome = code.jump(front, pc)
                    if outcome is not None:
                        if type(outcome) is not int:
                            break
                        pc = outcome
                        outcome = None
                if done >= steps or pc >= stop:
                    break
                step = known.get(pc) or program.step(pc)
        except DescriptorError as error:
            raise UnsupportedInstruction(step.pc, step.text, str(error)) from error
        except MemoryFault as fault:
            if fault.access == FETCH:
                raise
            near = f"{fault.near}; by the instruction at {step.pc:#x}, {step.text!r}"
            raise MemoryFault(fault.address, fault.nbytes, fault.access, near) from fault
        front.pc = pc
        front.last_run = self._clock
        self._streak += done
        self.wave_instructions += done * front.count
        return outcome

    # After a run

    def _settle(self, front: Front, outcome: Outcome) -> None:
        if outcome is None:
            self._meet(front.pc)
        elif isinstance(outcome, np.ndarray):
            self._part(front, outcome)
        elif outcome is Event.END:
            self._end(front)
        elif outcome is Event.SIGNAL:
            self._signal(front)
        elif outcome is Event.WAIT:
            self._wait(front)
            self._meet(front.pc)
        elif outcome is Event.BARRIER:
            self._signal(front)
            self._wait(front)
            self._meet(front.pc)

    def _part(self, front: Front, targets: NDArray[np.uint64]) -> None:
        """One front for each address, the lowest on the left, where it meets its neighbours again later."""
        self._ready.remove(front)
        order = np.argsort(targets, kind="stable")
        if (np.diff(order) != 1).any():
            self._waves.reorder(front.lo, front.hi, order)
            targets = targets[order]
        bounds = [0, *(np.flatnonzero(np.diff(targets)) + 1).tolist(), front.count]
        parts = [
            self._front(front.lo + lo, front.lo + hi, int(targets[lo]), front.last_run)
            for lo, hi in itertools.pairwise(bounds)
        ]
        self._ready += parts
        for part in parts:
            self._meet(part.pc)

    def _front(self, lo: int, hi: int, pc: int, last_run: int) -> Front:
        front = Front(self._waves, lo, hi, pc)
        front.last_run = last_run
        return front

    def _meet(self, pc: int) -> None:
        """Join the ready fronts at `pc`, as far as the batch size allows. Joining may move other fronts."""
        while (pair := self._joinable(pc)) is not None:
            self._join(*pair)

    def _joinable(self, pc: int) -> tuple[Front, Front] | None:
        limit = self._policy.batch or len(self._waves.group)
        here = sorted((front for front in self._ready if front.pc == pc), key=lambda front: front.lo)
        pairs = [pair for pair in itertools.pairwise(here) if pair[0].count + pair[1].count <= limit]
        adjacent = [pair for pair in pairs if pair[0].hi == pair[1].lo]
        return next(iter(adjacent or pairs), None)

    def _join(self, left: Front, right: Front) -> None:
        """One front of two; `right` stands behind `left` in the arrays."""
        if left.hi != right.lo:
            self._bring_together(left, right)
        self._ready.remove(left)
        self._ready.remove(right)
        last_run = max(left.last_run, right.last_run)
        self._ready.append(self._front(left.lo, left.hi + right.count, left.pc, last_run))

    def _bring_together(self, left: Front, right: Front) -> None:
        """Move the waves of `right` up against `left`; whoever stood between moves behind them."""
        between = right.lo - left.hi
        order = np.r_[between : between + right.count, 0:between]
        self._waves.reorder(left.hi, right.hi, order)
        for fronts in (self._ready, self._waiting):
            for at, other in enumerate(fronts):
                if left.hi <= other.lo < right.lo:
                    lo, hi = other.lo + right.count, other.hi + right.count
                    fronts[at] = self._front(lo, hi, other.pc, other.last_run)

    # Barriers

    def _signal(self, front: Front) -> None:
        """The front's waves arrive; a workgroup whose living waves have all arrived is complete."""
        waves = self._waves
        waves.signalled += np.bincount(front.group, minlength=len(waves.signalled))
        self._complete()

    def _complete(self) -> None:
        waves = self._waves
        done = (waves.signalled == waves.alive) & (waves.alive > 0)
        if not done.any():
            return
        waves.signalled[done] = 0
        waves.barrier_complete |= done[waves.group]
        for front in list(self._waiting):
            if waves.barrier_complete[front.lo : front.hi].any():
                self._waiting.remove(front)
                self._ready.append(front)
                self._wait(front)

    def _wait(self, front: Front) -> None:
        """Waves whose workgroup is complete go on, the others wait."""
        complete = self._waves.barrier_complete[front.lo : front.hi]
        if complete.all():
            complete[...] = False
            return
        self._ready.remove(front)
        if not complete.any():
            self._waiting.append(front)
            return
        order = np.argsort(~complete, kind="stable")
        if (np.diff(order) != 1).any():
            self._waves.reorder(front.lo, front.hi, order)
        middle = front.lo + int(np.count_nonzero(complete))
        self._waves.barrier_complete[front.lo : middle] = False
        self._waiting.append(self._front(middle, front.hi, front.pc, front.last_run))
        self._ready.append(self._front(front.lo, middle, front.pc, front.last_run))

    def _end(self, front: Front) -> None:
        """The waves are gone and count in no barrier any more."""
        self._ready.remove(front)
        self._waves.alive -= np.bincount(front.group, minlength=len(self._waves.alive))
        self._complete()
