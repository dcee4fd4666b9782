# SPDX-License-Identifier: Apache-2.0
"""Each load, store and atomic in each address space against Python integers: no entry of the tables goes unchecked."""

from __future__ import annotations

import pytest

from redline.sim import inventory
from tests.sim.memory_checks import check

NAMES = [
    *inventory.scalar_loads(),
    *(name for space in inventory.SPACES for name in inventory.vector_memory(space)),
    *(name for name in inventory.lds() if "permute" not in name and "swizzle" not in name),
]


@pytest.mark.parametrize("name", NAMES)
def test_entry(name: str) -> None:
    """One lane off, two lanes of an atomic on one place, narrow values extended or merged."""
    check(name)
