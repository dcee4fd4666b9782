# SPDX-License-Identifier: Apache-2.0
"""Occupancy against LLVM: answers typed from its own test, and what clang 22 says of kernels that it compiles here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from radiowave import CodeObject, UnsupportedTarget
from radiowave.occupancy import allocated_vgprs, occupancy, occupancy_of, waves_by_vgprs
from radiowave.targets import TARGETS, WAVES
from tests.radiowave import clang
from tests.radiowave.conftest import Matrix
from tests.radiowave.damage import descriptor_field

#: VGPRs -> waves on gfx1010 w32, w64, gfx1030 w32, w64, gfx1100 w32, w64. Source: LLVM,
#: llvm/test/CodeGen/AMDGPU/occupancy-levels.ll, kernels used_<n>_vgprs.
LEVELS = {
    24: (20, 20, 16, 16, 16, 16),
    28: (20, 18, 16, 16, 16, 16),
    32: (20, 16, 16, 16, 16, 16),
    36: (20, 14, 16, 12, 16, 16),
    44: (20, 11, 16, 10, 16, 16),
    56: (18, 9, 16, 9, 16, 12),
    64: (16, 8, 16, 8, 16, 10),
    72: (14, 7, 12, 7, 16, 10),
    84: (11, 6, 10, 5, 16, 9),
    96: (10, 5, 10, 5, 16, 8),
    100: (9, 5, 9, 4, 12, 7),
    128: (8, 4, 8, 4, 10, 5),
    144: (7, 3, 7, 3, 10, 5),
    168: (6, 3, 5, 3, 9, 4),
    200: (5, 2, 4, 2, 7, 3),
    256: (4, 2, 4, 2, 5, 2),
}
#: Targets that have the register file of gfx1010, gfx1030 and gfx1100: the run lines of the same test, and the sweep.
LIKE = {
    "gfx1010": ("gfx1010", "gfx1011", "gfx1012", "gfx1013"),
    "gfx1030": (
        *("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"),
        *("gfx1102", "gfx1103", "gfx1150", "gfx1152", "gfx1153"),
    ),
    "gfx1100": ("gfx1100", "gfx1101", "gfx1151", "gfx1200", "gfx1201"),
}


@pytest.mark.parametrize("vgprs", LEVELS)
def test_llvms_own_answers(vgprs: int) -> None:
    """Every target, both wave sizes."""
    assert {target for targets in LIKE.values() for target in targets} == set(TARGETS)
    answers = iter(LEVELS[vgprs])
    for targets in LIKE.values():
        for wave in WAVES:
            waves = next(answers)
            assert {target: waves_by_vgprs(target, wave, vgprs) for target in targets} == dict.fromkeys(targets, waves)


# Same source, kernels used_lds_*: LDS bytes, workgroup, wave -> waves. Sizes with which rounding up to the hardware's
# granule, which LLVM leaves out, changes nothing.
@pytest.mark.parametrize(
    ("target", "lds_bytes", "workgroup", "wave", "waves", "limiter"),
    [
        ("gfx1010", 6552, 1024, 64, 20, "wave slots"),
        ("gfx1010", 6552, 1024, 32, 16, "workgroup size"),
        ("gfx1030", 13112, 1024, 64, 16, "wave slots"),
        ("gfx1100", 13112, 1024, 32, 16, "wave slots"),
        ("gfx1010", 8252, 64, 64, 4, "LDS"),
        ("gfx1010", 8252, 64, 32, 8, "LDS"),
        ("gfx1010", 8252, 96, 32, 12, "LDS"),
        ("gfx1010", 8252, 96, 64, 8, "LDS"),
        ("gfx1010", 8252, 128, 32, 15, "LDS"),
    ],
)
def test_lds_and_workgroups(target: str, lds_bytes: int, workgroup: int, wave: int, waves: int, limiter: str) -> None:
    """And the limiter by name."""
    found = occupancy(target, wave, 8, workgroup=workgroup, lds_bytes=lds_bytes)
    assert (found.waves, found.limiter) == (waves, limiter)


def test_lds_is_rounded_up() -> None:
    """8252 bytes take 9216 on gfx10.3 and later, 8704 on gfx10.1: 14 and 15 workgroups in the 128 KiB of a WGP."""
    counts = [occupancy(t, 32, 8, workgroup=128, lds_bytes=8252).workgroups for t in ("gfx1010", "gfx1030", "gfx1201")]
    assert counts == [15, 14, 14]


def test_what_limits() -> None:
    """One case for each, by hand; what several limit alike is named by the first of them."""
    small = occupancy("gfx1151", 32, 24, workgroup=64)
    assert (small.waves, small.limiter) == (16, "wave slots")
    assert occupancy("gfx1151", 64, 49, workgroup=256).limiter == "VGPRs"
    # 32 waves a workgroup, 4 SIMDs with room for 9 each: one workgroup fits and not 36 waves.
    wide = occupancy("gfx1010", 32, 112, workgroup=1024)
    assert (wide.waves, wide.limiter, wide.workgroups) == (8, "workgroup size", 1)
    assert wide.limits == {"wave slots": 20, "VGPRs": 9, "workgroup size": 8}
    # Two waves a workgroup, 32 workgroups of a WGP can have barriers; workgroups of one wave need none.
    assert [occupancy("gfx1010", 32, 8, workgroup=size).waves for size in (32, 33, 64)] == [20, 16, 16]
    assert occupancy("gfx1010", 32, 8, workgroup=64, is_wgp_mode=False).waves == 16


def test_what_does_not_fit_at_all() -> None:
    """Zero, and not a division by zero: 32 waves where 20 fit, more LDS than a workgroup may have."""
    many = occupancy("gfx1010", 32, 256, workgroup=1024)
    assert (many.waves, many.limiter, many.workgroups) == (0, "workgroup size", 0)
    large = occupancy("gfx1201", 32, 8, workgroup=64, lds_bytes=(64 << 10) + 1)
    assert (large.waves, large.limiter, large.workgroups) == (0, "LDS", 0)
    assert occupancy("gfx1201", 32, 8, workgroup=64, lds_bytes=64 << 10).workgroups == 2
    assert occupancy("gfx1201", 32, 0, workgroup=0).vgprs == 24


def test_no_target_is_guessed() -> None:
    """Names and wave sizes off the lists are refused."""
    with pytest.raises(UnsupportedTarget, match="RW0201 occupancy: target 'gfx1250'"):
        waves_by_vgprs("gfx1250", 32, 8)
    with pytest.raises(UnsupportedTarget, match="RW0202"):
        allocated_vgprs("gfx1201", 16, 8)


def test_a_kernel_by_its_descriptor(saxpy: Matrix, globals_object: bytes) -> None:
    """1 KiB of LDS, workgroups up to 256, WGP mode; then with other words in the descriptor."""
    for (target, wave), data in saxpy.items():
        found = occupancy_of(target, CodeObject.parse(data).kernel("saxpy"))
        most = 20 if target.startswith("gfx101") else 16
        assert (found.waves, found.limiter, found.lds_bytes, found.workgroup) == (most, "wave slots", 1024, 256)
        assert found.is_wgp_mode
        assert found.workgroups == most * 4 * wave // 256
    rsrc1 = CodeObject.parse(globals_object).kernel("one").descriptor.rsrc1
    changed = descriptor_field(48, "<I", rsrc1 & ~(0x3F | 1 << 29) | 20)(globals_object)
    found = occupancy_of("gfx1201", CodeObject.parse(changed).kernel("one"))
    assert (found.vgprs, found.waves, found.is_wgp_mode) == (168, 8, False)  # 9 fit: 18 waves, two workgroups of 8
    assert json.loads(json.dumps(found.as_json()))["limits"] == {"wave slots": 16, "VGPRs": 9, "workgroup size": 8}


def _kernels() -> Iterator[tuple[str, dict[str, int], str]]:
    """Name, what to ask of `occupancy`, and C text. One wave a workgroup for VGPRs; LDS in whole granules."""
    for vgprs in (1, 8, 9, 24, 25, 33, 48, 49, 61, 73, 96, 97, 120, 121, 169, 193, 256):
        text = f'KERNEL(v{vgprs}, 32) {{ __asm__ volatile("" ::: "v{vgprs - 1}"); }}\n'
        yield f"v{vgprs}", {"vgprs": vgprs, "workgroup": 32}, text
    for kib, size in ((1, 64), (3, 96), (8, 128), (12, 256), (33, 512), (64, 1024)):
        name = f"l{kib}"
        lds = f"LDS {name}_bytes[{kib << 10}];"
        text = f"{lds} KERNEL({name}, {size}) {{ *(volatile LOCAL *){name}_bytes = 1; }}\n"
        yield name, {"vgprs": 8, "workgroup": size, "lds_bytes": kib << 10}, text


HEAD = """
#define KERNEL(name, n) __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(n, n))) void name(void)
#define LOCAL __attribute__((address_space(3))) char
#define LDS static __attribute__((loader_uninitialized)) LOCAL
"""


@pytest.mark.clang
@pytest.mark.parametrize("target", TARGETS)
def test_clang_says_the_same(target: str, tmp_path: Path) -> None:
    """VGPRs, LDS and workgroup sizes, both wave sizes, CU and WGP mode."""
    source, output = tmp_path / "kernels.c", tmp_path / "kernels.s"
    source.write_text(HEAD + "".join(text for _, _, text in _kernels()))
    device = ("--target=amdgcn-amd-amdhsa", f"-mcpu={target}", "-nostdlib", "-O1", "-S")
    for wave, mode in ((32, "-mno-cumode"), (64, "-mno-cumode"), (32, "-mcumode")):
        options = (f"-m{'no-' if wave == 32 else ''}wavefrontsize64", mode)
        clang.run(clang.program("clang", 22), *device, *options, source, "-o", output)
        said = dict(re.findall(r"^(\w+):.*?^; Occupancy: (\d+)", output.read_text(), re.MULTILINE | re.DOTALL))
        assert len(said) == len(list(_kernels()))
        for name, asked, _ in _kernels():
            found = occupancy(target, wave, is_wgp_mode=mode == "-mno-cumode", **asked)
            assert found.waves == int(said[name]), (name, wave, mode, found)
