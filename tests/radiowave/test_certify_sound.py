# SPDX-License-Identifier: Apache-2.0
"""Random scalar kernels are certified and run: no load goes where its certificate says that none goes.

500 programs for each of three targets; `make prove` runs 100,000 (`certify_sound`). Three mistakes that an earlier
certifier made are put back and must be found.
"""

from __future__ import annotations

import pytest

from radiowave import Disassembler
from tests.radiowave.assemble import TARGETS
from tests.radiowave.certifier_holes import HOLES
from tests.radiowave.scalar_programs import write
from tests.radiowave.soundness import judge_seeds, programs_to_find


@pytest.mark.parametrize("target", TARGETS)
def test_no_load_leaves_its_class(target: str, disassembler: Disassembler) -> None:
    """And the programs are worth looking at: loops, loads, and enough that a certifier must not refuse."""
    tally = judge_seeds(range(500), target, disassembler)
    print(f"{target}: {tally}")
    assert tally.found == []
    assert tally.programs.total() == 500
    assert tally.back_edges >= 0.3 * 500
    assert tally.loads.total() >= 3 * tally.runs
    assert tally.programs["vmem_only"] >= 0.1 * 500
    assert tally.programs["scalar_args"] >= 0.1 * 500
    assert tally.loads["argument"] >= 0.1 * tally.loads.total()


@pytest.mark.parametrize("hole", HOLES)
def test_mistakes_of_an_earlier_certifier_are_found(hole: str, disassembler: Disassembler) -> None:
    """Each within a tenth of what it may take."""
    with HOLES[hole]():
        assert programs_to_find("gfx1100", disassembler, 2000)


def test_programs_are_the_same_everywhere() -> None:
    """A seed is a program, whatever ran before."""
    assert write(7, "gfx1100") == write(7, "gfx1030")
    assert write(7, "gfx1201").body == write(7, "gfx1201").body
    assert len({write(seed, "gfx1100").body for seed in range(100)}) == 100
