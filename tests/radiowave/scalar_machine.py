# SPDX-License-Identifier: Apache-2.0
"""Run one wave of a kernel on real numbers and note where each load went: the judge of what a certificate says.

Executes LLVM's text of the linked code, so program counters are those of the object. Every 32-bit register carries,
beside its number, the pointers that it was computed from (taint). Two of the lanes are modelled. Stores change nothing:
what a load brings is a function of address and seed. Shares no code with the certifier, nor with the software device.
Source: AMD's RDNA1 to RDNA4 instruction set documents, SOP2 to SMEM; carry, borrow and SCC as written there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from radiowave import Instruction
from tests.radiowave.scalar_memory import CODE, FROM_CODE, FROM_NUMBER, Memory

WORD, LONG = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
VCC, M0, NULL, EXEC = 106, 124, 125, 126
LANES = 2
_NAMED = {"vcc_lo": VCC, "vcc_hi": VCC + 1, "m0": M0, "null": NULL, "exec_lo": EXEC, "exec_hi": EXEC + 1}
_PAIRS = {"vcc": VCC, "exec": EXEC}


class Access(NamedTuple):
    """One load or store that was executed; the address without the bits that the hardware drops. `high` is the taint of
    the base's upper half alone."""

    pc: int
    address: int
    nbytes: int
    taint: int
    high: int
    is_scalar: bool


class Number(NamedTuple):
    """A value and what it was computed from."""

    value: int
    taint: int = 0


class UnknownTextError(Exception):
    """The machine does not know an instruction: the generator must not write it, or it belongs in here."""


@dataclass
class Machine:
    """The registers of one wave and its accesses so far."""

    memory: Memory
    scalars: list[Number] = field(default_factory=lambda: [Number(0)] * 128)
    vectors: list[list[Number]] = field(default_factory=lambda: [[Number(0)] * 64 for _ in range(LANES)])
    scc: Number = field(default_factory=lambda: Number(0))
    accesses: list[Access] = field(default_factory=list)

    def read(self, index: int, words: int = 1) -> Number:
        """One or two scalar registers."""
        low = self.scalars[index]
        if words == 1:
            return low
        high = self.scalars[index + 1] if index != NULL else Number(0)
        return Number(low.value | high.value << 32, low.taint | high.taint)

    def write(self, index: int, number: Number, words: int = 1) -> None:
        """One or two scalar registers; the two keep one taint."""
        for n in range(words):
            if index != NULL:
                self.scalars[index + n] = Number(number.value >> 32 * n & WORD, number.taint)

    def active(self) -> Iterable[int]:
        """The lanes that vector instructions write."""
        return [lane for lane in range(LANES) if self.scalars[EXEC].value >> lane & 1]


Step = Callable[[Machine], int | None]  # the next program counter, where it is not simply the next instruction


def run(steps: Mapping[int, tuple[Step, int]], machine: Machine, entry: int, fuel: int) -> int:
    """Execute until the end of the program, an address without code, or `fuel` instructions; how many were executed."""
    pc = entry
    for executed in range(fuel):
        found = steps.get(pc)
        if found is None:
            return executed
        step, following = found
        jump = step(machine)
        pc = following if jump is None else jump
    return fuel


def steps_of(listing: Iterable[Instruction]) -> dict[int, tuple[Step, int]]:
    """What each instruction does, and the address behind it. Where the text is unknown, executing it raises."""
    return {i.pc: (_step(i.text, i.pc, i.length), i.pc + i.length) for i in listing if i.text not in _ENDS}


_ENDS = ("s_endpgm", "s_code_end", "")


def _step(text: str, pc: int, length: int) -> Step:
    name, _, rest = text.partition(" ")
    if name in _CONTROL:
        return _control(name, rest, pc, pc + length)
    if name.startswith(("s_load_", "s_buffer_load_", "global_")):
        return _memory_step(name, rest, pc)
    return _plain_step(text)


