# SPDX-License-Identifier: Apache-2.0
"""Kernels that no fence can order are refused when they are recorded: images, scalar stores, DLC stores."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import radiowave
import redline as rl
import redline.kernels
from radiowave.elf import Elf
from tests.radiowave import sources
from tests.radiowave.clang import program, run
from tests.radiowave.patch import patched
from tests.sim.clang_corpus.build import Build, compiled
from tests.sim.clang_corpus.runs import BUILDS

Row = tuple[tuple[int, ...], str]

# Words as clang 22 assembles the text for the target; `test_words_are_clangs` says so again where it is installed.
SCALAR: list[Row] = [
    ((0xF4400001, 0xFA000000), "s_store_dword s0, s[2:3], 0x0"),
    ((0xF4480101, 0x10000000), "s_store_dwordx4 s[4:7], s[2:3], s8"),
    ((0xF4650104, 0xFA000000), "s_buffer_store_dwordx2 s[4:5], s[8:11], 0x0 glc"),
    ((0xF4540001, 0x08000000), "s_scratch_store_dword s0, s[2:3], s4"),
    ((0xF6080001, 0xFA000000), "s_atomic_add s0, s[2:3], 0x0"),
    ((0xF6B10101, 0xFA000000), "s_atomic_dec_x2 s[4:5], s[2:3], 0x0 glc"),
    ((0xF5000002, 0xFA000000), "s_buffer_atomic_swap s0, s[4:7], 0x0"),
    ((0xF5B00002, 0xFA000000), "s_buffer_atomic_dec_x2 s[0:1], s[4:7], 0x0"),
]
DLC: list[Row] = [
    ((0xDC709000, 0x007D0200), "global_store_dword v[0:1], v2, off dlc"),
    ((0xDC619000, 0x007D0200), "global_store_byte v[0:1], v2, off glc dlc"),
    ((0xDCC89000, 0x007D0200), "global_atomic_add v[0:1], v2, off dlc"),
    ((0xDCC99000, 0x037D0200), "global_atomic_add v3, v[0:1], v2, off glc dlc"),
    ((0xDD789000, 0x007D0200), "global_atomic_fcmpswap_x2 v[0:1], v[2:5], off dlc"),
    ((0xDC7C1000, 0x007D0200), "flat_store_dwordx3 v[0:1], v[2:4] dlc"),
    ((0xDCC81000, 0x007D0200), "flat_atomic_add v[0:1], v2 dlc"),
    ((0xE0708000, 0x80010000), "buffer_store_dword v0, off, s[4:7], 0 dlc"),
    ((0xE09C8000, 0x80010000), "buffer_store_format_d16_hi_x v0, off, s[4:7], 0 dlc"),
    ((0xE8848000, 0x80010000), "tbuffer_store_format_x v0, off, s[4:7], 0 format:0x10 dlc"),
]
MIMG10: list[Row] = [
    ((0xF0000F00, 0), "image_load v[0:3], v0, s[0:7] dmask:0xf dim:SQ_RSRC_IMG_1D"),
    ((0xF0200F00, 0), "image_store v[0:3], v0, s[0:7] dmask:0xf dim:SQ_RSRC_IMG_1D"),
    ((0xF0440100, 0), "image_atomic_add v0, v0, s[0:7] dmask:0x1 dim:SQ_RSRC_IMG_1D"),
    ((0xF0800F0A, 0x00400000, 4), "image_sample v[0:3], [v0, v4], s[0:7], s[8:11] dmask:0xf dim:SQ_RSRC_IMG_2D"),
    ((0xF1000108, 0x00400000), "image_gather4 v[0:3], v[0:1], s[0:7], s[8:11] dmask:0x1 dim:SQ_RSRC_IMG_2D"),
    ((0xF0380100, 0), "image_get_resinfo v0, v0, s[0:7] dmask:0x1 dim:SQ_RSRC_IMG_1D"),
]
MIMG11: list[Row] = [
    ((0xF0000F00, 0), "image_load v[0:3], v0, s[0:7] dmask:0xf dim:SQ_RSRC_IMG_1D"),
    ((0xF06C0F05, 0x08000000, 4), "image_sample v[0:3], [v0, v4], s[0:7], s[8:11] dmask:0xf dim:SQ_RSRC_IMG_2D"),
    ((0xF0BC0104, 0x08000000), "image_gather4 v[0:3], v[0:1], s[0:7], s[8:11] dmask:0x1 dim:SQ_RSRC_IMG_2D"),
    ((0xF0600118, 0), "image_msaa_load v[0:3], v[0:2], s[0:7] dmask:0x1 dim:SQ_RSRC_IMG_2D_MSAA"),
    ((0xF0648F81, 0, 0x08050201), "image_bvh_intersect_ray v[0:3], [v0, v1, v[2:4], v[5:7], v[8:10]], s[0:3]"),
]
IMAGE12: list[Row] = [
    ((0xD3C00000, 0, 0), "image_load v[0:3], v0, s[0:7] dmask:0xf dim:SQ_RSRC_IMG_1D"),
    ((0xD3C18000, 0, 0), "image_store v[0:3], v0, s[0:7] dmask:0xf dim:SQ_RSRC_IMG_1D"),
    ((0xD0430000, 0, 0), "image_atomic_add_uint v0, v0, s[0:7] dmask:0x1 dim:SQ_RSRC_IMG_1D"),
    ((0xE7C6C001, 0x04000000, 0x400), "image_sample v[0:3], [v0, v4], s[0:7], s[8:11] dmask:0xf dim:SQ_RSRC_IMG_2D"),
    ((0xD3C64010, 0x08000000, 0x05020100), "image_bvh_intersect_ray v[0:3], [v0, v1, v[2:4], v[5:7], v[8:10]], s[0:3]"),
    (
        (0xD3E04010, 0x09000000, 0x06030B00),
        "image_bvh8_intersect_ray v[0:9], [v[0:1], v[11:12], v[3:5], v[6:8], v9], s[0:3]",
    ),
]
FAMILIES: dict[str, list[Row]] = {
    "gfx1010": SCALAR + DLC + MIMG10,
    "gfx1030": DLC + MIMG10,
    "gfx1100": MIMG11,
    "gfx1151": MIMG11,
    "gfx1201": IMAGE12,
}

Matrix = dict[tuple[str, int], bytes]


@pytest.fixture(scope="module")
def objects() -> Matrix:
    """`sources.SAXPY` for each family and wave size."""
    keys = [(target, wave) for target in FAMILIES for wave in (32, 64)]
    built = radiowave.compile_many([radiowave.CompileJob(sources.SAXPY, *key) for key in keys])
    return dict(zip(keys, built, strict=True))


def _launch(data: bytes, kernel: str = "saxpy") -> None:
    graph = rl.Graph()
    x, y = graph.buffer("x", 4096), graph.buffer("y", 4096)
    graph.launch(rl.load(data)[kernel], grid=1, block=256, args=[rl.update(y), rl.read(x), 1.0, 256])


def _refusal(data: bytes) -> rl.UnsupportedKernel:
    with pytest.raises(rl.UnsupportedKernel) as caught:
        _launch(data)
    return caught.value


@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("target", FAMILIES)
def test_every_kind_is_refused_with_its_text(target: str, wave: int, objects: Matrix) -> None:
    """F8, F15: at the launch's line, with kernel, address and LLVM's text."""
    rows = FAMILIES[target]
    for words, text in rows if wave == 32 else rows[::4]:
        error = _refusal(patched(objects[target, wave], "saxpy", words))
        # The name and all vector registers; versions of LLVM differ in how they print an offset of 0.
        assert (error.code, error.seen.split(",")[0]) == ("RL0408", text.split(",")[0])
        assert (" dlc" in error.seen) == text.endswith(" dlc"), text
        entry = rl.load(objects[target, wave]).parsed.kernel("saxpy").entry_va
        assert f" at {entry:#x}: " in error.seen
        assert "test_refused_instructions.py:" in error.where
        assert f"kernel 'saxpy' ({target})" in error.where
        assert "no image instructions" in error.allowed
        assert error.do.endswith("`radiowave inspect` lists every such instruction")


@pytest.mark.parametrize(
    ("words", "why", "do"),
    [
        (SCALAR[0][0], "it writes the scalar cache, and no fence writes that back", "store from a vector register"),
        (DLC[0][0], "with DLC it bypasses L2", "leave the dlc modifier out"),
        (MIMG10[0][0], "image caches hold texels by view", "through global or buffer instructions"),
    ],
)
def test_a_refusal_says_why_and_what_instead(words: tuple[int, ...], why: str, do: str, objects: Matrix) -> None:
    """Several of them are counted."""
    error = _refusal(patched(objects["gfx1010", 32], "saxpy", [*words, *words]))
    assert why in error.seen
    assert ", and 1 more such: " in error.seen
    assert do in error.do


@pytest.mark.clang
@pytest.mark.parametrize("target", FAMILIES)
def test_words_are_clangs(target: str, tmp_path: Path) -> None:
    """Each text of the tables, assembled."""
    rows = FAMILIES[target] + [(words, text) for of, words, text in ALLOWED if of == target]
    source, output = tmp_path / "rows.s", tmp_path / "rows.o"
    source.write_text("".join(f"{text}\n" for _, text in rows))
    options = ("-x", "assembler", "--target=amdgcn-amd-amdhsa", f"-mcpu={target}", "-c")
    run(program("clang", 22), *options, source, "-o", output)
    elf = Elf(output.read_bytes())
    (code,) = [elf.section_bytes(section) for section in elf.sections if section.name == ".text"]
    assert code == b"".join(struct.pack(f"<{len(words)}I", *words) for words, _ in rows)


@pytest.mark.clang
@pytest.mark.parametrize("build", [build for build in BUILDS if build.clang == 22 and build.level in (0, 2)], ids=str)
def test_what_clang_builds_is_accepted(build: Build) -> None:
    """The corpus: device-scope loads, atomics, buffers, calls; nothing that a compiler writes for it is refused."""
    module = rl.load(compiled(build))
    assert {module.instruction_check.refused(kernel.symbol) for kernel in module.kernels.values()} == {()}


# Words as clang 22 assembles the text, which are none of the refused.
ALLOWED = [
    ("gfx1010", (0xE0308000, 0x80010000), "buffer_load_dword v0, off, s[4:7], 0 dlc"),
    ("gfx1010", (0xDC319000, 0x007D0000), "global_load_dword v0, v[0:1], off glc dlc"),
    ("gfx1010", (0xF4840000, 0x00000000), "s_dcache_wb"),
    ("gfx1010", (0xE1C40000, 0x00000000), "buffer_gl0_inv"),
    ("gfx1030", (0x7E0002FF, 0xF0000F00), "v_mov_b32 v0, 0xf0000f00"),
    ("gfx1010", (0xBE8003FF, 0xF4400001), "s_mov_b32 s0, 0xf4400001"),
    ("gfx1030", (0x7E0002FF, 0xDC709000), "v_mov_b32 v0, 0xdc709000"),
    ("gfx1201", (0xBE8000FF, 0xD3C00000), "s_mov_b32 s0, 0xd3c00000"),
]


@pytest.mark.parametrize(("target", "words", "text"), ALLOWED)
def test_loads_and_constants_are_accepted(target: str, words: tuple[int, ...], text: str, objects: Matrix) -> None:
    """Loads with DLC are what compilers write for device scope; a constant may be any number."""
    data = patched(objects[target, 32], "saxpy", words)
    _launch(data)
    code_object = radiowave.CodeObject.parse(data)
    with radiowave.Disassembler() as disassembler:
        kernel = code_object.kernel("saxpy")
        first = disassembler.decode(code_object.code(kernel), kernel.entry_va, target, 32)[0].text
    assert first.replace("_e32", "") == text


def test_the_same_words_mean_other_things_elsewhere(objects: Matrix) -> None:
    """gfx1030 has no scalar stores and gfx11's DLC stores do not pass L2 by: the table is the target's own."""
    _launch(patched(objects["gfx1100", 32], "saxpy", DLC[0][0]))
    _launch(patched(objects["gfx1201", 64], "saxpy", MIMG10[0][0]))


def test_images_that_the_compiler_writes() -> None:
    """Not only patched words: an image load and a sample in LLVM IR."""
    text = (
        sources.TRIPLE
        + """
    define amdgpu_kernel void @saxpy(ptr addrspace(1) %y, ptr addrspace(1) %x, float %a, i32 %n) {
      %r = load <8 x i32>, ptr addrspace(1) %x
      %v = call float @llvm.amdgcn.image.load.1d.f32.i32(i32 1, i32 %n, <8 x i32> %r, i32 0, i32 0)
      store float %v, ptr addrspace(1) %y
      ret void
    }
    declare float @llvm.amdgcn.image.load.1d.f32.i32(i32, i32, <8 x i32>, i32, i32)
    """
    )
    jobs = [radiowave.CompileJob(text, target) for target in FAMILIES]
    for data in radiowave.compile_many(jobs):
        assert _refusal(data).seen.startswith("image_load v")


def test_without_a_disassembler(objects: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail closed where a word could be one, and only there: even a constant is not told from an instruction."""
    monkeypatch.setenv("RADIOWAVE_LIBLLVM", "/absent/libLLVM.so")
    _launch(objects["gfx1030", 32])
    error = _refusal(patched(objects["gfx1030", 32], "saxpy", (0x7E0002FF, 0xF0000F00)))
    assert (error.code, "kernel 'saxpy' (gfx1030)" in error.where) == ("RL0409", True)
    assert "/absent/libLLVM.so" in error.seen
    assert "pip install 'redline[sim]'" in error.do


