# SPDX-License-Identifier: Apache-2.0
"""The software device under a limit of the process's address space (`ulimit -v`), each case in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from redline.sim import arena

LIMITED = """
import resource, sys
import numpy as np
from redline import doctor, errors
from redline.sim.memory import Memory
pages = int(open("/proc/self/statm").read().split()[0])
limit = int(sys.argv[1]) or pages * resource.getpagesize() + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
"""


def limited(script: str, limit: int, spare: int = 0) -> str:
    """What a script prints with `limit` bytes of address space, or with `spare` bytes more than it has mapped."""
    command = [sys.executable, "-c", LIMITED + script, str(limit), str(spare)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("limit", "expected"), [(5 << 30, 2 << 30), (4 << 30, 2 << 30), (80 << 30, 32 << 30)])
def test_a_limited_process_gets_a_smaller_arena(limit: int, expected: int) -> None:
    """A power of two that leaves the process at least half of its limit; all of it is usable, and doctor says so."""
    script = f"""
memory = Memory()
last = memory.allocate(({expected} >> 1) - 8192)
memory.store(last, b"12345678")
print(len(memory._bytes), memory.u64_at(last) == int.from_bytes(b"12345678", "little"))
try:
    memory.allocate({expected})
except MemoryError as error:
    print(error)
memory.close()
print(doctor._software_device())
"""
    printed = limited(script, limit).splitlines()
    assert printed[0] == f"{expected} True"
    assert printed[1] == f"no gap of {expected} bytes is left in the arena of {expected}"
    assert printed[2] == str({"memory_bytes": expected, "address_space": f"limited to {limit} bytes (ulimit -v)"})


def test_an_arena_that_does_not_fit_is_refused_with_the_numbers() -> None:
    """What was asked, what the limit is, and what to do."""
    script = """
import redline as rl
try:
    rl.open("sim:gfx1201")
except errors.HsaError as error:
    print(error.code, error.where, error.seen)
    print(f"limit of {limit} bytes" in error.allowed, error.do)
"""
    printed = limited(script, 0, 8 << 20).splitlines()
    assert printed[0].startswith("RL0914 software device ")
    assert printed[0].endswith(" bytes of address space asked for: Cannot allocate memory")
    assert printed[1].startswith("True raise the limit (ulimit -v unlimited)")


def test_the_numbers_of_the_pages_fit_behind_the_arena() -> None:
    """For every size: one number a page and one more, in whole pages, and the size can be told from the mapping."""
    for bits in range(20, 36):
        size = arena.mapped_bytes(1 << bits)
        assert size % 4096 == 0
        assert (1 << bits) + 4 * ((1 << bits - 12) + 1) <= size < 2 << bits