@lru_cache(maxsize=1 << 16)
def _plain_step(text: str) -> Step:
    name, _, rest = text.partition(" ")
    name = _SAME.get(name, name).removesuffix("_e32").removesuffix("_e64")
    operands = rest.split(", ") if rest else []
    for table, make in _FORMS:
        if name in table:
            return make(name, operands)
    if name in _NOTHING:
        return lambda machine: None

    def unknown(machine: Machine) -> None:
        raise UnknownTextError(text)

    return unknown


_NOTHING = {"s_nop", "s_waitcnt", "s_wait_kmcnt", "s_waitcnt_depctr", "s_sleep", "s_prefetch_data"}
# gfx11's and gfx12's names for what gfx10 calls otherwise.
_SAME = {
    "s_add_co_u32": "s_add_u32",
    "s_add_co_ci_u32": "s_addc_u32",
    "s_sub_co_u32": "s_sub_u32",
    "s_sub_co_ci_u32": "s_subb_u32",
    "s_add_co_i32": "s_add_i32",
    "s_sub_co_i32": "s_sub_i32",
    "s_addk_co_i32": "s_addk_i32",
    "s_and_not1_b32": "s_andn2_b32",
    "s_and_not1_b64": "s_andn2_b64",
}


def register(text: str) -> int | None:
    """The number of a scalar register, or of the first of several."""
    if text in _NAMED:
        return _NAMED[text]
    if text in _PAIRS:
        return _PAIRS[text]
    found = re.fullmatch(r"s\[?(\d+)(?::\d+\])?", text)
    return int(found[1]) if found else None


def _vector(text: str) -> int:
    found = re.fullmatch(r"v\[?(\d+)(?::\d+\])?", text)
    if found is None:
        raise UnknownTextError(text)
    return int(found[1])


def _source(text: str, words: int = 1) -> Callable[[Machine], Number]:
    index = register(text)
    if index == NULL:
        return lambda machine: Number(0)
    if index is not None:
        return lambda machine: machine.read(index, words)
    # A small number is sign-extended, a literal (printed as hexadecimal) is not.
    constant = Number(int(text, 0) & (WORD if words == 1 else LONG))
    return lambda machine: constant


def _target(text: str) -> int:
    index = register(text)
    if index is None:
        raise UnknownTextError(text)
    return index


def _signed(value: int, bits: int = 32) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def _words(name: str) -> int:
    return 2 if name.endswith(("64", "64_b32")) else 1


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
    value = _signed(a) + _signed(b)
    return value, int(not -(1 << 31) <= value < 1 << 31)


def _field(value: int, b: int, bits: int, signed: bool) -> _Result:
    offset, width = b & (bits - 1), min(b >> 16 & 0x7F, bits)
    value = value >> offset & (1 << width) - 1
    return _nonzero(bits, _signed(value, width) if signed and width else value)


_BINARY: dict[str, _Binary] = {
    "s_add_u32": lambda a, b, c: _sum(a, b, 0),
    "s_addc_u32": _sum,
    "s_sub_u32": lambda a, b, c: _difference(a, b, 0),
    "s_subb_u32": _difference,
    "s_add_i32": lambda a, b, c: _signed_sum(a, b),
    "s_sub_i32": lambda a, b, c: _signed_sum(a, -b & WORD) if b != 1 << 31 else (a - b, None),
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
    "s_ashr_i32": lambda a, b, c: _nonzero(32, _signed(a) >> (b & 31)),
    "s_lshl_b64": lambda a, b, c: _nonzero(64, a << (b & 63)),
    "s_lshr_b64": lambda a, b, c: _nonzero(64, a >> (b & 63)),
    "s_ashr_i64": lambda a, b, c: _nonzero(64, _signed(a, 64) >> (b & 63)),
    "s_lshl2_add_u32": lambda a, b, c: ((a << 2) + b, int((a << 2) + b > WORD)),
    "s_bfe_u32": lambda a, b, c: _field(a, b, 32, False),
    "s_bfe_i32": lambda a, b, c: _field(a, b, 32, True),
    "s_bfe_u64": lambda a, b, c: _field(a, b, 64, False),
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
    words, compute = _words(name), _BINARY[name]
    first = _source(operands[1], 1 if name == "s_bfm_b64" else words)
    second = _source(operands[2], 1 if name in _NARROW_SECOND else words)
    target, mask = _target(operands[0]), LONG if words == 2 else WORD

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
    "s_sext_i32_i16": lambda a: (_signed(a & 0xFFFF, 16), None),
    "s_sext_i32_i8": lambda a: (_signed(a & 0xFF, 8), None),
    "s_movk_i32": lambda a: (_signed(a & 0xFFFF, 16), None),
}


