# SPDX-License-Identifier: Apache-2.0
"""Writes docs/instructions.md: what the software device executes on each target.

`python -m tests.sim.instruction_list` rewrites it. The names come from `redline.sim.inventory`; whether a target has an
instruction is asked of LLVM 22's assembler (clang-22), which tells an unknown mnemonic from one whose operands are
missing.
"""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path

from redline.sim import inventory
from redline.sim.names import ALIASES
from redline.sim.valu import NOT_BIT_EXACT
from tests.radiowave.clang import DEMO_TARGETS, program

DOCUMENT = Path(__file__).parents[2] / "docs" / "instructions.md"

HEAD = """# Instructions that the software device executes

Written by `python -m tests.sim.instruction_list` from the device's own tables; a test holds it current. Names are the
newest spelling without encoding suffix: gfx10's `s_load_dword` is under `s_load_b32`, and `v_add_f32` stands for
`_e32`, `_e64`, `_dpp`, `_sdwa` and its half of a VOPD. A target has an instruction when LLVM 22's assembler knows the
mnemonic there; the other GPUs of a family are like its target here.

Anything else stops the kernel with its address and text: unknown mnemonics, modifiers, float modes and descriptor
forms. Refused on purpose: scratch, image, GDS, WMMA, interpolation, `s_setreg`, `s_movrel`, scalar stores, `tfe` and
`lds` on loads, buffer descriptors with a stride or swizzle, named barriers, every message but MSG_DEALLOC_VGPRS.

## What "approximate" means

AMD bounds the error of these instructions and does not say their bits. The device computes them with more digits and
rounds once, so its result is the correctly rounded one but for rare cases within a hair of a tie. Hardware may differ
in the last place, and flushes denormals in some. A kernel that uses one by itself is comparable with a GPU within a
tolerance only. Division and square root as LLVM builds them from these and fused multiply-adds do not depend on the
last place. The float dot products are here too: hardware's order of adding is not published.
"""


def spellings(name: str) -> list[str]:
    """The name and every older one that means it."""
    return [name, *(old for old, new in ALIASES.items() if new == name)]


def known(target: str, mnemonics: list[str]) -> set[str]:
    """Those that the assembler knows on a target: it complains about their operands, or not at all."""
    command = (program("clang", 22), "-x", "assembler", "--target=amdgcn-amd-amdhsa", f"-mcpu={target}")
    text = "".join(f"{mnemonic}\n" for mnemonic in mnemonics)
    done = subprocess.run([*command, "-c", "-o", "/dev/null", "-"], input=text, capture_output=True, text=True)
    unknown = set()
    for line, reason in re.findall(r"<stdin>:(\d+):\d+: error: (.*)", done.stderr):
        if "not supported on this GPU" in reason or "invalid instruction" in reason:
            unknown.add(mnemonics[int(line) - 1])
    return set(mnemonics) - unknown


def targets_of(names: list[str]) -> dict[str, frozenset[str]]:
    """For each name the demo targets that have it."""
    words = [word for name in names for word in spellings(name)]
    have = {target: known(target, words) for target in DEMO_TARGETS}
    return {name: frozenset(t for t in DEMO_TARGETS if have[t] & set(spellings(name))) for name in names}


def document() -> str:
    """The whole file."""
    entries = inventory.entries()
    found = targets_of(sorted({name for names in entries.values() for name in names}))
    lines = [
        HEAD,
        "## How many",
        "",
        "| group | " + " | ".join(DEMO_TARGETS) + " |",
        "|---|" + "---|" * len(DEMO_TARGETS),
    ]
    for title, names in entries.items():
        counts = [str(sum(target in found[name] for name in names)) for target in DEMO_TARGETS]
        lines.append(f"| {title} | {' | '.join(counts)} |")
    lines += ["", "## Approximate", "", _wrapped(sorted(NOT_BIT_EXACT))]
    for title, names in entries.items():
        lines += ["", f"## {title}"]
        for targets in sorted({found[name] for name in names}, key=lambda t: (-len(t), sorted(t))):
            members = [name for name in names if found[name] == targets]
            lines += ["", f"{_heading(targets)}:", "", _wrapped(members)]
    return "\n".join(lines) + "\n"


def _heading(targets: frozenset[str]) -> str:
    if len(targets) == len(DEMO_TARGETS):
        return "On every target"
    return "On " + ", ".join(sorted(targets)) if targets else "In the tables, on none of these targets"


def _wrapped(names: list[str]) -> str:
    return textwrap.fill(" ".join(f"`{name}`" for name in names), 118, break_on_hyphens=False)


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
