# SPDX-License-Identifier: Apache-2.0
"""The registers of a wave at a kernel's first instruction, as its descriptor asks for them.

Source: LLVM AMDGPUUsage, "Initial Kernel Execution State": order of the user SGPRs, then system SGPRs, then work-item
ids. A register outside of these starts with what an earlier wave left in it.
"""

from __future__ import annotations

from typing import Final

from radiowave.code_object import KernelFacts
from radiowave.flow_state import NONE, State, first_state
from radiowave.operands import TTMP
from radiowave.values import PLAIN, Base, Other, Value, exact_pair

_ABI: Final = Other(frozenset({"abi"}))
_KERNARG: Final = exact_pair(Base("kernarg", 0, True))
#: Bit of the kernel code properties, and the user SGPRs that it asks for.
_USER: Final[tuple[tuple[int, tuple[Value, ...]], ...]] = (
    (0, (_ABI,) * 4),  # private segment buffer
    (1, (_ABI,) * 2),  # dispatch pointer
    (2, (_ABI,) * 2),  # queue pointer
    (3, _KERNARG),
    (4, (PLAIN,) * 2),  # dispatch id
    (5, (_ABI,) * 2),  # flat scratch init
    (6, (PLAIN,)),  # private segment size
)


def entry_state(kernel: KernelFacts, target: str) -> State | None:
    """What is in the registers; None where the descriptor asks for what these targets do not have."""
    descriptor = kernel.descriptor
    user = [value for bit, values in _USER if descriptor.properties >> bit & 1 for value in values]
    has_room_for = descriptor.rsrc2 >> 1 & 0x1F
    if descriptor.preload or len(user) > has_room_for:
        return None
    # Scratch wave offset, workgroup ids x, y, z, workgroup info; gfx12 has the ids in TTMP registers.
    system = sum(descriptor.rsrc2 >> bit & 1 for bit in (0, 7, 8, 9, 10))
    state = first_state(kernel.wave)
    state.scalars.update(enumerate([*user, *[PLAIN] * (has_room_for - len(user) + system)]))
    state.scalars.update((TTMP + i, PLAIN) for i in range(16))
    # From gfx11 on all three work-item ids lie in v0.
    ids = 1 + (descriptor.rsrc2 >> 11 & 3) if target.startswith("gfx10") else 1
    state.active.update((i, NONE) for i in range(ids))
    return state