def _unary(name: str, operands: list[str]) -> Step:
    words, compute = _words(name), _UNARY[name]
    source, target, mask = _source(operands[1], words), _target(operands[0]), LONG if words == 2 else WORD

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
    "s_cmp_gt_i32": lambda a, b: _signed(a) > _signed(b),
    "s_cmp_eq_u64": lambda a, b: a == b,
    "s_cmp_lg_u64": lambda a, b: a != b,
    "s_bitcmp1_b32": lambda a, b: bool(a >> (b & 31) & 1),
}


def _compare(name: str, operands: list[str]) -> Step:
    compute = _COMPARE[name]
    first, second = (_source(operand, _words(name)) for operand in operands)

    def step(machine: Machine) -> None:
        machine.scc = Number(int(compute(first(machine).value, second(machine).value)))

    return step


def _copy(machine: Machine, target: int, source: str, words: int) -> None:
    """Half by half, each with its own taint."""
    index = register(source)
    if index is None or index == NULL:
        machine.write(target, _source(source, words)(machine), words)
        return
    for n, number in enumerate([machine.scalars[index + n] for n in range(words)]):
        machine.write(target + n if target != NULL else NULL, number)


def _move(name: str, operands: list[str]) -> Step:
    target, words = _target(operands[0]), _words(name)
    return lambda machine: _copy(machine, target, operands[1], words)


def _select(name: str, operands: list[str]) -> Step:
    target, words = _target(operands[0]), _words(name)
    return lambda machine: _copy(machine, target, operands[1 if machine.scc.value else 2], words)


def _conditional_move(name: str, operands: list[str]) -> Step:
    target, words = _target(operands[0]), _words(name)

    def step(machine: Machine) -> None:
        if not machine.scc.value:
            return
        if name == "s_cmovk_i32":
            machine.write(target, Number(_signed(int(operands[1], 0) & 0xFFFF, 16) & WORD))
        else:
            _copy(machine, target, operands[1], words)

    return step


def _indexed_move(name: str, operands: list[str]) -> Step:
    """s_movreld writes the register M0 behind its target, s_movrels reads the one M0 behind its source."""
    target, source, words = _target(operands[0]), _target(operands[1]), _words(name)

    def step(machine: Machine) -> None:
        m0 = machine.scalars[M0].value
        to, start = (target + m0, source) if name.startswith("s_movreld") else (target, source + m0)
        if max(to, start) + words <= 106:  # beyond the SGPRs: nothing is written here, as nothing is known
            _copy(machine, to, f"s{start}" if words == 1 else f"s[{start}:{start + 1}]", words)

    return step


def _constant_update(name: str, operands: list[str]) -> Step:
    target, constant = _target(operands[0]), _signed(int(operands[1], 0) & 0xFFFF, 16)

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
    target, source, words = _target(operands[0]), _source(operands[1]), _words(name)

    def step(machine: Machine) -> None:
        old, bit = machine.read(target, words), source(machine)
        mask = 1 << (bit.value & (32 * words - 1))
        value = old.value | mask if "set1" in name else old.value & ~mask
        machine.write(target, Number(value, old.taint | bit.taint), words)

    return step


def _save_exec(name: str, operands: list[str]) -> Step:
    target, source = _target(operands[0]), _source(operands[1])

    def step(machine: Machine) -> None:
        mask, old = source(machine), machine.scalars[EXEC]
        value = old.value & mask.value if "and" in name else old.value | mask.value
        machine.write(EXEC, Number(value, old.taint | mask.taint))
        machine.write(target, old)
        machine.scc = Number(int(value != 0))

    return step


