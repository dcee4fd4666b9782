# SPDX-License-Identifier: Apache-2.0
"""A disassembler that is fed noise and killed: every request answers or is refused, the next child answers right."""

from __future__ import annotations

import os
import signal
import threading
from functools import cache
from random import Random
from typing import Any

from radiowave import Disassembler, Instruction, RadiowaveError
from radiowave.targets import TARGETS, WAVES
from redline_fuzz import bounded

#: s_endpgm: SOPP 0x01 up to gfx10, 0x30 from gfx11 (AMD's ISA manuals).
_END = {"gfx10": bytes.fromhex("000081bf"), "gfx11": bytes.fromhex("0000b0bf"), "gfx12": bytes.fromhex("0000b0bf")}


@cache
def _disassembler() -> Disassembler:
    """One for all cases of a process: what a case leaves behind the next must survive."""
    return Disassembler(seconds=10)


def judge(seed: int, index: int) -> tuple[str, str]:
    """Noise, perhaps with a kill before or during it; then a known word."""
    random = Random(f"{seed} disassembler {index}")
    target, wave = random.choice(sorted(TARGETS)), random.choice(WAVES)
    code = random.randbytes(4 * random.choice((0, 1, 3, 64, 4096)) + random.choice((0, 0, 0, 1, 3)))
    killer = _killed(random)
    try:
        _disassembler().decode(code, random.getrandbits(40) & ~3, target, wave)
        answer = "decoded"
    except RadiowaveError as error:
        answer = error.code
    finally:
        if killer is not None:
            killer.join()
    return answer, _still_right(target, wave)


def _killed(random: Random) -> threading.Timer | None:
    """In one case of four the child is killed, now or a little later."""
    child = _disassembler()._child
    if child is None or random.random() > 0.25:
        return None
    pid = child._process.pid
    timer = threading.Timer(random.choice((0.0, 0.0005, 0.002)), os.kill, (pid, signal.SIGKILL))
    timer.start()
    if timer.interval == 0:
        timer.join()
    return timer


def _still_right(target: str, wave: int) -> str:
    """A child that was killed behind its answer shows at the next request; the one after it must answer."""
    wanted = [Instruction(0, 4, "s_endpgm")]
    for _ in range(2):
        try:
            found = _disassembler().decode(_END[target[:5]], 0, target, wave)
        except RadiowaveError as error:
            seen = str(error)
            continue
        return "" if found == wanted else f"s_endpgm of {target} reads as {found}"
    return f"no new child: {seen}"


def run(count: int, seed: int = 1) -> dict[str, Any]:
    """`count` requests."""
    return bounded.run(judge, count, seed)
