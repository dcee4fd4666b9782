# SPDX-License-Identifier: Apache-2.0
"""What scalar arithmetic does to the abstract registers: pointers are followed through moves, selects and 64-bit adds.

Everything else mixes: its result remembers where its sources came from and is no pointer. An instruction that is on no
list is reported, and the proof ends there. Memory and control flow are elsewhere.
Source of what each instruction writes: AMD's RDNA1 to RDNA4 instruction set documents, "SOP2" to "SOPP".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from radiowave.flow_state import State
from radiowave.operands import EXEC, Operand, Operation
from radiowave.values import (
    ALL_LANES,
    PLAIN,
    SMALL,
    WORD,
    Base,
    Const,
    Half,
    Other,
    Value,
    fixed_token,
    inexact,
    is_index,
    mixed,
    moved,
    one_of,
    pair_of,
    pointer,
    settled,
    signed,
)


class Carry(NamedTuple):
    """SCC behind a low half's add: what was added to which pointer, where. `sign` is -1 for a subtraction."""

    kind: str
    at: Hashable
    token: Hashable
    low: Value
    sign: int


_WORDS: Final = """
    s_nop s_clause s_delay_alu s_set_inst_prefetch_distance s_inst_prefetch s_sleep s_sleep_var s_setprio s_sethalt
    s_setkill s_trap s_icache_inv s_dcache_inv s_dcache_wb s_gl1_inv s_incperflevel s_decperflevel s_ttracedata
    s_ttracedata_imm s_denorm_mode s_round_mode s_version s_sendmsg s_sendmsghalt s_setreg_b32 s_setreg_imm32_b32
    s_barrier s_barrier_wait s_barrier_signal s_barrier_init s_barrier_join s_prefetch_inst s_prefetch_inst_pc_rel
    s_prefetch_data s_prefetch_data_pc_rel s_buffer_prefetch_data s_code_end s_wakeup s_singleuse_vdst
"""
#: Write no register that is followed.
_NOTHING: Final = frozenset(_WORDS.split())
_WAITS: Final = re.compile(r"s_wait(cnt)?(_\w+)?$")
_COMPARES: Final = re.compile(r"s_(cmpk?|bitcmp[01])_\w+$|s_barrier_(signal_isfirst|leave)$|s_alloc_vgpr$")

#: Arithmetic without a rule of its own: writes its first operand and may write SCC.
_ARITHMETIC: Final = re.compile(
    r"s_(absdiff|abs|add|addk|addk_co|add_co|sub|sub_co|min|max|minimum|maximum|mul|mulk|mul_hi|and|or|xor|nand|nor|xnor"
    r"|and_not1|andn2|or_not1|orn2|not|lshl|lshr|ashr|lshl[1-4]_add|bfe|bfm|bcnt[01]|bitreplicate|bitset[01]|brev|ceil"
    r"|floor|trunc|rndne|cls|clz|ctz|ff[01]|flbit|cvt|cvt_hi|cvt_pk_rtz|fmaak|fmamk|fmac|getreg|get_barrier_state|max_num"
    r"|min_num|pack_[hl][hl]|quadmask|sext|wqm|sendmsg_rtn|memtime|memrealtime|get_waveid_in_workgroup|mul_u64|add_u32"
    r"|addc|add_co_ci|subb|sub_co_ci|movrels)(_[biuf](8|16|32|64))*(_(b|i|u|f)(16|32|64))*$"
)
#: Of these SCC is left as it was, so that a carry or a condition survives them.
_KEEPS_SCC: Final = re.compile(r"s_(mov|movk|cmov|cmovk|cselect|getpc|mul_i32|mul_hi|sext|brev|bfm|pack|getreg|add_nc)")
# Selects of selects of single halves: their tokens name all that they chose among, and double each time.
_MOST_SELECTS: Final = 4
_SAVEEXEC: Final = re.compile(r"s_(\w+)_(saveexec|wrexec)_b(32|64)$")
#: EXEC becomes part of what it was: and-ed with the operand, or with its complement.
_NARROWING: Final = ("and", "and_not0", "andn1")
_ADDS: Final = {"s_add_u32": 1, "s_add_co_u32": 1, "s_sub_u32": -1, "s_sub_co_u32": -1}
_ADDS_WITH_CARRY: Final = {"s_addc_u32": 1, "s_add_co_ci_u32": 1, "s_subb_u32": -1, "s_sub_co_ci_u32": -1}