# Vector instructions: `v` operands are registers of each lane.


def _lane_source(text: str) -> Callable[[Machine, int], Number]:
    if text.startswith("v") and not text.startswith("vcc"):
        index = _vector(text)
        return lambda machine, lane: machine.vectors[lane][index]
    scalar = _source(text)
    return lambda machine, lane: scalar(machine)


def _vector_move(name: str, operands: list[str]) -> Step:
    target, sources = _vector(operands[0]), [_lane_source(operand) for operand in operands[1:]]

    def step(machine: Machine) -> None:
        for lane in machine.active():
            numbers = [source(machine, lane) for source in sources]
            taint = numbers[0].taint | numbers[-1].taint
            value = sum(number.value for number in numbers) & WORD  # one source: a move, two: v_add_nc_u32
            machine.vectors[lane][target] = Number(value, taint)

    return step


def _read_lane(name: str, operands: list[str]) -> Step:
    target, vector = _target(operands[0]), _vector(operands[1])
    chosen = _source(operands[2]) if len(operands) == 3 else None

    def step(machine: Machine) -> None:
        active = list(machine.active()) or [0]
        lane = (active[0] if chosen is None else chosen(machine).value) % 32
        machine.write(target, machine.vectors[lane][vector] if lane < LANES else Number(0))

    return step


def _write_lane(name: str, operands: list[str]) -> Step:
    target, source, chosen = _vector(operands[0]), _source(operands[1]), _source(operands[2])

    def step(machine: Machine) -> None:
        lane = chosen(machine).value % 32
        if lane < LANES:
            machine.vectors[lane][target] = source(machine)

    return step


def _lane_compare(name: str, operands: list[str]) -> Step:
    target, first, second = _target(operands[0]), _lane_source(operands[1]), _lane_source(operands[2])

    def step(machine: Machine) -> None:
        pairs = {lane: (first(machine, lane), second(machine, lane)) for lane in machine.active()}
        value = sum(1 << lane for lane, (a, b) in pairs.items() if (a.value == b.value) == ("_eq_" in name))
        machine.write(target, Number(value))

    return step


def _lane_carry(name: str, operands: list[str]) -> Step:
    vector, target = _vector(operands[0]), _target(operands[1])
    first, second = _lane_source(operands[2]), _lane_source(operands[3])

    def step(machine: Machine) -> None:
        carries = 0
        for lane in machine.active():
            a, b = first(machine, lane), second(machine, lane)
            carries |= (a.value + b.value >> 32) << lane
            machine.vectors[lane][vector] = Number(a.value + b.value & WORD, a.taint | b.taint)
        machine.write(target, Number(carries))

    return step


_Form = Callable[[str, list[str]], Step]
_FORMS: tuple[tuple[Iterable[str], _Form], ...] = (
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
    (("v_mov_b32", "v_add_nc_u32"), _vector_move),
    (("v_readlane_b32", "v_readfirstlane_b32"), _read_lane),
    (("v_writelane_b32",), _write_lane),
    (("v_cmp_eq_u32", "v_cmp_ne_u32"), _lane_compare),
    (("v_add_co_u32",), _lane_carry),
)

# Control flow. Program counters in registers are real addresses, those of the object are addresses in its file.

_CONTROL = {"s_branch", "s_getpc_b64", "s_setpc_b64", "s_swappc_b64", "s_call_b64"} | {
    f"s_cbranch_{condition}" for condition in ("scc0", "scc1", "vccz", "vccnz", "execz", "execnz")
}
_CONDITIONS: dict[str, Callable[[Machine], bool]] = {
    "scc0": lambda machine: not machine.scc.value,
    "scc1": lambda machine: bool(machine.scc.value),
    "vccz": lambda machine: not machine.scalars[VCC].value,
    "vccnz": lambda machine: bool(machine.scalars[VCC].value),
    "execz": lambda machine: not machine.scalars[EXEC].value,
    "execnz": lambda machine: bool(machine.scalars[EXEC].value),
}


