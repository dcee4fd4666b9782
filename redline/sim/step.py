# SPDX-License-Identifier: Apache-2.0
"""One compiled instruction, and what running it can mean for where its waves go next.

Only the record types that compiler, instruction files and scheduler share. No semantics.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .memory import Memory
from .state import Front

if TYPE_CHECKING:
    from .generation import Generation


class Event(enum.Enum):
    """An instruction that ends the straight run of its waves without a jump."""

    END = "the waves have ended"
    SIGNAL = "the waves have arrived at their workgroup's barrier"
    WAIT = "the waves wait until their workgroup's barrier is complete"
    BARRIER = "arrive and wait"


# After a jump: one address for all waves, one for each wave, or an event. None: the next instruction.
Outcome = int | NDArray[np.uint64] | Event | None

Run = Callable[[Front], None]  # plain instruction
Jump = Callable[[Front, int], Outcome]  # control instruction; the int is the address of the next instruction
MemoryRun = Callable[[Front, Memory], None]  # touches the device's memory


@dataclass(frozen=True)
class Context:
    """What the text of an instruction does not say."""

    gen: Generation
    wave: int


@dataclass(frozen=True)
class Code:
    """Exactly one of the three functions is set. `vgprs`: vector registers that the operands reach.

    `approximate`: the names of those instructions in it whose result a GPU may give with other last bits.
    """

    run: Run | None = None
    jump: Jump | None = None
    touch: MemoryRun | None = None
    vgprs: int = 0
    approximate: frozenset[str] = frozenset()
