# SPDX-License-Identifier: Apache-2.0
"""Kernels that clang 19 and 22 build, on ten target-wave pairs, against numpy.

A slice of `clang_corpus.runs.run`, which `make prove` does in full: every kernel on every pair as clang 22 builds it
with -O2, and a sample of the other builds. Marked `clang`: it needs the compilers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from redline_fuzz.bare_device import BareDevice

from radiowave import Disassembler
from redline.sim.errors import DeviceFault
from tests.sim.clang_corpus.build import Build, compiled
from tests.sim.clang_corpus.registry import KERNELS
from tests.sim.clang_corpus.runs import BUILDS, PAIRS, POLICIES, examine, kernels_of, order_shows, output_of, refusal

pytestmark = pytest.mark.clang

USUAL = [Build(language, 22, target, wave, 2) for language in ("hip", "ir") for target, wave in PAIRS]
OTHERS = random.Random(5).sample([build for build in BUILDS if build not in USUAL], 6)


@pytest.fixture(scope="module")
def disassembler() -> Iterator[Disassembler]:
    """One child process for all devices."""
    with Disassembler() as shared:
        yield shared


@pytest.mark.parametrize("build", USUAL, ids=str)
def test_every_kernel_on_every_pair(build: Build, disassembler: Disassembler) -> None:
    """clang 22, -O2: every output as its oracle has it, to the bit where the arithmetic is exact; none refused."""
    found = examine(build, disassembler=disassembler)
    assert not found.wrong, "\n".join(found.wrong)
    assert (found.equal, found.refused.total()) == (len(kernels_of(build.language)), 0)


@pytest.mark.parametrize("build", OTHERS, ids=str)
def test_other_compilers_and_levels(build: Build, disassembler: Disassembler) -> None:
    """A sample of the other builds: equal, or refused because the kernel needs scratch."""
    found = examine(build, seed=2, disassembler=disassembler)
    assert not found.wrong, "\n".join(found.wrong)
    assert found.equal + found.refused.total() == len(kernels_of(build.language))
    if build.level:
        assert found.refused.total() <= 3, found.refused


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("target", "wave"), [("gfx1030", 64), ("gfx1201", 32)])
def test_order_of_waves_does_not_show(target: str, wave: int, policy: str, disassembler: Disassembler) -> None:
    """One wave at a time, and in shuffled order: the bytes of all waves together."""
    build = Build("hip", 22, target, wave, 2)
    assert order_shows(build, POLICIES[policy], disassembler=disassembler) == []


def test_scratch_is_refused(disassembler: Disassembler) -> None:
    """-O0 keeps variables in scratch: refused before anything runs, whichever way the launch is made."""
    with BareDevice("gfx1100", disassembler=disassembler) as device:
        loaded = device.load(compiled(Build("hip", 22, "gfx1100", 32, 0)))
        for kernel in kernels_of("hip"):
            assert refusal(loaded, kernel)
            with pytest.raises((ValueError, DeviceFault)):
                output_of(device, loaded, kernel, 1)


def test_the_corpus_is_broad() -> None:
    """At least 40 kernels; each source has some; inputs hold NaNs of both kinds, both zeros and denormals."""
    assert len(KERNELS) >= 40
    sources = {kernel.source for kernel in KERNELS.values()}
    assert sources == {"integer", "floating", "conversions", "packed", "lanes", "memory", "control", "ir"}
    (values, *_) = KERNELS["f32_arithmetic"].data(1)
    bits, nan = values.view(np.uint32), np.isnan(values)
    quiet = bits & 0x400000 != 0
    assert (nan & quiet).any()
    assert (nan & ~quiet).any()
    assert {0, 0x80000000, 1, 0x80000001, 0x7F800000, 0xFF800000} <= set(bits.tolist())
