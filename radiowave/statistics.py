# SPDX-License-Identifier: Apache-2.0
"""Count the instructions of a kernel by what they do: loads and stores by path, waits, clauses, branches, arithmetic.

Counts instructions in the code, not how often they run. Which instructions are counted is the caller's choice; that
they can be reached is the certifier's knowledge. Goes by LLVM's mnemonic alone: a name in no class is counted as
unknown and listed, never guessed into one.

Sources of the names: LLVM 22's AMDGPU disassembler, every opcode of which has a class
(`tests/radiowave/test_statistics.py`); AMD's RDNA1 to RDNA4 instruction set documents say what they do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from radiowave.disassemble import Instruction

#: Classes and the mnemonics in each; the first pattern that fits decides.
CLASSES: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "buffer_loads": r"t?buffer_load_\w+",
        "buffer_stores": r"t?buffer_store_\w+",
        "global_loads": r"global_load_\w+",
        "global_stores": r"global_store_\w+",
        "flat_loads": r"flat_load_\w+",
        "flat_stores": r"flat_store_\w+",
        "scratch_loads": r"scratch_load_\w+",
        "scratch_stores": r"scratch_store_\w+",
        "atomics": r"(global|flat|buffer|scratch|image)_atomic_\w+|global_(ordered_)?add_\w+",
        "images": r"image_\w+",
        "scalar_loads": r"s_load_\w+",
        "scalar_buffer_loads": r"s_buffer_load_\w+",
        "scalar_scratch_loads": r"s_scratch_load_\w+",
        "scalar_stores": r"s_(buffer_|scratch_)?store_\w+|s_(buffer_)?atomic_\w+",
        "lane_permutes": r"ds_(bpermute|permute|swizzle)_\w+",
        "lds_loads": r"ds_(read|load)\w+|(lds|ds)_(direct|param)_load",
        "lds_stores": r"ds_(write|store)_\w+|ds_write2\w*",
        "lds_atomics": r"ds_(?!nop|gws)\w+",
        "cache_controls": (
            r"(buffer|global)_(gl[01]_)?(inv|wb|wbinv)|s_(dcache|icache|gl1)_\w+|s_(buffer_)?prefetch_\w+|s_atc_probe\w*"
        ),
        "waits": r"s_wait_\w+|s_waitcnt\w*",
        "delay_alu": r"s_delay_alu",
        "clauses": r"s_clause",
        "barriers": r"s_barrier\w*|s_get_barrier_state",
        "branches": r"s_c?branch\w*|s_(setpc|swappc|call|rfe)_b64|s_(set_pc|swap_pc)_i64|s_subvector_loop_\w+",
        "ends": r"s_endpgm\w*",
        "control": (
            r"s_(nop|sleep|sleep_var|wakeup|sethalt|setkill|setprio|setprio_inc_wg|trap|trap_\w+|sendmsg|sendmsghalt"
            r"|sendmsg_rtn_\w+|incperflevel|decperflevel|ttracedata|ttracedata_imm|code_end|version"
            r"|inst_prefetch|set_inst_prefetch_distance|memtime|memrealtime|get_waveid_in_workgroup|monitor_sleep"
            r"|alloc_vgpr|singleuse_vdst|set_gpr_idx\w*)|ds_nop|ds_gws_\w+"
        ),
        "dual_issue": r"v_dual_\w+",
        "valu": r"v_\w+",
        "salu": r"s_\w+_(b|f|i|u|bf)\d+\w*|s_(round|denorm)_mode|s_(get|set)reg\w*",
        "exports": r"exp|export",
    }.items()
}
# Those that go through the vector memory path.
_VMEM = frozenset(
    f"{path}_{what}" for path in ("buffer", "global", "flat", "scratch") for what in ("loads", "stores")
) | {"atomics", "images"}
_MOST_IN_A_CLAUSE = re.compile(r"s_clause (\w+)")


@dataclass(frozen=True)
class Statistics:
    """Counts of instructions, and two lengths.

    `counts` has every class of `CLASSES`; "dual_issue" counts pairs, which are one instruction each, and are not in
    "valu"; "lds_atomics" has whatever else changes LDS. `scalar_load_classes` says what the scalar loads reach, by the
    certificate's words ("kernarg", "argument", "constant", ...); None where no certificate was given.
    `longest_vmem_run` counts vector memory instructions with nothing between them, `longest_clause` the instructions
    that one s_clause holds together. `unknown` has mnemonics of no class and their counts, `undecoded_bytes` covers
    what LLVM does not decode.
    """

    instructions: int
    code_bytes: int
    counts: Mapping[str, int]
    scalar_load_classes: Mapping[str, int] | None
    longest_vmem_run: int
    longest_clause: int
    unknown: Mapping[str, int]
    undecoded_bytes: int

    @classmethod
    def of(cls, code: Sequence[Instruction], reaches: Mapping[int, str] | None = None) -> Statistics:
        """Counts over instructions in order of address; several pieces of code may follow each other.

        `reaches` says for the byte address of a scalar load what it reaches, as certificates do (`Site.reach`); a
        scalar load that it leaves out counts as "unknown".
        """
        decoded = [i for i in code if i.text]
        names = [mnemonic(i) for i in decoded]
        classes = {name: class_of(name) for name in set(names)}
        found = Counter(classes[name] for name in names)
        return cls(
            instructions=len(decoded),
            code_bytes=sum(i.length for i in decoded),
            counts={name: found[name] for name in CLASSES},
            scalar_load_classes=None if reaches is None else _reached(decoded, classes, reaches),
            longest_vmem_run=_longest_run(decoded, [classes[name] in _VMEM for name in names]),
            longest_clause=max((_clause_length(i.text) for i in decoded), default=0),
            unknown=dict(sorted(Counter(name for name in names if classes[name] is None).items())),
            undecoded_bytes=sum(i.length for i in code if not i.text),
        )

    def as_json(self) -> dict[str, Any]:
        """Ready for `json.dumps`."""
        classes = self.scalar_load_classes
        return {
            "instructions": self.instructions,
            "code_bytes": self.code_bytes,
            **self.counts,
            "scalar_load_classes": None if classes is None else dict(classes),
            "longest_vmem_run": self.longest_vmem_run,
            "longest_clause": self.longest_clause,
            "unknown": dict(self.unknown),
            "undecoded_bytes": self.undecoded_bytes,
        }


def class_of(mnemonic: str) -> str | None:
    """The class of an LLVM mnemonic, None for one that has none.

    >>> class_of("global_load_b32"), class_of("s_wait_loadcnt"), class_of("q_new_thing")
    ('global_loads', 'waits', None)
    """
    return next((name for name, pattern in CLASSES.items() if pattern.fullmatch(mnemonic)), None)


def mnemonic(instruction: Instruction) -> str:
    """The first word of an instruction that was decoded."""
    return instruction.text.split(maxsplit=1)[0]


def _reached(
    decoded: Iterable[Instruction], classes: Mapping[str, str | None], reaches: Mapping[int, str]
) -> dict[str, int]:
    loads = [i for i in decoded if classes[mnemonic(i)] in ("scalar_loads", "scalar_buffer_loads")]
    return dict(sorted(Counter(reaches.get(i.pc, "unknown") for i in loads).items()))


def _longest_run(decoded: Sequence[Instruction], is_vmem: Sequence[bool]) -> int:
    """What lies apart in memory is no run."""
    longest = run = end = 0
    for instruction, counts in zip(decoded, is_vmem, strict=True):
        run = 0 if not counts else run + 1 if instruction.pc == end else 1
        longest, end = max(longest, run), instruction.pc + instruction.length
    return longest


def _clause_length(text: str) -> int:
    """s_clause has the number of instructions less one in bits 5..0 (RDNA2 ISA, SOPP)."""
    found = _MOST_IN_A_CLAUSE.fullmatch(" ".join(text.split()))
    return (int(found[1], 0) & 0x3F) + 1 if found else 0
