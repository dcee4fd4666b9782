# SPDX-License-Identifier: Apache-2.0
"""Random kernels of scalar code: what compilers write about pointers, and the same with something wrong in it.

A program is a chain of idioms (`scalar_idioms.py`) with branches back and forth between them, some of it in a function
that is called. Every program is a function of its seed, the same in every process. Does not run or judge them;
`scalar_machine.py` and `soundness.py` do.
"""

from __future__ import annotations

import random

from tests.radiowave.assemble import Kernel
from tests.radiowave.scalar_idioms import (
    CALL,
    POINTERS,
    RETURN,
    Writer,
    arithmetic,
    compare,
    conditional,
    constant_table,
    copy,
    halves,
    index,
    index_at_once,
    kernarg_indexed,
    kernarg_moved,
    kernarg_number,
    kernarg_pointer,
    kernarg_wide,
    left_behind,
    read,
    read_buffer,
    read_pointer,
    read_through_memory,
    select,
    through_lanes,
    vector_load,
)

CONDITIONS = ("scc0", "scc1", "scc0", "scc1", "vccz", "vccnz", "execz", "execnz")

#: Idioms and how often each comes: about the arguments alone, and all.
ARGUMENTS_ALONE = {
    kernarg_number: 6,
    kernarg_pointer: 2,
    kernarg_wide: 1,
    kernarg_indexed: 2,
    kernarg_moved: 4,
    constant_table: 1,
    arithmetic: 1,
    compare: 1,
    vector_load: 2,
}
EVERYTHING = {
    **ARGUMENTS_ALONE,
    kernarg_pointer: 8,
    read: 9,
    read_pointer: 1,
    read_through_memory: 1,
    read_buffer: 2,
    index: 7,
    index_at_once: 1,
    left_behind: 1,
    copy: 4,
    select: 4,
    conditional: 1,
    through_lanes: 1,
}


def write(seed: int, target: str) -> Kernel:
    """The program of a seed, spelled for any target but for what gfx12 alone has."""
    rng = random.Random(f"{seed} {target.startswith('gfx12')}")
    kernarg_bytes = rng.choice(tuple(POINTERS))
    w = Writer(rng, rng.choice((0.0, 0.0, 0.04, 0.1, 0.3)), kernarg_bytes, target.startswith("gfx12"))
    name = f"k{seed}"
    idioms = rng.choice((ARGUMENTS_ALONE, EVERYTHING, EVERYTHING, EVERYTHING))
    w.add(f"s_load_b64 s[4:5], s[0:1], {rng.choice((0, 8)):#x}", "s_load_b32 s14, s[0:1], 0x10")
    w.holds["s[4:5]"] = "argument"
    w.indices.add("s14")
    sections = rng.randrange(2, 6)
    has_callee = rng.random() < 0.15
    for section in range(sections):
        w.lines.append(f"{name}_{section}:")
        for idiom in rng.choices(list(idioms), list(idioms.values()), k=rng.randrange(1, 5)):
            idiom(w)
        _branch(w, name, section, sections)
        if has_callee and rng.random() < 0.5:
            _call(w, name, section)
    w.lines += [f"{name}_{sections}:"]
    if has_callee:
        w.lines += ["s_endpgm", f"{name}_callee:"]
        for idiom in rng.choices(list(idioms), list(idioms.values()), k=rng.randrange(1, 4)):
            idiom(w)
        w.lines += [f"s_setpc_b64 {RETURN}"]
    pointers = POINTERS[kernarg_bytes]
    return Kernel(name, "\n".join(w.lines), pointers, (16, 20), kernarg_bytes)


def _branch(w: Writer, name: str, section: int, sections: int) -> None:
    """Back, forth or nowhere, mostly on a condition."""
    choice = w.rng.random()
    if choice < 0.35:
        place = w.rng.randrange(section + 1)
    elif choice < 0.6:
        place = w.rng.randrange(section + 1, sections + 1)
    else:
        return
    if w.rng.random() < 0.05:
        w.lines.append(f"s_branch {name}_{place}")
        return
    if w.rng.random() < 0.7:
        compare(w)
    w.lines.append(f"s_cbranch_{w.rng.choice(CONDITIONS)} {name}_{place}")


def _call(w: Writer, name: str, section: int) -> None:
    here = f"{name}_call{section}"
    low, high = halves(CALL)
    if w.rng.random() < 0.3:
        w.lines.append(f"s_call_b64 {RETURN}, {name}_callee")
        return
    w.lines += [f"s_getpc_b64 {CALL}", f"{here}:", f"s_add_u32 {low}, {low}, {name}_callee-{here}"]
    w.lines.append(f"s_addc_u32 {high}, {high}, ({name}_callee-{here})>>32")
    w.add(f"s_swappc_b64 {RETURN}, {CALL}")