def test_a_kernel_is_looked_at_once(objects: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading looks at no instruction; a second launch asks nobody again."""
    module = rl.load(patched(objects["gfx1030", 32], "saxpy", (0x7E0002FF, 0xF0000F00)))
    assert "instruction_check" not in vars(module)
    graph = rl.Graph()
    x, y = graph.buffer("x", 4096), graph.buffer("y", 4096)
    for _ in range(2):
        graph.launch(module["saxpy"], grid=1, block=256, args=[rl.update(y), rl.read(x), 1.0, 256])
        monkeypatch.setenv("RADIOWAVE_LIBLLVM", "/absent/libLLVM.so")


def test_a_refused_launch_leaves_nothing_behind(objects: Matrix) -> None:
    """The graph goes on without it."""
    graph = rl.Graph()
    x, y = graph.buffer("x", 4096), graph.buffer("y", 4096)
    arguments = [rl.update(y), rl.read(x), 1.0, 256]
    good, bad = objects["gfx1030", 32], patched(objects["gfx1030", 32], "saxpy", DLC[0][0])
    with pytest.raises(rl.UnsupportedKernel, match="RL0408"):
        graph.launch(rl.load(bad)["saxpy"], grid=1, block=256, args=arguments)
    graph.launch(rl.load(good)["saxpy"], grid=1, block=256, args=arguments)
    assert len(graph.launches) == 1


@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("target", redline.kernels.DEMO_TARGETS)
def test_example_kernels_are_accepted_without_a_disassembler(
    target: str, wave: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of their words looks like a refused instruction."""
    built = redline.kernels.build_all([target], waves=[wave]).values()
    monkeypatch.setenv("RADIOWAVE_LIBLLVM", "/absent/libLLVM.so")
    for data in built:
        module = rl.load(data)
        assert {module.instruction_check.refused(kernel.symbol) for kernel in module.kernels.values()} == {()}
