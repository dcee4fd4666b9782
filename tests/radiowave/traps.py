# SPDX-License-Identifier: Apache-2.0
"""Kernels in assembly that a certifier may get wrong, each with the right answer. Holds text and answers alone.

Written from AMD's instruction set documents, without a look at the certifier. In every kernel s[0:1] is the kernarg
pointer unless its directives say otherwise; pointer arguments lie at 0 and 8, 4-byte numbers at 16 and 20, of 24 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from radiowave.certificate import Verdict
from tests.radiowave.assemble import TARGETS, Kernel

FIRST = "s_load_b64 s[4:5], s[0:1], 0x0\n"
SECOND = "s_load_b64 s[6:7], s[0:1], 0x8\n"
BOTH = FIRST + SECOND
NUMBER = "s_load_b32 s8, s[0:1], 0x10\n"
NUMBERS = "s_load_b64 s[8:9], s[0:1], 0x10\n"
READ = "s_load_b32 s20, s[4:5], 0x0\n"
COMPARE = "s_cmp_eq_u32 s8, 0\n"


@dataclass(frozen=True)
class Trap:
    """One kernel and its certificate: `scalar` None where it must be refused, else the arguments that scalar loads go
    through. `but` says what makes it a trap; "kind" ones must not be refused. `{n}` in `body` is its name."""

    name: str
    but: str
    body: str
    scalar: tuple[int, ...] | None
    kernarg_vector_loads: bool = False
    l2_args: tuple[int, ...] = ()
    undeclared: bool = False
    directives: tuple[str, ...] = ()
    targets: tuple[str, ...] = TARGETS
    waves: tuple[int, ...] = (32, 64)

    def kernel(self) -> Kernel:
        """As the assembler takes it."""
        return Kernel(self.name, self.body.replace("{n}", self.name), directives=self.directives)

    @property
    def verdict(self) -> Verdict:
        """The word for it."""
        return "scalar_or_unknown" if self.scalar is None else "scalar_args" if self.scalar else "vmem_only"


def _call(label: str, back: str = "s[30:31]") -> str:
    """A call as LLVM writes it."""
    here = f".L{label}_call"
    target = "s[34:35]"
    return (
        f"s_getpc_b64 {target}\n{here}:\ns_add_u32 s34, s34, {label}-{here}\n"
        f"s_addc_u32 s35, s35, ({label}-{here})>>32\ns_swappc_b64 {back}, {target}\n"
    )


_PATHS = (
    Trap(
        "back_edge",
        "the load is of kernargs the first time alone",
        f"{{n}}_loop: s_load_b32 s8, s[0:1], 0x0\ns_load_b64 s[0:1], s[4:5], 0x0\n{COMPARE}s_cbranch_scc1 {{n}}_loop\n",
        None,
    ),
    Trap(
        "back_edge_to_argument",
        "s[10:11] is the kernarg pointer, then an argument; a load of either is refused",
        f"{FIRST}s_mov_b64 s[10:11], s[0:1]\n{{n}}_loop: s_load_b32 s8, s[10:11], 0x0\ns_mov_b64 s[10:11], s[4:5]\n"
        f"{COMPARE}s_cbranch_scc1 {{n}}_loop\n",
        None,
    ),
    Trap(
        "second_round_of_two_loops",
        "the inner loop is left with another pointer than it was entered with",
        f"{BOTH}{NUMBER}{{n}}_a: {COMPARE}{{n}}_b: {READ}s_cbranch_scc1 {{n}}_b\ns_mov_b64 s[4:5], s[6:7]\n"
        "s_cbranch_scc0 {n}_a\n",
        (0, 8),
    ),
    Trap(
        "one_path_overwritten",
        "one way around leaves a pointer from memory",
        f"{FIRST}{NUMBER}{COMPARE}s_cbranch_scc1 {{n}}_j\ns_load_b64 s[4:5], s[4:5], 0x0\n{{n}}_j: {READ}",
        None,
    ),
    Trap(
        "one_path_half_overwritten",
        "one way around changes the low half",
        f"{FIRST}{NUMBER}{COMPARE}s_cbranch_scc1 {{n}}_j\ns_mov_b32 s4, s8\n{{n}}_j: {READ}",
        None,
    ),
    Trap(
        "halves_of_two_paths",
        "each way around sets one half of another argument",
        f"{BOTH}{NUMBER}{COMPARE}s_cbranch_scc1 {{n}}_h\ns_mov_b32 s4, s6\ns_branch {{n}}_j\n"
        f"{{n}}_h: s_mov_b32 s5, s7\n{{n}}_j: {READ}",
        None,
    ),
    Trap(
        "both_paths_same",
        "both ways around load the same argument: kind",
        f"{NUMBER}{COMPARE}s_cbranch_scc1 {{n}}_b\n{FIRST}s_branch {{n}}_j\n{{n}}_b: {FIRST}{{n}}_j: {READ}",
        (0,),
    ),
    Trap(
        "either_argument",
        "each way around loads one argument: kind",
        f"{NUMBER}{COMPARE}s_cbranch_scc1 {{n}}_b\n{FIRST}s_branch {{n}}_j\n"
        f"{{n}}_b: s_load_b64 s[4:5], s[0:1], 0x8\n{{n}}_j: {READ}",
        (0, 8),
    ),
    Trap(
        "after_early_end",
        "the code goes on behind the first s_endpgm",
        f"{FIRST}{NUMBER}{COMPARE}s_cbranch_scc1 {{n}}_on\ns_endpgm\n{{n}}_on: {READ}",
        (0,),
    ),
    Trap(
        "behind_the_end",
        "the load is in code that nothing reaches: kind",
        f"{FIRST}{NUMBER}s_endpgm\ns_load_b64 s[4:5], s[4:5], 0x0\n{READ}",
        (),
    ),
    Trap(
        "every_branch",
        "each conditional branch goes both ways",
        "s_load_b64 s[4:5], s[0:1], 0x0\n"
        "s_cbranch_vccz {n}_1\ns_cbranch_vccnz {n}_1\ns_cbranch_execz {n}_1\ns_cbranch_execnz {n}_1\n"
        f"s_cbranch_scc0 {{n}}_1\ns_endpgm\n{{n}}_1: {READ}",
        (0,),
    ),
    Trap(
        "unknown_jump",
        "s_setpc_b64 goes to a number",
        f"{NUMBERS}s_setpc_b64 s[8:9]\n",
        None,
    ),
    Trap(
        "unknown_call",
        "s_swappc_b64 goes to a number",
        f"{NUMBERS}s_swappc_b64 s[30:31], s[8:9]\n",
        None,
    ),
    Trap(
        "far_branch",
        "the jump is a sum of the program counter: kind",
        f"{FIRST}s_getpc_b64 s[10:11]\n{{n}}_p: s_add_u32 s10, s10, {{n}}_t-{{n}}_p\n"
        f"s_addc_u32 s11, s11, ({{n}}_t-{{n}}_p)>>32\ns_setpc_b64 s[10:11]\ns_endpgm\n{{n}}_t: {READ}",
        (0,),
    ),
    Trap(
        "jump_into_data",
        "the way ends in bytes that are no code",
        "s_branch {n}_d\n.long 0xffffffff\n{n}_d: .long 0xffffffff\n.long 0xffffffff\n",
        None,
    ),
    Trap(
        "data_in_text",
        "there are bytes in the code that nothing reaches: kind",
        f"{FIRST}s_branch {{n}}_on\n.long 0xffffffff, 0xffffffff\n{{n}}_on: {READ}",
        (0,),
    ),
    Trap(
        "into_an_instruction",
        "the branch goes into a literal, which is s_movk_i32 s4, 0x12",
        f"{FIRST}s_branch 1\ns_mov_b32 s20, 0xb0040012\n{READ}",
        None,
    ),
    Trap(
        "no_end",
        "the code runs on into the next function",
        f"{FIRST}{READ}s_branch {{n}}_far\n.p2align 8\n{{n}}_far: s_load_b64 s[4:5], s[4:5], 0x0\n{READ}",
        None,
    ),
)

_CALLS = (
    Trap(
        "callee_reads",
        "the load is in another function",
        f"{FIRST}{_call('{n}_f')}s_endpgm\n{{n}}_f: {READ}s_setpc_b64 s[30:31]\n",
        (0,),
    ),
    Trap(
        "callee_changes",
        "the function returns another pointer",
        f"{FIRST}{_call('{n}_f')}{READ}s_endpgm\n{{n}}_f: s_load_b64 s[4:5], s[4:5], 0x0\ns_setpc_b64 s[30:31]\n",
        None,
    ),
    Trap(
        "callee_of_two",
        "the function is called with either argument",
        f"{BOTH}{_call('{n}_f')}s_mov_b64 s[4:5], s[6:7]\n"
        f"{_call('{n}_f').replace('.L{n}_f_call', '.L{n}_again')}s_endpgm\n{{n}}_f: {READ}s_setpc_b64 s[30:31]\n",
        (0, 8),
    ),
    Trap(
        "return_address_changed",
        "the function does not return to its caller",
        f"{FIRST}{_call('{n}_f')}s_endpgm\n{{n}}_f: {READ}s_add_u32 s30, s30, s8\ns_setpc_b64 s[30:31]\n",
        None,
    ),
    Trap(
        "short_call",
        "s_call_b64 and its return: kind",
        f"{FIRST}s_call_b64 s[30:31], {{n}}_f\n{READ}s_endpgm\n{{n}}_f: s_mov_b32 s21, 0\ns_setpc_b64 s[30:31]\n",
        (0,),
    ),
)

_HALVES = (
    Trap(
        "broken_carry",
        "the compare between changes the carry",
        f"{FIRST}{NUMBER}s_add_u32 s4, s4, s8\n{COMPARE}s_addc_u32 s5, s5, 0\n{READ}",
        None,
    ),
    Trap(
        "signed_low_add",
        "s_add_i32 sets SCC to overflow, not to the carry",
        f"{FIRST}{NUMBER}s_add_i32 s4, s4, s8\ns_addc_u32 s5, s5, 0\n{READ}",
        None,
    ),
    Trap("no_carry", "the high half never gets it", f"{FIRST}{NUMBER}s_add_u32 s4, s4, s8\n{READ}", None),
    Trap(
        "carry_of_another_path",
        "one way around comes with another SCC",
        f"{FIRST}{NUMBER}{COMPARE}s_cbranch_scc1 {{n}}_c\ns_add_u32 s4, s4, 8\n{{n}}_c: s_addc_u32 s5, s5, 0\n{READ}",
        None,
    ),
    Trap("low_overwritten", "the low half is a number", f"{FIRST}{NUMBER}s_mov_b32 s4, s8\n{READ}", None),
    Trap("high_overwritten", "the high half is a number", f"{FIRST}{NUMBER}s_mov_b32 s5, s8\n{READ}", None),
    Trap(
        "swapped",
        "the halves change places",
        f"{FIRST}s_mov_b32 s10, s5\ns_mov_b32 s11, s4\ns_load_b32 s20, s[10:11], 0x0\n",
        None,
    ),
    Trap("of_two_arguments", "the halves are of two arguments", f"{BOTH}s_mov_b32 s5, s7\n{READ}", None),
    Trap("kernarg_and_argument", "the high half is of the kernarg pointer", f"{FIRST}s_mov_b32 s5, s1\n{READ}", None),
    Trap(
        "of_two_rounds",
        "the low half is one round older than the high one",
        f"{FIRST}{NUMBER}{{n}}_l: s_mov_b32 s10, s4\ns_add_u32 s4, s4, s8\ns_addc_u32 s5, s5, 0\ns_mov_b32 s11, s5\n"
        f"s_load_b32 s20, s[10:11], 0x0\n{COMPARE}s_cbranch_scc1 {{n}}_l\n",
        None,
    ),
    Trap(
        "moved",
        "the halves are moved one by one: kind",
        f"{FIRST}s_mov_b32 s10, s4\ns_mov_b32 s11, s5\ns_load_b32 s20, s[10:11], 0x0\n",
        (0,),
    ),
    Trap(
        "four_bytes_off",
        "the pair is the high half of one argument and the low half of the next",
        f"s_load_b64 s[4:5], s[0:1], 0x4\n{READ}",
        None,
    ),
    Trap(
        "wide_load",
        "one load brings both arguments: kind",
        "s_load_b256 s[4:11], s[0:1], 0x0\ns_load_b32 s20, s[6:7], 0x0\n",
        (8,),
    ),
    Trap("in_vcc", "the pointer lies in VCC: kind", "s_load_b64 vcc, s[0:1], 0x0\ns_load_b32 s20, vcc, 0x0\n", (0,)),
    Trap(
        "over_itself",
        "the load overwrites its own base: kind",
        "s_load_b64 s[0:1], s[0:1], 0x0\ns_load_b32 s20, s[0:1], 0x0\n",
        (0,),
    ),
    Trap(
        "over_itself_twice",
        "the second load reads a pointer from memory",
        "s_load_b64 s[0:1], s[0:1], 0x0\ns_load_b64 s[0:1], s[0:1], 0x0\ns_load_b32 s20, s[0:1], 0x0\n",
        None,
    ),
    Trap(
        "wide_load_over_pointer",
        "the end of the load covers the pointer",
        f"{FIRST}s_load_b128 s[4:7], s[4:5], 0x0\n{READ}",
        None,
    ),
)

_SCALAR = (
    Trap("movreld", "any register may be written", f"{FIRST}s_mov_b32 m0, s8\ns_movreld_b32 s2, s8\n{READ}", None),
    Trap(
        "movreld_before_kernarg_load",
        "the kernarg pointer may be gone",
        "s_mov_b32 m0, s8\ns_movreld_b64 s[2:3], s[8:9]\ns_load_b32 s20, s[0:1], 0x0\n",
        None,
    ),
    Trap("movrels", "any register may be read", f"{BOTH}s_mov_b32 m0, s8\ns_movrels_b64 s[4:5], s[6:7]\n{READ}", None),
    Trap(
        "cselect_of_kernargs",
        "both halves of two exact addresses: kind",
        f"{NUMBER}s_add_u32 s10, s0, 8\ns_addc_u32 s11, s1, 0\n{COMPARE}s_cselect_b32 s12, s10, s0\n"
        "s_cselect_b32 s13, s11, s1\ns_load_b32 s20, s[12:13], 0x4\n",
        (),
    ),
    Trap(
        "cselect_of_arguments",
        "both halves by one SCC: kind",
        f"{BOTH}{NUMBER}{COMPARE}s_cselect_b32 s4, s4, s6\ns_cselect_b32 s5, s5, s7\n{READ}",
        (0, 8),
    ),
    Trap(
        "cselect_b64",
        "the pair by one SCC: kind",
        f"{BOTH}{NUMBER}{COMPARE}s_cselect_b64 s[4:5], s[4:5], s[6:7]\n{READ}",
        (0, 8),
    ),
    Trap(
        "cselect_by_two",
        "the halves by two values of SCC",
        f"{BOTH}{NUMBERS}{COMPARE}s_cselect_b32 s4, s4, s6\ns_cmp_eq_u32 s9, 0\ns_cselect_b32 s5, s5, s7\n{READ}",
        None,
    ),
    Trap(
        "cselect_crossed",
        "the halves by opposite choices",
        f"{BOTH}{NUMBER}{COMPARE}s_cselect_b32 s4, s4, s6\ns_cselect_b32 s5, s7, s5\n{READ}",
        None,
    ),
    Trap(
        "cselect_with_number",
        "one choice is a number",
        f"{FIRST}{NUMBERS}{COMPARE}s_cselect_b64 s[4:5], s[4:5], s[8:9]\n{READ}",
        None,
    ),
    Trap("cmov_low", "the low half may be a number", f"{FIRST}{NUMBER}{COMPARE}s_cmov_b32 s4, s8\n{READ}", None),
    Trap(
        "cmov_b64",
        "one or the other argument: kind",
        f"{BOTH}{NUMBER}{COMPARE}s_cmov_b64 s[4:5], s[6:7]\n{READ}",
        (0, 8),
    ),
    Trap("cmovk", "the high half may be a constant", f"{FIRST}{NUMBER}{COMPARE}s_cmovk_i32 s5, 0x7\n{READ}", None),
    Trap("bfm", "s_bfm_b64 writes a pair", f"{FIRST}{NUMBERS}s_bfm_b64 s[4:5], s8, s9\n{READ}", None),
    Trap("bitset", "one bit of the high half is set", f"{FIRST}{NUMBER}s_bitset1_b32 s5, s8\n{READ}", None),
    Trap("bitset_b64", "one bit of the pair is cleared", f"{FIRST}{NUMBER}s_bitset0_b64 s[4:5], s8\n{READ}", None),
    Trap("masked_high", "some bits of the high half are gone", f"{FIRST}{NUMBER}s_and_b32 s5, s5, s8\n{READ}", None),
    Trap("not", "every bit is turned over", f"{FIRST}s_not_b64 s[4:5], s[4:5]\n{READ}", None),
    Trap("quadmask", "s_wqm_b64 changes bits", f"{FIRST}s_wqm_b64 s[4:5], s[4:5]\n{READ}", None),
    Trap("packed", "s_pack_ll_b32_b16 joins two halves of words", f"{BOTH}s_pack_ll_b32_b16 s4, s4, s6\n{READ}", None),
    Trap("shifted", "a shifted pointer is no pointer", f"{FIRST}s_lshl_b64 s[4:5], s[4:5], 1\n{READ}", None),
    Trap("movk_high", "s_movk_i32 is a write too", f"{FIRST}s_movk_i32 s5, 0x12\n{READ}", None),
    Trap("mulk", "s_mulk_i32 reads and writes its operand", f"{FIRST}s_mulk_i32 s4, 0x3\n{READ}", None),
    Trap("getreg", "a hardware register is no pointer", f"{FIRST}s_getreg_b32 s4, hwreg(HW_REG_MODE)\n{READ}", None),
    Trap(
        "program_counter",
        "s_getpc_b64 overwrites the pair, and what lies there is code: kind",
        f"{FIRST}s_getpc_b64 s[4:5]\n{READ}",
        (),
    ),
    Trap(
        "call_overwrites",
        "the return address overwrites the pair, and is code: kind",
        f"{FIRST}s_call_b64 s[4:5], {{n}}_on\n{{n}}_on: {READ}",
        (),
    ),
    Trap("left_by_another_wave", "s[40:41] was never written", "s_load_b32 s20, s[40:41], 0x0\n", None),
    Trap(
        "wait_is_no_write",
        "s_waitcnt, s_nop and null change nothing: kind",
        f"{FIRST}s_nop 0\ns_mov_b32 null, s8\ns_mov_b32 m0, s8\n{READ}",
        (0,),
    ),
)

_VECTOR_WRITES = (
    Trap("readlane", "one lane's number", f"{FIRST}v_readlane_b32 s4, v1, 3\n{READ}", None),
    Trap(
        "readfirstlane",
        "a pointer chosen per lane and made uniform",
        f"{FIRST}v_readfirstlane_b32 s4, v1\nv_readfirstlane_b32 s5, v2\n{READ}",
        None,
    ),
    Trap("high_from_lane", "a lane's number as high half", f"{FIRST}v_readlane_b32 s5, v1, s8\n{READ}", None),
    Trap("compare_into_low", "v_cmp writes an SGPR", f"{FIRST}v_cmp_eq_u32 s4, v0, v1\n{READ}", None, waves=(32,)),
    Trap(
        "compare_into_vcc",
        "v_cmp writes VCC",
        "s_load_b64 vcc, s[0:1], 0x0\nv_cmp_eq_u32 vcc_lo, v0, v1\ns_load_b32 s20, vcc, 0x0\n",
        None,
        waves=(32,),
    ),
    Trap(
        "class_compare", "v_cmp_class writes an SGPR", f"{FIRST}v_cmp_class_f32 s5, v0, v1\n{READ}", None, waves=(32,)
    ),
    Trap(
        "carry_out",
        "VOP3B writes its carry to an SGPR",
        f"{FIRST}v_add_co_u32 v0, s4, v1, v2\n{READ}",
        None,
        waves=(32,),
    ),
    Trap(
        "carry_out_of_vop2",
        "the carry goes to VCC without being named as a scalar operand first",
        "s_load_b64 vcc, s[0:1], 0x0\nv_add_co_ci_u32 v0, vcc_lo, v1, v2, vcc_lo\ns_load_b32 s20, vcc, 0x0\n",
        None,
        waves=(32,),
    ),
    Trap(
        "division_scale",
        "v_div_scale writes a flag",
        f"{FIRST}v_div_scale_f32 v0, s5, v1, v2, v1\n{READ}",
        None,
        waves=(32,),
    ),
    Trap("compare_into_pair", "of 64 lanes", f"{FIRST}v_cmp_eq_u32 s[4:5], v0, v1\n{READ}", None, waves=(64,)),
    Trap("carry_out_pair", "of 64 lanes", f"{FIRST}v_add_co_u32 v0, s[4:5], v1, v2\n{READ}", None, waves=(64,)),
    Trap(
        "compare_into_vcc_pair",
        "of 64 lanes",
        "s_load_b64 vcc, s[0:1], 0x0\nv_cmp_eq_u32 vcc, v0, v1\ns_load_b32 s20, vcc, 0x0\n",
        None,
        waves=(64,),
    ),
    Trap("saveexec_pair", "of 64 lanes", f"{FIRST}{NUMBERS}s_and_saveexec_b64 s[4:5], s[8:9]\n{READ}", None),
    Trap("saveexec", "the old EXEC lands in the low half", f"{FIRST}{NUMBER}s_and_saveexec_b32 s4, s8\n{READ}", None),
    Trap("wrexec", "so does the new one", f"{FIRST}{NUMBER}s_andn2_wrexec_b32 s5, s8\n{READ}", None),
    Trap("compare_into_exec", "v_cmpx writes EXEC and no SGPR: kind", f"{FIRST}v_cmpx_eq_u32 v0, v1\n{READ}", (0,)),
    Trap(
        "exec_as_pointer",
        "EXEC is written by s_and_saveexec",
        "s_load_b64 s[8:9], s[0:1], 0x0\ns_mov_b64 exec, s[8:9]\ns_and_saveexec_b32 s10, s11\ns_mov_b64 s[4:5], exec\n"
        f"{READ}",
        None,
    ),
    Trap(
        "atomic_returns",
        "the old value is a pointer from memory",
        f"{FIRST}global_atomic_add_u32 v0, v1, v2, s[4:5] RETURNED\nv_readfirstlane_b32 s4, v0\n{READ}",
        None,
    ),
    Trap(
        "atomic_alone",
        "its old value goes to a vector register: kind",
        f"{FIRST}global_atomic_add_u32 v0, v1, v2, s[4:5] RETURNED\n",
        (),
        l2_args=(0,),
    ),
    Trap(
        "atomic_and_load",
        "the same argument is read by a plain load as well",
        f"{FIRST}global_atomic_add_u32 v0, v1, v2, s[4:5] RETURNED\nglobal_load_b32 v0, v1, s[4:5]\n",
        (),
    ),
    Trap(
        "spilled",
        "a pointer that went through lanes is a number: known and wide",
        f"{FIRST}v_writelane_b32 v9, s4, 0\nv_writelane_b32 v9, s5, 1\nv_readlane_b32 s10, v9, 0\n"
        "v_readlane_b32 s11, v9, 1\ns_load_b32 s20, s[10:11], 0x0\n",
        None,
    ),
)

_ADDRESSES = (
    Trap("numbers_alone", "kernargs at fixed places: kind", f"{BOTH}{NUMBERS}", ()),
    Trap(
        "kernarg_by_number",
        "a by-value array: kind",
        f"{NUMBER}s_lshl_b32 s8, s8, 2\ns_add_u32 s10, s0, s8\ns_addc_u32 s11, s1, 0\ns_load_b32 s20, s[10:11], 0x10\n",
        (),
    ),
    Trap("kernarg_by_register", "a number as offset: kind", f"{NUMBER}s_load_b32 s20, s[0:1], s8\n", ()),
    Trap(
        "kernarg_walk",
        "a loop over a by-value array: kind",
        "{n}_l: s_load_b32 s8, s[0:1], 0x0\ns_add_u32 s0, s0, 4\ns_addc_u32 s1, s1, 0\n"
        f"{COMPARE}s_cbranch_scc1 {{n}}_l\n",
        (),
    ),
    Trap(
        "pointer_by_number",
        "which argument it is cannot be known",
        f"{NUMBER}s_load_b64 s[4:5], s[0:1], s8\n{READ}",
        None,
    ),
    Trap("past_the_segment", "the load is of what lies behind", "s_load_b32 s20, s[0:1], 0x40\n", None),
    Trap("before_the_segment", "the load is of what lies in front", "s_load_b32 s20, s[0:1], -0x8\n", None),
    Trap("over_the_end", "the last dword lies behind the segment", "s_load_b128 s[20:23], s[0:1], 0x18\n", None),
    Trap("in_the_padding", "a slot is padded to 16 bytes: kind", "s_load_b64 s[20:21], s[0:1], 0x18\n", ()),
    Trap(
        "past_by_register",
        "a constant in a register is an offset like any other",
        "s_movk_i32 s8, 0x100\ns_load_b32 s20, s[0:1], s8\n",
        None,
    ),
    Trap(
        "register_is_unsigned",
        "-8 in a register is 4 GiB - 8",
        "s_load_b32 s8, s[0:1], 0x10\ns_mov_b32 s8, -8\ns_load_b32 s20, s[0:1], s8 offset:0x10\n",
        None,
    ),
    Trap(
        "minus_without_its_sign",
        "adding 0xfffffff8 and a carry is 4 GiB - 8",
        "s_add_u32 s10, s0, -8\ns_addc_u32 s11, s1, 0\ns_load_b32 s20, s[10:11], 0x10\n",
        None,
    ),
    Trap(
        "minus_with_another_sign",
        "the high half of -8 is the sign of a number, mostly 0",
        f"{FIRST}{NUMBER}s_ashr_i32 s9, s8, 31\ns_add_u32 s4, s4, -8\ns_addc_u32 s5, s5, s9\n{READ}",
        None,
    ),
    Trap(
        "minus_with_its_sign",
        "adding -8 and -1: kind",
        "s_add_u32 s10, s0, -8\ns_addc_u32 s11, s1, -1\ns_load_b32 s20, s[10:11], 0x10\n",
        (),
    ),
    Trap("four_gigabytes_up", "the high half is one more", "s_add_u32 s1, s1, 1\ns_load_b32 s20, s[0:1], 0x0\n", None),
    Trap(
        "halves_of_two_offsets",
        "4 GiB - 8 and its low half with another high half",
        "s_add_u32 s10, s0, -8\ns_addc_u32 s11, s1, 0\ns_mov_b32 s11, s1\ns_load_b32 s20, s[10:11], 0x0\n",
        None,
    ),
    Trap(
        "halves_of_two_joined_offsets",
        "the halves may come from different choices",
        f"{NUMBERS}s_mov_b32 s10, s0\ns_mov_b32 s11, s1\n{COMPARE}s_cbranch_scc1 {{n}}_j\n"
        "s_add_u32 s10, s0, -8\ns_addc_u32 s11, s1, 0\n{n}_j: s_mov_b32 s11, s1\ns_load_b32 s20, s[10:11], 0x0\n",
        None,
    ),
    Trap(
        "by_index",
        "argument and unsigned index: kind",
        f"{FIRST}{NUMBER}s_add_u32 s4, s4, s8\ns_addc_u32 s5, s5, 0\n{READ}",
        (0,),
    ),
    Trap(
        "by_signed_index",
        "argument and scaled signed index: kind",
        f"{FIRST}{NUMBER}s_ashr_i32 s9, s8, 31\ns_lshl_b64 s[8:9], s[8:9], 2\ns_add_u32 s4, s4, s8\n"
        f"s_addc_u32 s5, s5, s9\n{READ}",
        (0,),
    ),
    Trap("by_register", "an index as offset: kind", f"{FIRST}{NUMBER}s_load_b32 s20, s[4:5], s8 offset:0x10\n", (0,)),
    Trap(
        "by_loaded_index",
        "an index from memory: kind",
        f"{BOTH}s_load_b32 s8, s[6:7], 0x0\ns_lshl_b32 s8, s8, 2\ns_add_u32 s4, s4, s8\ns_addc_u32 s5, s5, 0\n{READ}",
        (0, 8),
    ),
    Trap(
        "advanced",
        "a loop advances the pointer: kind",
        f"{FIRST}{{n}}_l: {READ}s_add_u32 s4, s4, 4\ns_addc_u32 s5, s5, 0\ns_cmp_eq_u32 s20, 0\n"
        "s_cbranch_scc1 {n}_l\n",
        (0,),
    ),
    Trap(
        "advanced_by_number",
        "a loop advances it by a stride: kind",
        f"{FIRST}{NUMBER}{{n}}_l: {READ}s_add_u32 s4, s4, s8\ns_addc_u32 s5, s5, 0\ns_cmp_eq_u32 s20, 0\n"
        "s_cbranch_scc1 {n}_l\n",
        (0,),
    ),
    Trap(
        "taken_back",
        "a loop goes down: kind",
        f"{FIRST}{{n}}_l: {READ}s_add_u32 s4, s4, -4\ns_addc_u32 s5, s5, -1\ns_cmp_eq_u32 s20, 0\n"
        "s_cbranch_scc1 {n}_l\n",
        (0,),
    ),
    Trap(
        "advanced_without_carry",
        "the carry is lost in a loop",
        f"{FIRST}{{n}}_l: {READ}s_add_u32 s4, s4, 4\ns_cmp_eq_u32 s20, 0\ns_cbranch_scc1 {{n}}_l\n",
        None,
    ),
    Trap(
        "by_64_bit_number",
        "8 bytes from memory are as good as a pointer",
        f"{BOTH}s_load_b64 s[8:9], s[6:7], 0x0\ns_add_u32 s4, s4, s8\ns_addc_u32 s5, s5, s9\n{READ}",
        None,
    ),
    Trap(
        "by_64_bit_argument",
        "8 bytes of numbers among the arguments are an index: kind",
        f"{FIRST}{NUMBERS}s_add_u32 s4, s4, s8\ns_addc_u32 s5, s5, s9\n{READ}",
        (0,),
    ),
    Trap(
        "difference_of_pointers",
        "second + (first - second) is the first",
        f"{BOTH}s_sub_u32 s10, s4, s6\ns_subb_u32 s11, s5, s7\ns_add_u32 s10, s6, s10\ns_addc_u32 s11, s7, s11\n"
        "s_load_b32 s20, s[10:11], 0x0\n",
        None,
    ),
    Trap(
        "low_half_as_index",
        "an index that is half of another pointer",
        f"{BOTH}s_sub_u32 s10, s6, s4\ns_ashr_i32 s11, s10, 31\ns_add_u32 s4, s4, s10\ns_addc_u32 s5, s5, s11\n{READ}",
        None,
    ),
    Trap("sum_of_pointers", "two pointers", f"{BOTH}s_add_u32 s4, s4, s6\ns_addc_u32 s5, s5, s7\n{READ}", None),
    Trap(
        "index_of_another_sign",
        "a number is an index, whatever it is made of: kind",
        f"{FIRST}{NUMBERS}s_ashr_i32 s10, s9, 31\ns_add_u32 s4, s4, s8\ns_addc_u32 s5, s5, s10\n{READ}",
        (0,),
    ),
    Trap(
        "pointer_from_memory",
        "a value from memory has no argument",
        f"{FIRST}s_load_b64 s[4:5], s[4:5], 0x18\n{READ}",
        None,
    ),
    Trap(
        "pointer_from_two_loads",
        "nor have two halves of one",
        f"{FIRST}s_load_b32 s10, s[4:5], 0x0\ns_load_b32 s11, s[4:5], 0x4\ns_load_b32 s20, s[10:11], 0x0\n",
        None,
    ),
    Trap(
        "descriptor",
        "a buffer resource made from an argument: kind",
        f"{FIRST}s_mov_b32 s6, -1\ns_mov_b32 s7, 0x31014000\ns_buffer_load_b32 s20, s[4:7], 0x0\n",
        (0,),
    ),
    Trap(
        "descriptor_from_memory",
        "a buffer resource from memory",
        f"{FIRST}s_load_b128 s[4:7], s[4:5], 0x0\ns_buffer_load_b32 s20, s[4:7], 0x0\n",
        None,
    ),
    Trap(
        "descriptor_overwritten",
        "its base is a lane's number",
        f"{FIRST}v_readfirstlane_b32 s4, v0\ns_mov_b32 s6, -1\ns_mov_b32 s7, 0x31014000\n"
        "s_buffer_load_b32 s20, s[4:7], 0x0\n",
        None,
    ),
    Trap(
        "dispatch_packet",
        "s[0:1] is the dispatch packet here",
        "s_load_b32 s20, s[0:1], 0x4\n",
        None,
        directives=("user_sgpr_dispatch_ptr 1",),
    ),
    Trap(
        "behind_the_dispatch_packet",
        "the kernarg pointer is s[2:3] here: kind",
        "s_load_b32 s20, s[2:3], 0x10\n",
        (),
        directives=("user_sgpr_dispatch_ptr 1",),
    ),
    Trap(
        "no_kernarg_pointer",
        "the descriptor asks for none",
        "s_load_b32 s20, s[0:1], 0x0\n",
        None,
        directives=("user_sgpr_kernarg_segment_ptr 0",),
    ),
    Trap(
        "constant_table",
        "bytes that nothing writes: kind",
        "s_getpc_b64 s[10:11]\ns_add_u32 s10, s10, fixed@rel32@lo+4\ns_addc_u32 s11, s11, fixed@rel32@hi+12\n"
        "s_load_b32 s20, s[10:11], 0x4\n",
        (),
    ),
    Trap(
        "variable",
        "bytes that a kernel may write",
        "s_getpc_b64 s[10:11]\ns_add_u32 s10, s10, counter@rel32@lo+4\ns_addc_u32 s11, s11, counter@rel32@hi+12\n"
        "s_load_b32 s20, s[10:11], 0x0\n",
        None,
        undeclared=True,
    ),
    Trap(
        "past_the_table",
        "constant bytes end, and what follows is the dispatcher's",
        "s_getpc_b64 s[10:11]\ns_add_u32 s10, s10, fixed@rel32@lo+0x100004\n"
        "s_addc_u32 s11, s11, fixed@rel32@hi+0x10000c\ns_load_b32 s20, s[10:11], 0x0\n",
        None,
    ),
    Trap(
        "kernarg_through_lanes",
        "a by-value array by lane: a vector load, of kernargs",
        "global_load_b32 v1, v0, s[0:1] offset:16\n",
        (),
        kernarg_vector_loads=True,
    ),
    Trap(
        "vector_pointer_from_memory",
        "memory that no argument carries, by a vector load",
        f"{FIRST}global_load_b64 v[2:3], v0, s[4:5]\nglobal_load_b32 v1, v[2:3], off\n",
        (),
        undeclared=True,
    ),
    Trap(
        "vector_argument_or_loaded",
        "the argument, or a pointer that lies in it: memory that no argument carries",
        f"{FIRST}{NUMBER}{COMPARE}s_cbranch_scc1 {{n}}_j\ns_load_b64 s[4:5], s[4:5], 0x0\n"
        "{n}_j: global_load_b32 v1, v0, s[4:5]\n",
        (0,),
        kernarg_vector_loads=True,
        undeclared=True,
    ),
    Trap(
        "vector_select_of_loaded",
        "each lane takes the argument or a pointer from memory",
        f"{BOTH}global_load_b64 v[2:3], v0, s[6:7]\nv_mov_b32 v4, s4\nv_mov_b32 v5, s5\n"
        "v_cmp_eq_u32 vcc_lo, v0, v1\nv_cndmask_b32 v4, v4, v2, vcc_lo\nv_cndmask_b32 v5, v5, v3, vcc_lo\n"
        "global_load_b32 v1, v[4:5], off\n",
        (),
        kernarg_vector_loads=True,
        undeclared=True,
        waves=(32,),
    ),
    Trap(
        "vector_list",
        "a loop follows pointers in memory from an argument on",
        f"{FIRST}v_mov_b32 v4, s4\nv_mov_b32 v5, s5\n{{n}}_l: global_load_b64 v[4:5], v[4:5], off\n"
        "s_cbranch_vccnz {n}_l\n",
        (),
        kernarg_vector_loads=True,
        undeclared=True,
    ),
    Trap(
        "vector_kernarg_or_variable",
        "a lane reads its arguments or a variable",
        f"{NUMBER}s_getpc_b64 s[10:11]\ns_add_u32 s10, s10, counter@rel32@lo+4\n"
        f"s_addc_u32 s11, s11, counter@rel32@hi+12\n{COMPARE}s_cselect_b64 s[10:11], s[10:11], s[0:1]\n"
        "global_load_b32 v1, v0, s[10:11]\n",
        (),
        kernarg_vector_loads=True,
        undeclared=True,
    ),
    Trap(
        "vector_by_loaded_index",
        "an index from memory is no other pointer: kind",
        f"{BOTH}global_load_b32 v2, v0, s[6:7]\nv_ashrrev_i32 v3, 31, v2\nv_lshlrev_b64 v[2:3], 2, v[2:3]\n"
        "v_add_co_u32 v2, vcc_lo, s4, v2\nv_add_co_ci_u32 v3, vcc_lo, s5, v3, vcc_lo\n"
        "global_load_b32 v1, v[2:3], off\n",
        (),
        waves=(32,),
    ),
    Trap(
        "added_at_once",
        "s_add_nc_u64 needs no carry: kind",
        f"{FIRST}{NUMBER}s_mov_b32 s9, 0\ns_add_nc_u64 s[4:5], s[4:5], s[8:9]\n{READ}",
        (0,),
        targets=("gfx1201",),
    ),
    Trap(
        "prefetch",
        "s_prefetch_data reads nothing into registers: kind",
        f"{FIRST}s_prefetch_data s[4:5], 0x0, s8, 0\n",
        (),
        targets=("gfx1201",),
    ),
    Trap(
        "small_load", "s_load_u8 is a scalar load", f"{FIRST}s_load_u8 s20, s[4:5], 0x3\n", (0,), targets=("gfx1201",)
    ),
    Trap(
        "message",
        "s_sendmsg_rtn_b64 writes a pair",
        f"{FIRST}s_sendmsg_rtn_b64 s[4:5], sendmsg(MSG_RTN_GET_REALTIME)\n{READ}",
        None,
        targets=("gfx1100", "gfx1201"),
    ),
    Trap("clock", "s_memtime writes a pair", f"{FIRST}s_memtime s[4:5]\n{READ}", None, targets=("gfx1030",)),
)

TRAPS: dict[str, Trap] = {
    trap.name: trap for trap in (*_PATHS, *_CALLS, *_HALVES, *_SCALAR, *_VECTOR_WRITES, *_ADDRESSES)
}

#: What the traps about constants and variables name; no index reaches from the one to the other.
DATA = """.section .rodata.fixed,"a"
.p2align 4
fixed: .long 1, 2, 3, 4
.data
.space 65536
.p2align 2
.globl counter
.type counter,@object
.size counter, 4
counter: .long 7
"""
