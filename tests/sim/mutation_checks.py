# SPDX-License-Identifier: Apache-2.0
"""Which checks look at which instructions of the software device, for `redline_fuzz.sim_mutation`.

Rows of the ALU tables have their unit oracles; memory has `memory_checks.py`; the rest has the tests of its file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

from redline_fuzz.ir_mutation import Mutant as RowMutant
from redline_fuzz.sim_mutation import AnyMutant, Check, run

from redline.sim.crosslane import CROSS_LANE
from redline.sim.op import Op
from redline.sim.valu import VALU
from tests.sim import (
    alu_cases,
    direct,
    test_control,
    test_crosslane,
    test_lanes,
    test_lds,
    test_salu,
    test_salu_wide,
    test_scheduler,
    test_valu,
    test_valu_division,
)
from tests.sim.alu_oracles import ORACLES
from tests.sim.memory_checks import check


def checks_for(group: str, mutant: AnyMutant) -> Iterator[Check]:
    """The cheapest first."""
    if isinstance(mutant, RowMutant):
        yield from _row_checks(group, mutant)
    elif group == "Lane patterns":
        yield from _of(test_lanes)
    elif group == "Control":
        yield from _of(test_control)
        yield from _of(test_scheduler)
    elif "permute" in mutant.name or "swizzle" in mutant.name:
        yield from _of(test_lanes)
        yield from _of(test_lds)
    else:
        yield partial(check, mutant.name)


@cache
def _of(module: Any) -> Sequence[Check]:
    return tuple(direct.checks(module))


def _row_checks(group: str, mutant: RowMutant) -> Iterator[Check]:
    name = mutant.name
    if group == "Scalar ALU":
        yield from _of(test_salu)
        yield from _of(test_salu_wide)
    elif name in CROSS_LANE:
        yield from _of(test_crosslane)
    elif name in test_valu.DIVISION:
        yield from _of(test_valu_division)
    elif group == "Scalar floats":
        yield partial(test_valu.test_scalar_float_equals_the_vector_oracle, name)
    else:
        yield partial(_oracle_check, VALU, name)


def _oracle_check(table: dict[str, Op], name: str) -> None:
    op = table[name]
    found = alu_cases.Check(op, ORACLES[name], 1, test_valu.HALVES.get(name)).differences(op.fn)
    assert not found, found[:3]


def everything(progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """All mutants; what `make prove` records."""
    return run(checks_for, progress=progress)
