# SPDX-License-Identifier: Apache-2.0
"""What scalar arithmetic does to the registers of a wave, carry and SCC included.

Source: AMD's RDNA1 to RDNA4 instruction set documents, SOP1, SOP2, SOPC and SOPK.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.radiowave.scalar_memory import FROM_NUMBER
from tests.radiowave.wave_registers import (
    EXEC,
    LONG,
    M0,
    NULL,
    WORD,
    Form,
    Machine,
    Number,
    Step,
    register,
    signed,
    source_of,
    target_of,
    words_of,
)

# Binary: the result, and SCC after it (None: as it was). `c` is SCC before.
_Result = tuple[int, int | None]
_Binary = Callable[[int, int, int], _Result]


def _nonzero(bits: int, value: int) -> _Result:
    value &= (1 << bits) - 1
    return value, int(value != 0)


def _sum(a: int, b: int, c: int) -> _Result:
    return a + b + c, a + b + c >> 32


def _difference(a: int, b: int, c: int) -> _Result:
    return a - b - c, int(b + c > a)


def _signed_sum(a: int, b: int) -> _Result:
    value = signed(a) + signed(b)
    return value, int(not -(1 << 31) <= value < 1 << 31)


def _signed_difference(a: int, b: int) -> _Result:
    value = signed(a) - signed(b)
    return value, int(not -(1 << 31) <= value < 1 << 31)


def _field(value: int, b: int, bits: int, is_signed: bool) -> _Result:
    offset, width = b & (bits - 1), min(b >> 16 & 0x7F, bits)
    value = value >> offset & (1 << width) - 1
    return _nonzero(bits, signed(value, width) if is_signed and width else value)


_BINARY: dict[str, _Binary] = {
    "s_add_u32": lambda a, b, c: _sum(a, b, 0),
    "s_addc_u32": _sum,
    "s_sub_u32": lambda a, b, c: _difference(a, b, 0),
    "s_subb_u32": _difference,
    "s_add_i32": lambda a, b, c: _signed_sum(a, b),
    "s_sub_i32": lambda a, b, c: _signed_difference(a, b),
    "s_mul_i32": lambda a, b, c: (a * b, None),
    "s_mul_hi_u32": lambda a, b, c: (a * b >> 32, None),
    "s_and_b32": lambda a, b, c: _nonzero(32, a & b),
    "s_and_b64": lambda a, b, c: _nonzero(64, a & b),
    "s_or_b32": lambda a, b, c: _nonzero(32, a | b),
    "s_or_b64": lambda a, b, c: _nonzero(64, a | b),
    "s_xor_b32": lambda a, b, c: _nonzero(32, a ^ b),
    "s_xor_b64": lambda a, b, c: _nonzero(64, a ^ b),
    "s_andn2_b32": lambda a, b, c: _nonzero(32, a & ~b),
    "s_andn2_b64": lambda a, b, c: _nonzero(64, a & ~b),
    "s_lshl_b32": lambda a, b, c: _nonzero(32, a << (b & 31)),
    "s_lshr_b32": lambda a, b, c: _nonzero(32, a >> (b & 31)),
    "s_ashr_i32": lambda a, b, c: _nonzero(32, signed(a) >> (b & 31)),
    "s_lshl_b64": lambda a, b, c: _nonzero(64, a << (b & 63)),
    "s_lshr_b64": lambda a, b, c: _nonzero(64, a >> (b & 63)),
    "s_ashr_i64": lambda a, b, c: _nonzero(64, signed(a, 64) >> (b & 63)),
    "s_lshl2_add_u32": lambda a, b, c: ((a << 2) + b, int((a << 2) + b > WORD)),
    "s_bfe_u32": lambda a, b, c: _field(a, b, 32, False),
    "s_bfe_i64": lambda a, b, c: _field(a, b, 64, True),
    "s_bfm_b32": lambda a, b, c: ((1 << (a & 31)) - 1 << (b & 31), None),
    "s_bfm_b64": lambda a, b, c: ((1 << (a & 63)) - 1 << (b & 63), None),
    "s_pack_ll_b32_b16": lambda a, b, c: (a & 0xFFFF | (b & 0xFFFF) << 16, None),
    "s_pack_lh_b32_b16": lambda a, b, c: (a & 0xFFFF | b & 0xFFFF0000, None),
    "s_add_nc_u64": lambda a, b, c: (a + b, None),
    "s_sub_nc_u64": lambda a, b, c: (a - b, None),
}
#: Whose second source is a count or a field; whose first one is, too.
_NARROW_SECOND = {"s_lshl_b64", "s_lshr_b64", "s_ashr_i64", "s_bfe_u64", "s_bfe_i64", "s_bfm_b64"}
_READS_CARRY = {"s_addc_u32", "s_subb_u32"}
_GIVES_CARRY = {"s_add_u32", "s_addc_u32", "s_sub_u32", "s_subb_u32"}


def _binary(name: str, operands: list[str]) -> Step:
    words, compute = words_of(name), _BINARY[name]
    first = source_of(operands[1], 1 if name == "s_bfm_b64" else words)
    second = source_of(operands[2], 1 if name in _NARROW_SECOND else words)
    target, mask = target_of(operands[0]), LONG if words == 2 else WORD

    def step(machine: Machine) -> None:
        a, b, scc = first(machine), second(machine), machine.scc
        taint = a.taint | b.taint | (scc.taint if name in _READS_CARRY else 0)
        value, flag = compute(a.value, b.value, scc.value)
        machine.write(target, Number(value & mask, taint), words)
        if flag is not None:
            machine.scc = Number(flag, taint & ~FROM_NUMBER if name in _GIVES_CARRY else 0)

    return step


# Unary: the result of a source, and SCC after it.
_UNARY: dict[str, Callable[[int], _Result]] = {
    "s_not_b32": lambda a: _nonzero(32, ~a),
    "s_not_b64": lambda a: _nonzero(64, ~a),
    "s_brev_b32": lambda a: (int(f"{a:032b}"[::-1], 2), None),
    "s_sext_i32_i16": lambda a: (signed(a & 0xFFFF, 16), None),
    "s_sext_i32_i8": lambda a: (signed(a & 0xFF, 8), None),
    "s_movk_i32": lambda a: (signed(a & 0xFFFF, 16), None),
}


def _unary(name: str, operands: list[str]) -> Step:
    words, compute = words_of(name), _UNARY[name]
    source, target, mask = source_of(operands[1], words), target_of(operands[0]), LONG if words == 2 else WORD

    def step(machine: Machine) -> None:
        a = source(machine)
        value, flag = compute(a.value)
        machine.write(target, Number(value & mask, a.taint), words)
        if flag is not None:
            machine.scc = Number(flag)

    return step


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "s_cmp_eq_u32": lambda a, b: a == b,
    "s_cmp_lg_u32": lambda a, b: a != b,
    "s_cmp_lt_u32": lambda a, b: a < b,
    "s_cmp_gt_i32": lambda a, b: signed(a) > signed(b),
    "s_cmp_eq_u64": lambda a, b: a == b,
    "s_cmp_lg_u64": lambda a, b: a != b,
    "s_bitcmp1_b32": lambda a, b: bool(a >> (b & 31) & 1),
}


def _compare(name: str, operands: list[str]) -> Step:
    compute = _COMPARE[name]
    first, second = (source_of(operand, words_of(name)) for operand in operands)

    def step(machine: Machine) -> None:
        machine.scc = Number(int(compute(first(machine).value, second(machine).value)))

    return step


def _copy(machine: Machine, target: int, source: str, words: int) -> None:
    """Half by half, each with its own taint."""
    index = register(source)
    if index is None or index == NULL:
        machine.write(target, source_of(source, words)(machine), words)
        return
    for n, number in enumerate([machine.scalars[index + n] for n in range(words)]):
        machine.write(target + n if target != NULL else NULL, number)


def _move(name: str, operands: list[str]) -> Step:
    target, words = target_of(operands[0]), words_of(name)
    return lambda machine: _copy(machine, target, operands[1], words)


def _select(name: str, operands: list[str]) -> Step:
    target, words = target_of(operands[0]), words_of(name)
    return lambda machine: _copy(machine, target, operands[1 if machine.scc.value else 2], words)


def _conditional_move(name: str, operands: list[str]) -> Step:
    target, words = target_of(operands[0]), words_of(name)

    def step(machine: Machine) -> None:
        if not machine.scc.value:
            return
        if name == "s_cmovk_i32":
            machine.write(target, Number(signed(int(operands[1], 0) & 0xFFFF, 16) & WORD))
        else:
            _copy(machine, target, operands[1], words)

    return step


def _indexed_move(name: str, operands: list[str]) -> Step:
    """s_movreld writes the register M0 behind its target, s_movrels reads the one M0 behind its source."""
    target, source, words = target_of(operands[0]), target_of(operands[1]), words_of(name)

    def step(machine: Machine) -> None:
        m0 = machine.scalars[M0].value
        to, start = (target + m0, source) if name.startswith("s_movreld") else (target, source + m0)
        if max(to, start) + words <= 106:  # beyond the SGPRs: nothing is written here, as nothing is known
            _copy(machine, to, f"s{start}" if words == 1 else f"s[{start}:{start + 1}]", words)

    return step


def _constant_update(name: str, operands: list[str]) -> Step:
    target, constant = target_of(operands[0]), signed(int(operands[1], 0) & 0xFFFF, 16)

    def step(machine: Machine) -> None:
        old = machine.scalars[target]
        if name == "s_mulk_i32":
            machine.write(target, Number(old.value * constant & WORD, old.taint))
            return
        value, flag = _signed_sum(old.value, constant & WORD)
        machine.write(target, Number(value & WORD, old.taint))
        machine.scc = Number(flag or 0)

    return step


def _bit_set(name: str, operands: list[str]) -> Step:
    target, source, words = target_of(operands[0]), source_of(operands[1]), words_of(name)

    def step(machine: Machine) -> None:
        old, bit = machine.read(target, words), source(machine)
        mask = 1 << (bit.value & (32 * words - 1))
        value = old.value | mask if "set1" in name else old.value & ~mask
        machine.write(target, Number(value, old.taint | bit.taint), words)

    return step


def _save_exec(name: str, operands: list[str]) -> Step:
    target, source = target_of(operands[0]), source_of(operands[1])

    def step(machine: Machine) -> None:
        mask, old = source(machine), machine.scalars[EXEC]
        value = old.value & mask.value if "and" in name else old.value | mask.value
        machine.write(EXEC, Number(value, old.taint | mask.taint))
        machine.write(target, old)
        machine.scc = Number(int(value != 0))

    return step


#: Names of instructions, and what makes a step of one.
SCALAR_FORMS: tuple[tuple[Iterable[str], Form], ...] = (
    (_BINARY, _binary),
    (_UNARY, _unary),
    (_COMPARE, _compare),
    (("s_mov_b32", "s_mov_b64"), _move),
    (("s_cselect_b32", "s_cselect_b64"), _select),
    (("s_cmov_b32", "s_cmov_b64", "s_cmovk_i32"), _conditional_move),
    (("s_movreld_b32", "s_movreld_b64", "s_movrels_b32", "s_movrels_b64"), _indexed_move),
    (("s_addk_i32", "s_mulk_i32"), _constant_update),
    (("s_bitset0_b32", "s_bitset1_b32", "s_bitset0_b64", "s_bitset1_b64"), _bit_set),
    (("s_and_saveexec_b32", "s_or_saveexec_b32"), _save_exec),
)