def scalar_step(op: Operation, state: State, at: Hashable) -> bool:
    """Run one scalar instruction that neither reads memory nor jumps; False for one that is on no list."""
    name = op.name
    if name in _NOTHING or _WAITS.match(name):
        return True
    if _COMPARES.match(name):
        state.scc = ("scc", at)
        return True
    if _SAVEEXEC.match(name):
        _save_mask(op, state, at)
        return True
    rule = _RULES.get(name) or (_arithmetic if _ARITHMETIC.match(name) else None)
    if rule is None:
        return False
    before = state.scc
    results = rule(op, state, at)
    if state.scc is before and not _KEEPS_SCC.match(name):
        state.scc = ("scc", at)
    _write(op, state, results)
    return True


def words(operand: Operand, state: State, count: int) -> list[Value]:
    """The values of an operand's words, low first. Constants of 64 bits are extended as their printed sign says."""
    if operand.bank == "s":
        return [state.scalar(n) for n in operand.registers]
    if operand.value is not None:
        low, value = Const(operand.value % WORD), operand.value
        high: Value = Const(WORD - 1) if value < 0 else Const(0) if value < WORD // 2 else PLAIN
        return [low, high][:count] + [PLAIN] * (count - 2)
    atom = Other(frozenset({"local"})) if "_base" in operand.text or "_limit" in operand.text else PLAIN
    return [atom] * count


def _write(op: Operation, state: State, results: list[Value]) -> None:
    target = op.operands[0]
    for number, value in zip(target.registers, results, strict=False):
        if number < EXEC:
            state.set_scalar(number, value)
    if target.first + target.count > EXEC:
        _set_mask(op, state, results)


def _set_mask(op: Operation, state: State, results: list[Value]) -> None:
    """A write of the execution mask: back to the first mask, down to fewer lanes, or to any."""
    sources = op.operands[1:]
    restores = op.name in ("s_or_b32", "s_or_b64") and any(_is_first_mask(s, state) for s in sources)
    kept = sources[:1] if re.match(r"s_(andn2|and_not1)_b", op.name) else sources if "s_and_b" in op.name else ()
    keeps = any(s.bank == "s" and s.registers == op.operands[0].registers for s in kept)
    written = dict(zip(op.operands[0].registers, results, strict=False))
    state.scalars.update((n, ALL_LANES if restores or v == ALL_LANES else mixed((v,))) for n, v in written.items())
    if all(state.scalar(n) == ALL_LANES for n in state.masks):
        state.widen(to_all=True)
        return
    if not keeps:
        state.widen(to_all=False)
    state.narrow()


def _is_first_mask(operand: Operand, state: State) -> bool:
    return operand.bank == "s" and all(state.scalar(n) == ALL_LANES for n in operand.registers)


