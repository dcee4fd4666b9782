# SPDX-License-Identifier: Apache-2.0
"""Branches, barriers, the end of a wave, and the instructions that have no effect here.

A branch that its waves take differently returns one address for each wave; the scheduler parts them. Instructions
without effect are listed one by one and never parsed: waits and hints mean nothing to a device that finishes every
access in order. An instruction that is not listed is not one of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .op import OPERAND_TYPES, Array
from .operands import VCC, Operand, Parsed, ParseError, integer
from .registers import Reader, reader, scalar_writer
from .state import Front
from .step import Code, Context, Event, Jump, Outcome

# Waits, hints and cache maintenance: this device completes each access before the next instruction, has no caches,
# and gives back every register at the end of the dispatch.
_NO_EFFECT_NAMES = """
    s_nop s_clause s_delay_alu s_set_inst_prefetch_distance s_sleep s_setprio
    s_waitcnt s_waitcnt_vscnt s_waitcnt_vmcnt s_waitcnt_expcnt s_waitcnt_lgkmcnt s_waitcnt_depctr s_wait_idle
    s_wait_loadcnt s_wait_storecnt s_wait_samplecnt s_wait_bvhcnt s_wait_expcnt s_wait_dscnt s_wait_kmcnt
    s_wait_loadcnt_dscnt s_wait_storecnt_dscnt s_wait_alu s_wait_event
    buffer_gl0_inv buffer_gl1_inv global_inv global_wb global_wbinv s_dcache_inv s_icache_inv s_gl1_inv
    s_prefetch_inst s_prefetch_inst_pc_rel s_prefetch_data s_prefetch_data_pc_rel
"""
NO_EFFECT = frozenset(_NO_EFFECT_NAMES.split())

Condition = Callable[[Front], Array]  # bool [wave, 1]


def _vcc_nonzero(context: Context) -> Condition:
    """VCC as the wave size sees it: a wave32 looks at VCC_LO only."""
    operand = Operand("vcc", "s", VCC, context.wave // 32)
    fetch = reader(operand, f"u{context.wave}")
    return lambda front: fetch(front).astype(np.bool_)


def _exec_nonzero(context: Context) -> Condition:
    return lambda front: np.logical_or.reduce(front.exec, axis=1, keepdims=True)


def _scc(context: Context) -> Condition:
    return lambda front: front.scc


# name -> (what is looked at, the value that takes the branch)
BRANCHES: dict[str, tuple[Callable[[Context], Condition], bool]] = {
    "s_cbranch_scc0": (_scc, False),
    "s_cbranch_scc1": (_scc, True),
    "s_cbranch_vccz": (_vcc_nonzero, False),
    "s_cbranch_vccnz": (_vcc_nonzero, True),
    "s_cbranch_execz": (_exec_nonzero, False),
    "s_cbranch_execnz": (_exec_nonzero, True),
}


def compile_control(parsed: Parsed, context: Context) -> Code | None:
    """The code of a control instruction, None when it is not one."""
    name = parsed.name
    if name in BRANCHES:
        return Code(jump=_conditional(displacement(parsed), *BRANCHES[name], context))
    make = OTHERS.get(name)
    return None if make is None else Code(jump=make(parsed))


def displacement(parsed: Parsed) -> int:
    """Bytes from the next instruction: the printed unsigned 16 bits are a signed count of dwords."""
    if len(parsed.operands) != 1 or parsed.modifiers:
        raise ParseError("a branch has one operand")
    dwords = integer(parsed.operands[0].token)
    if not 0 <= dwords < 1 << 16:
        raise ParseError(f"branch displacement {dwords}")
    return (dwords - (dwords >> 15 << 16)) * 4


def _conditional(distance: int, look: Callable[[Context], Condition], wanted: bool, context: Context) -> Jump:
    condition = look(context)

    def jump(front: Front, following: int) -> Outcome:
        true = int(np.count_nonzero(condition(front)))
        taken = true if wanted else front.count - true
        if taken == front.count:
            return following + distance
        if taken == 0:
            return None
        goes = condition(front)[:, 0] == wanted
        return np.where(goes, np.uint64(following + distance), np.uint64(following))

    return jump


def _branch(parsed: Parsed) -> Jump:
    distance = displacement(parsed)
    return lambda front, following: following + distance


def _event(event: Event) -> Callable[[Parsed], Jump]:
    def make(parsed: Parsed) -> Jump:
        return lambda front, following: event

    return make


def _barrier_signal(parsed: Parsed) -> Jump:
    if [operand.token for operand in parsed.operands] != ["-1"]:
        raise ParseError("only the workgroup barrier, -1, is supported")
    return lambda front, following: Event.SIGNAL


def _barrier_wait(parsed: Parsed) -> Jump:
    if [integer(operand.token) & 0xFFFF for operand in parsed.operands] != [0xFFFF]:
        raise ParseError("only the workgroup barrier, -1, is supported")
    return lambda front, following: Event.WAIT


def _pair_reader(operand: Operand) -> Reader:
    return reader(operand, "b64")


def _set_pc(parsed: Parsed) -> Jump:
    (source,) = parsed.operands
    fetch = _pair_reader(source)
    return lambda front, following: _addresses(fetch(front)[:, 0])


def _swap_pc(parsed: Parsed) -> Jump:
    link, source = parsed.operands
    fetch, store = _pair_reader(source), scalar_writer(link, OPERAND_TYPES["b64"])

    def jump(front: Front, following: int) -> Outcome:
        targets = fetch(front)[:, 0].copy()
        store(front, np.full((1, 1), following, np.uint64))
        return _addresses(targets)

    return jump


def _get_pc(parsed: Parsed) -> Jump:
    (link,) = parsed.operands
    store = scalar_writer(link, OPERAND_TYPES["b64"])

    def jump(front: Front, following: int) -> Outcome:
        store(front, np.full((1, 1), following, np.uint64))
        return None

    return jump


def _call(parsed: Parsed) -> Jump:
    link, target = parsed.operands
    distance = displacement(Parsed(parsed.text, parsed.printed, parsed.name, (), (target,)))
    store = scalar_writer(link, OPERAND_TYPES["b64"])

    def jump(front: Front, following: int) -> Outcome:
        store(front, np.full((1, 1), following, np.uint64))
        return following + distance

    return jump


def _addresses(targets: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> Outcome:
    first = targets[0]
    return int(first) if (targets == first).all() else targets.copy()


def _send_message(parsed: Parsed) -> Jump:
    """Giving registers back early changes nothing here; every other message is refused."""
    if [operand.token for operand in parsed.operands] != ["sendmsg(MSG_DEALLOC_VGPRS)"]:
        raise ParseError("only MSG_DEALLOC_VGPRS is supported")
    return lambda front, following: None


OTHERS: dict[str, Callable[[Parsed], Jump]] = {
    "s_branch": _branch,
    "s_endpgm": _event(Event.END),
    "s_barrier": _event(Event.BARRIER),
    "s_barrier_signal": _barrier_signal,
    "s_barrier_wait": _barrier_wait,
    "s_setpc_b64": _set_pc,
    "s_swappc_b64": _swap_pc,
    "s_getpc_b64": _get_pc,
    "s_call_b64": _call,
    "s_sendmsg": _send_message,
}
