# SPDX-License-Identifier: Apache-2.0
"""Hand-written kernels with one trap each get the right certificate, on three targets and both wave sizes.

Also those that look like a trap and must not be refused. The kernels and their answers are in `traps.py`.
"""

from __future__ import annotations

from functools import cache

import pytest

from radiowave import CodeObject, KernelCertificate, certify
from tests.radiowave.assemble import TARGETS, assemble
from tests.radiowave.traps import DATA, TRAPS, Trap

CASES = [
    pytest.param(trap, target, wave, id=f"{trap.name}-{target}-wave{wave}")
    for trap in TRAPS.values()
    for target in trap.targets
    for wave in trap.waves
]


@cache
def certificates(target: str, wave: int) -> dict[str, KernelCertificate]:
    """Of all traps for a target and wave size, which lie in one object."""
    kernels = [trap.kernel() for trap in TRAPS.values() if target in trap.targets and wave in trap.waves]
    return certify(CodeObject.parse(assemble(kernels, target, wave, DATA)))


@pytest.mark.parametrize(("trap", "target", "wave"), CASES)
def test_trap(trap: Trap, target: str, wave: int) -> None:
    """Neither wider nor narrower than it should be."""
    found = certificates(target, wave)[trap.name]
    assert (found.verdict, found.scalar_args) == (trap.verdict, frozenset(trap.scalar or ())), (trap.but, found.sites)
    if trap.scalar is not None:
        assert found.kernarg_vector_loads == trap.kernarg_vector_loads
        assert found.l2_args == frozenset(trap.l2_args)
        assert found.undeclared == trap.undeclared
    elif trap.undeclared:
        assert found.undeclared


def test_each_target_has_traps_of_both_kinds() -> None:
    """So that neither a certifier that refuses all nor one that takes all passes."""
    for target in TARGETS:
        refused = [trap for trap in TRAPS.values() if target in trap.targets and trap.scalar is None]
        kind = [trap for trap in TRAPS.values() if target in trap.targets and trap.scalar is not None]
        assert len(refused) >= 25
        assert len(kind) >= 25


def test_what_decided_is_named() -> None:
    """The deciding site is the load that the trap is about, in LLVM's words."""
    found = certificates("gfx1201", 32)
    assert found["low_overwritten"].deciding is not None
    assert found["low_overwritten"].deciding.text == "s_load_b32 s20, s[4:5], 0x0"
    assert found["unknown_jump"].deciding is not None
    assert found["unknown_jump"].deciding.text == "s_setpc_b64 s[8:9]"
    assert found["numbers_alone"].deciding is None