def _save_mask(op: Operation, state: State, at: Hashable) -> None:
    found = _SAVEEXEC.match(op.name)
    assert found is not None
    how, what, size = found.groups()
    masks = range(EXEC, EXEC + int(size) // 32)
    old = [state.scalar(n) for n in masks]
    new = mixed((*old, *(v for o in op.operands[1:] for v in words(o, state, len(masks)))))
    if how not in _NARROWING:
        state.widen(to_all=False)
    state.narrow()
    state.scalars.update((n, new) for n in masks)
    for number, value in zip(op.operands[0].registers, old, strict=False):
        state.set_scalar(number, value if what == "saveexec" else new)
    state.scc = ("scc", at)


def _arithmetic(op: Operation, state: State, at: Hashable) -> list[Value]:
    """Mixes its sources, and what it overwrites where it reads that too."""
    target = op.operands[0]
    reads = [v for o in op.operands[1:] for v in words(o, state, max(o.count, 1))]
    if re.match(r"s_(addk|mulk|bitset|fmac|cmov|add_co_ci|addk_co)", op.name):
        reads += [state.scalar(n) for n in target.registers]
    if op.name.startswith("s_movrels"):
        reads += list(state.scalars.values())
    return [mixed(reads)] * target.count


def _move(op: Operation, state: State, at: Hashable) -> list[Value]:
    return words(op.operands[1], state, op.operands[0].count)


def _move_short(op: Operation, state: State, at: Hashable) -> list[Value]:
    value = op.operands[1].value
    return [PLAIN if value is None else Const(((value & 0xFFFF ^ 0x8000) - 0x8000) % WORD)]


def _move_if(op: Operation, state: State, at: Hashable) -> list[Value]:
    target, source = op.operands
    return _either(words(source, state, target.count), [state.scalar(n) for n in target.registers], state, at)


def _select(op: Operation, state: State, at: Hashable) -> list[Value]:
    target, first, second = op.operands
    return _either(words(first, state, target.count), words(second, state, target.count), state, at)


def _either(a: list[Value], b: list[Value], state: State, at: Hashable) -> list[Value]:
    """One of two by SCC: of 64 bits, or one half, where the other half must hang on the same condition."""
    if len(a) == 2:
        bases = pointer(a[0], a[1]), pointer(b[0], b[1])
        if bases[0] is None or bases[1] is None:
            return [one_of(*pair) for pair in zip(a, b, strict=True)]
        return list(pair_of(settled(bases[0] | bases[1]), ("at", at)))
    one, other = a[0], b[0]
    if isinstance(one, Half) and isinstance(other, Half) and one.is_high == other.is_high:
        depth = 1 + max(_depth(one.token), _depth(other.token))
        if depth <= _MOST_SELECTS:
            token = ("select", depth, state.scc, one.token, other.token)
            return [pair_of(settled(one.bases | other.bases), token)[one.is_high]]
    return [one_of(one, other)]


def _depth(token: Hashable) -> int:
    return int(token[1]) if isinstance(token, tuple) and token[0] == "select" and len(token) == 5 else 0


def _add_low(op: Operation, state: State, at: Hashable) -> list[Value]:
    """A pointer's low half plus an integer: SCC then holds the carry that the high half needs."""
    sign = _ADDS[op.name]
    a, b = (words(o, state, 1)[0] for o in op.operands[1:])
    if isinstance(b, Half) and not isinstance(a, Half) and sign == 1:
        a, b = b, a
    if isinstance(a, Const) and isinstance(b, Const):
        return [Const((a.value + sign * b.value) % WORD)]
    if not isinstance(a, Half) or a.is_high or isinstance(b, Half):
        return [mixed((a, b))]
    state.scc = Carry("carry", at, a.token, b, sign)
    bases = moved(a.bases, sign * b.value) if isinstance(b, Const) else inexact(a.bases)
    return [Half(bases, _token(bases, at), False)]


def _add_high(op: Operation, state: State, at: Hashable) -> list[Value]:
    carry, sign = state.scc, _ADDS_WITH_CARRY[op.name]
    a, b = (words(o, state, 1)[0] for o in op.operands[1:])
    if isinstance(b, Half) and not isinstance(a, Half) and sign == 1:
        a, b = b, a
    if not isinstance(carry, Carry) or carry.sign != sign or not isinstance(a, Half) or not a.is_high:
        return [mixed((a, b))]
    if a.token != carry.token or not is_index(carry.low, b):
        return [mixed((a, b))]
    bases = _moved_by(a.bases, carry.low, b, sign)
    return [Half(bases, _token(bases, carry.at), True)]


def _add_wide(op: Operation, state: State, at: Hashable) -> list[Value]:
    """gfx12 adds 64 bits at once."""
    sign = -1 if "sub" in op.name else 1
    a, b = (words(o, state, 2) for o in op.operands[1:])
    if pointer(a[0], a[1]) is None and sign == 1:
        a, b = b, a
    bases = pointer(a[0], a[1])
    if bases is None or not is_index(b[0], b[1]):
        return _sum(a, b, sign)
    return list(pair_of(_moved_by(bases, b[0], b[1], sign), ("at", at)))


def _sum(a: list[Value], b: list[Value], sign: int) -> list[Value]:
    result = mixed((*a, *b))
    return [result, result]


def _moved_by(bases: frozenset[Base], low: Value, high: Value, sign: int) -> frozenset[Base]:
    if isinstance(low, Const) and isinstance(high, Const):
        return moved(bases, sign * signed(low.value, high.value))
    return inexact(bases)


def _token(bases: frozenset[Base], at: Hashable) -> Hashable:
    if len(bases) == 1:
        (base,) = bases
        if base.exact:
            return fixed_token(base)
    return ("at", at)


def _shift_right(op: Operation, state: State, at: Hashable) -> list[Value]:
    """Down to eight bits or the sign, what is left is too little to be half of a pointer."""
    target, source, distance = op.operands
    low = mixed((*words(source, state, target.count), *words(distance, state, 1)))
    if distance.value is None or not 24 <= distance.value <= 31:
        return [low] * target.count
    return [SMALL] if target.count == 1 else [low, SMALL]


def _shift_left_wide(op: Operation, state: State, at: Hashable) -> list[Value]:
    """An index times the size of an element: the high half gets at most eight bits of the low one."""
    low, high = words(op.operands[1], state, 2)
    distance = op.operands[2].value
    if isinstance(high, Const) and high.value == 0:
        high = SMALL
    few = distance is not None and distance <= 8
    everything = mixed((low, high, *words(op.operands[2], state, 1)))
    return [mixed((low,)), SMALL] if few and high == SMALL else [everything] * 2


def _and(op: Operation, state: State, at: Hashable) -> list[Value]:
    """Addresses have 48 bits: masking a high half's upper 16 changes nothing. A short mask leaves a small number."""
    a, b = (words(o, state, 1)[0] for o in op.operands[1:])
    if isinstance(a, Const):
        a, b = b, a
    if isinstance(b, Const) and isinstance(a, Half) and a.is_high and b.value & 0xFFFF == 0xFFFF:
        return [a]
    if isinstance(b, Const) and b.value < 256:
        return [SMALL]
    return [mixed((a, b))]


def _extend(op: Operation, state: State, at: Hashable) -> list[Value]:
    """LLVM extends the sign of what s_getpc_b64 gives on gfx12; addresses have it extended already."""
    (value,) = words(op.operands[1], state, 1)
    return [value if isinstance(value, Half) and value.is_high else mixed((value,))]


Rule = Callable[[Operation, State, Hashable], list[Value]]
_RULES: Final[dict[str, Rule]] = {
    "s_mov_b32": _move,
    "s_mov_b64": _move,
    "s_movk_i32": _move_short,
    "s_cmov_b32": _move_if,
    "s_cmov_b64": _move_if,
    "s_cmovk_i32": _arithmetic,
    "s_cselect_b32": _select,
    "s_cselect_b64": _select,
    "s_add_nc_u64": _add_wide,
    "s_sub_nc_u64": _add_wide,
    "s_ashr_i32": _shift_right,
    "s_lshr_b32": _shift_right,
    "s_ashr_i64": _shift_right,
    "s_lshr_b64": _shift_right,
    "s_lshl_b64": _shift_left_wide,
    "s_and_b32": _and,
    "s_sext_i32_i16": _extend,
    **dict.fromkeys(_ADDS, _add_low),
    **dict.fromkeys(_ADDS_WITH_CARRY, _add_high),
}