def _control(name: str, rest: str, pc: int, following: int) -> Step:
    operands = rest.split(", ")
    here = Number(CODE + following, FROM_CODE)
    if name == "s_getpc_b64":
        return lambda machine: machine.write(_target(operands[0]), here, 2)
    if name == "s_setpc_b64":
        return lambda machine: machine.read(_target(operands[0]), 2).value - CODE
    if name == "s_swappc_b64":
        return lambda machine: _swap(machine, _target(operands[0]), here, _target(operands[1]))
    place = following + 4 * _signed(int(operands[-1], 0) & 0xFFFF, 16)
    if name == "s_branch":
        return lambda machine: place
    if name == "s_call_b64":
        return lambda machine: _call(machine, _target(operands[0]), here, place)
    condition = _CONDITIONS[name.removeprefix("s_cbranch_")]
    return lambda machine: place if condition(machine) else None


def _call(machine: Machine, back: int, here: Number, place: int) -> int:
    machine.write(back, here, 2)
    return place


def _swap(machine: Machine, back: int, here: Number, to: int) -> int:
    place = machine.read(to, 2).value - CODE
    machine.write(back, here, 2)
    return place


# Memory.

_WIDTHS = {"b32": 1, "b64": 2, "b128": 4, "b256": 8, "dword": 1, "dwordx2": 2, "dwordx4": 4, "dwordx8": 8}


def _memory_step(name: str, rest: str, pc: int) -> Step:
    offset = re.search(r" offset:(-?\w+)", rest)
    operands = re.sub(r" (offset:\S+|glc|th:\S+)", "", rest).split(", ")
    fixed = int(offset[1], 0) if offset else 0
    if name.startswith("global_"):
        return _global(name, operands, fixed, pc)
    return _scalar_load(name, operands, fixed, pc)


def _scalar_load(name: str, operands: list[str], fixed: int, pc: int) -> Step:
    words, target, base = _WIDTHS[name.rsplit("_", 1)[1]], _target(operands[0]), _target(operands[1])
    offset = _source(operands[2], 1) if register(operands[2]) is not None else None
    fixed += int(operands[2], 0) if offset is None else 0
    is_buffer = name.startswith("s_buffer")

    def step(machine: Machine) -> None:
        start, more = machine.read(base, 2), offset(machine) if offset else Number(0)
        upper = machine.scalars[base + 1]
        value = start.value & (1 << 48) - 1 if is_buffer else start.value
        address = value + more.value + fixed & LONG & ~3
        machine.accesses.append(Access(pc, address, 4 * words, start.taint | more.taint, upper.taint, True))
        for n in range(words):
            place = address + 4 * n & LONG
            machine.write(target + n, Number(machine.memory.word(place, words), machine.memory.taint(place)))

    return step


def _global(name: str, operands: list[str], fixed: int, pc: int) -> Step:
    is_store, is_atomic = "_store_" in name, "_atomic_" in name
    words = 1 if is_atomic else _WIDTHS[name.rsplit("_", 1)[1]]
    where = operands[0] if is_store else operands[1]
    target = None if is_store else _vector(operands[0])
    saddr = None if operands[-1] == "off" else _target(operands[-1])

    def step(machine: Machine) -> None:
        for lane in machine.active():
            registers, low = machine.vectors[lane], _vector(where)
            start = machine.read(saddr, 2) if saddr is not None else registers[low + 1]._replace(value=0)
            high = registers[low + 1].value << 32 if saddr is None else 0
            address = start.value + high + registers[low].value + fixed & LONG
            taint = start.taint | registers[low].taint
            upper = registers[low + 1] if saddr is None else machine.scalars[saddr + 1]
            machine.accesses.append(Access(pc, address, 4 * words, taint, upper.taint, False))
            for n in range(words if target is not None else 0):
                place = address + 4 * n & LONG
                registers[(target or 0) + n] = Number(machine.memory.word(place, words), machine.memory.taint(place))

    return step
