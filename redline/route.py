# SPDX-License-Identifier: Apache-2.0
"""Proof of the route that a replay takes: what stands in the memory that the device reads, counted and hashed.

A run that was meant to use one path and silently used another looks the same from outside; this is how to tell.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .placed import Placed
    from .program import Program

SCHEMA: Final = 1


def route_proof(placed: Placed, device: str, submissions: int) -> dict[str, Any]:
    """The facts of one replay, ready for `json.dumps`."""
    program = placed.program
    return {
        "schema": SCHEMA,
        "device": device,
        "form": program.form,
        "queues": program.lanes,
        "launches": len(program.order),
        "kernels": len(program.kernels),
        "dwords": len(program.words),
        "packets": len(program.packets),
        "submissions": submissions,
        "sequence_hash": _hash(program, placed.words),
        "program_hash": _hash(program, program.words),
        "reason": program.reason,
    }


def _hash(program: Program, words: NDArray[np.uint32]) -> str:
    """Over words without addresses, and the templates of the packets that run them."""
    bare = words.copy()
    bare[program.relocs["dword"]] = 0
    return hashlib.sha256(bare.tobytes() + program.packets.tobytes()).hexdigest()
