# SPDX-License-Identifier: Apache-2.0
"""Every instruction of the software device, made wrong by one bit or one step, is noticed by a test of this folder.

Also that the list of mutants leaves no table entry out, and that the checks pass when nothing is wrong.
"""

from __future__ import annotations

import pytest
from redline_fuzz.sim_mutation import mutants, noticed, run

from redline.sim import inventory
from tests.sim.mutation_checks import checks_for

GROUPS = mutants()


@pytest.mark.parametrize("group", GROUPS)
def test_every_mutant_is_noticed(group: str) -> None:
    """Low bit of each result and of each stored value, carries and masks, branches, link addresses, events."""
    record = run(checks_for, {group: GROUPS[group]})
    assert record["missed"] == []
    assert record["noticed"] == len(GROUPS[group]) > 10


@pytest.mark.parametrize("group", GROUPS)
def test_checks_pass_without_a_mutant(group: str) -> None:
    """Else everything would be noticed."""
    for mutant in GROUPS[group][::7]:
        for check in checks_for(group, mutant):
            check()


def test_no_entry_is_left_out() -> None:
    """What is not mutated is what has no effect, and one message that is only accepted."""
    known = {name for names in inventory.entries().values() for name in names}
    mutated = {mutant.name for group, members in GROUPS.items() if group != "Lane patterns" for mutant in members}
    assert mutated == known - set(inventory.NO_EFFECT) - {"s_sendmsg"}


def test_a_mutant_ends_with_its_block() -> None:
    """Tables and compiler are right again afterwards, and a mutant without checks goes unnoticed."""
    for members in GROUPS.values():
        assert not noticed(members[0], [])
    for group, members in GROUPS.items():
        assert not any(_fails(check) for check in checks_for(group, members[0]))


def _fails(check: object) -> bool:
    try:
        assert callable(check)
        check()
    except AssertionError:
        return True
    return False
