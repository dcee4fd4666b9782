# SPDX-License-Identifier: Apache-2.0
"""Instruction counts: a listing counted by hand, a compiled kernel, and a class for every opcode that LLVM decodes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from radiowave import CodeObject, Disassembler, Instruction
from radiowave.statistics import CLASSES, Statistics, class_of
from tests.radiowave.conftest import Matrix
from tests.radiowave.encodings import MEMORY, decode, firsts_of

# Counted by hand; the texts are LLVM's.
LISTING = """\
s_load_b128 s[0:3], s[4:5], 0x0
s_buffer_load_b32 s8, s[8:11], 0x0
s_waitcnt lgkmcnt(0)
s_delay_alu instid0(SALU_CYCLE_1)
s_add_u32 s0, s0, s8
s_clause 0x2
global_load_b32 v1, v0, s[0:1]
buffer_load_b32 v2, v0, s[0:3], 0 offen
flat_load_b32 v3, v[4:5]
v_dual_mul_f32 v1, v1, v2 :: v_dual_mov_b32 v4, v3
v_add_f32_e32 v1, v1, v3
global_store_b32 v0, v1, s[0:1]
global_atomic_add_u32 v0, v1, s[2:3]
scratch_store_b32 off, v1, off
ds_store_b32 v0, v1
ds_load_b32 v1, v0
ds_add_rtn_u32 v1, v0, v1
ds_bpermute_b32 v1, v0, v1
buffer_gl0_inv
s_barrier
s_cbranch_scc0 65530
s_nop 0
q_future_thing v0
s_endpgm
"""
COUNTED = {
    **dict.fromkeys(("scalar_loads", "scalar_buffer_loads", "waits", "delay_alu", "salu", "clauses"), 1),
    **dict.fromkeys(("global_loads", "buffer_loads", "flat_loads", "dual_issue", "valu", "global_stores"), 1),
    **dict.fromkeys(("atomics", "scratch_stores", "lds_stores", "lds_loads", "lds_atomics", "lane_permutes"), 1),
    **dict.fromkeys(("cache_controls", "barriers", "branches", "control", "ends"), 1),
}


def _listing(text: str) -> Iterator[Instruction]:
    for index, line in enumerate(text.splitlines()):
        yield Instruction(0x100 + 4 * index, 4, f"\t{line}")


def test_counted_by_hand() -> None:
    """Each class, the run of vector memory, the clause, and a name that nobody knows."""
    found = Statistics.of(list(_listing(LISTING)))
    assert {name: count for name, count in found.counts.items() if count} == COUNTED
    assert (found.instructions, found.code_bytes) == (24, 96)
    assert (found.longest_vmem_run, found.longest_clause) == (3, 3)
    assert (found.unknown, found.undecoded_bytes) == ({"q_future_thing": 1}, 0)
    assert sum(found.counts.values()) + sum(found.unknown.values()) == found.instructions


def test_scalar_loads_by_what_they_reach() -> None:
    """As the certificate says; what it leaves out is unknown, and without one there is no answer at all."""
    code = list(_listing(LISTING))
    assert Statistics.of(code).scalar_load_classes is None
    assert Statistics.of(code, {0x100: "kernarg"}).scalar_load_classes == {"kernarg": 1, "unknown": 1}
    assert json.loads(json.dumps(Statistics.of(code, {}).as_json()))["scalar_load_classes"] == {"unknown": 2}


def test_a_gap_ends_a_run() -> None:
    """Reachable code has holes; and bytes that do not decode are counted, not dropped."""
    load = "global_load_b32 v1, v0, s[0:1]"
    code = [Instruction(0, 8, load), Instruction(8, 8, load), Instruction(24, 8, load), Instruction(32, 4, "")]
    found = Statistics.of(code)
    assert (found.longest_vmem_run, found.instructions, found.undecoded_bytes) == (2, 3, 4)
    assert Statistics.of([]).instructions == 0


def test_a_compiled_kernel(saxpy: Matrix, disassembler: Disassembler) -> None:
    """What its source says, on every target: two loads, a store, one LDS store, one branch, the end."""
    for (target, wave), data in saxpy.items():
        code_object = CodeObject.parse(data)
        kernel = code_object.kernel("saxpy")
        code = disassembler.decode(code_object.code(kernel), kernel.entry_va, target, wave)
        found = Statistics.of(code)
        names = ("global_loads", "global_stores", "lds_stores", "branches", "ends", "flat_loads", "atomics")
        assert [found.counts[name] for name in names] == [2, 1, 1, 1, 1, 0, 0], (target, wave)
        assert (found.unknown, found.undecoded_bytes) == ({}, 0)
        assert found.counts["waits"] >= 2
        assert found.longest_vmem_run >= 1


#: First dwords of the scalar encodings with every opcode: SOPP, SOP1, SOPC, SOP2, SOPK (RDNA ISA, "Microcode Formats").
_SCALAR = (
    *(0xBF800000 | op << 16 for op in range(128)),
    *(0xBE800000 | op << 8 for op in range(256)),
    *(0xBF000000 | op << 16 for op in range(128)),
    *(0x80000000 | op << 23 for op in range(96)),
    *(0xB0000000 | op << 23 for op in range(28)),
)


@pytest.mark.parametrize("target", ["gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201"])
def test_every_opcode_has_a_class(target: str, disassembler: Disassembler) -> None:
    """Nothing that this LLVM decodes is unknown; and the classes are those that the names say."""
    names = set[str]()
    for encoding in range(64):
        for second in MEMORY[encoding][1] if encoding in MEMORY else (0,):
            names |= {text.split()[0] for _, text in decode(disassembler, target, firsts_of(encoding), second)}
    names |= {text.split()[0] for _, text in decode(disassembler, target, _SCALAR, 0)}
    assert len(names) > 600
    assert {name for name in names if class_of(name) is None} == set()
    for name in names:
        found = class_of(name)
        assert (found in ("valu", "dual_issue")) == name.startswith("v_"), name
        if "_load_" in name and not name.startswith("image_"):
            assert found is not None
            assert found.endswith("_loads"), (name, found)
    assert {class_of(name) for name in names} <= set(CLASSES)
