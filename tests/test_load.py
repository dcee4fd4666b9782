# SPDX-License-Identifier: Apache-2.0
"""Loading code objects: out of files and bundles, for one target, with every argument filled or the launch refused."""

from __future__ import annotations

import hashlib
import struct
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redline_fuzz.bundles import bundle, compress, device_id, host_elf

import radiowave
import redline as rl
from radiowave.compile import CompileJob, compile_relocatable
from redline import kernel
from tests.radiowave import sources

TRIPLE = 'target triple = "amdgcn-amd-amdhsa"\n'
ATTRIBUTES = 'nounwind "amdgpu-flat-work-group-size"="1,1024" "uniform-work-group-size"="false"'


@cache
def _saxpy(target: str = "gfx1201") -> bytes:
    return radiowave.compile_ir(sources.SAXPY, target=target)


@cache
def _compiled(body: str, target: str = "gfx1201", version: int | None = None) -> rl.Kernel:
    """The kernel `k` of a module."""
    return rl.load(radiowave.compile_ir(TRIPLE + body, target=target, code_object_version=version))["k"]


def _both() -> bytes:
    return bundle([(device_id(target), _saxpy(target)) for target in ("gfx1100", "gfx1201")])


@pytest.mark.parametrize("pack", ["plain", "compressed", "host file"])
def test_load_takes_the_object_for_the_target(pack: str, tmp_path: Path) -> None:
    """Case 11: from bytes and from a path; module and kernels are those of the object by itself."""
    data = {"plain": _both(), "compressed": compress(_both()), "host file": host_elf(compress(_both()))}[pack]
    path = tmp_path / "kernels.hipfb"
    path.write_bytes(data)
    for target in ("gfx1100", "gfx1201"):
        alone = rl.load(_saxpy(target))
        for module in (rl.load(data, target), rl.load(path, target=target)):
            assert (module.target, module.data, module.sha256) == (target, _saxpy(target), alone.sha256)
            assert module.kernels == alone.kernels
            assert module["saxpy"].module is module


def test_one_object_needs_no_target() -> None:
    """One device entry is the one; a bare object passes byte for byte."""
    assert rl.load(compress(bundle([(device_id("gfx1201"), _saxpy())]))).target == "gfx1201"
    assert rl.load(_saxpy()).data == _saxpy() == rl.load(_saxpy(), "gfx1201").data


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (None, "2 code objects: hipv4-amdgcn-amd-amdhsa--gfx1100, hipv4-amdgcn-amd-amdhsa--gfx1201; allowed: one"),
        ("gfx1030", "target gfx1030: hipv4-amdgcn-amd-amdhsa--gfx1100, hipv4-amdgcn-amd-amdhsa--gfx1201"),
    ],
)
def test_what_a_bundle_holds_is_listed(target: str | None, words: str) -> None:
    """Nothing is chosen silently."""
    with pytest.raises(rl.CodeObjectError, match="RL0603") as caught:
        rl.load(_both(), target)
    assert words in str(caught.value)


def test_target_names_are_checked() -> None:
    """A target outside the list is refused as such, a bare object for another target with both names."""
    with pytest.raises(rl.UnsupportedTarget, match="RL0301 load <bytes>: target 'gfx1250'"):
        rl.load(_both(), "gfx1250")
    with pytest.raises(rl.CodeObjectError, match="RL0603 code object <bytes>, code object: gfx1100; allowed: gfx1151"):
        rl.load(_saxpy("gfx1100"), "gfx1151")


def test_the_hash_is_of_the_whole_file() -> None:
    """`sha256=` speaks of what was passed; the module's own hash of the object inside."""
    data = _both()
    module = rl.load(data, "gfx1201", sha256=hashlib.sha256(data).hexdigest())
    assert module.sha256 == hashlib.sha256(_saxpy()).hexdigest()
    with pytest.raises(rl.CodeObjectError, match="RL0602"):
        rl.load(data, "gfx1201", sha256=module.sha256)


def test_compressed_without_zstd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 11 (b): the message names the container and the way out; nothing falls back silently."""
    data = compress(_both())
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        rl.CodeObjectError, match=r"RL0601 .*compressed clang offload bundle \(CCOB v3, zstd\)"
    ) as caught:
        rl.load(data, "gfx1201")
    assert "install zstandard" in caught.value.do
    assert "--no-offload-compress" in caught.value.do


def _flags(target: str, flags: int) -> bytes:
    data = bytearray(_saxpy(target))
    struct.pack_into("<I", data, 48, flags)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (lambda: compile_relocatable([CompileJob(sources.SAXPY, "gfx1201")])[0], "not linked.*ld.lld -shared"),
        (lambda: _saxpy()[:18] + b"\x3e\0" + _saxpy()[20:], "not an AMDGPU object"),
        (lambda: _saxpy()[: len(_saxpy()) // 2], "inside the file"),
        (lambda: compress(_both())[:-9], "a total of"),
        (lambda: _flags("gfx1151", 0x54), "gfx11-generic .*: a generic target stands for several GPUs"),
        (lambda: _flags("gfx1201", 0x49), "gfx1250"),
        (lambda: _saxpy()[:8] + b"\1" + _saxpy()[9:], "code object v3"),
        (lambda: b"BC\xc0\xde", "LLVM bitcode"),
        (lambda: sources.SAXPY.encode(), 'this is text: "target triple.*do: compile it first.*radiowave compile'),
        (lambda: b"\n\nimport redline as rl\n", 'this is text: "import redline as rl"'),
        (lambda: ("é" * 400).encode(), 'this is text: "é'),
        (lambda: b"text\xff" * 9, "bytes 74 65 78 74"),
        (lambda: b"text\0", "bytes 74 65 78 74"),
    ],
)
def test_what_is_not_loaded(data: Any, words: str) -> None:
    """Case 52 and its like: named for what it is. A generic target is refused: targets are an explicit list."""
    with pytest.raises(rl.CodeObjectError, match=words) as caught:
        rl.load(data())
    assert caught.value.code == "RL0601"


def test_wrong_target_for_the_device() -> None:
    """Case 52: gfx1100 on a gfx1151: both names."""
    graph = rl.Graph()
    x = graph.buffer("x", 1024)
    saxpy = rl.load(_saxpy("gfx1100"))["saxpy"]
    graph.launch(saxpy, grid=1, block=256, args=[rl.update(x), rl.read(x), 1.0, 0])
    with (
        rl.open("sim:gfx1151") as device,
        pytest.raises(rl.BindingError, match="RL0704 .*gfx1151.*a plan for gfx1100; allowed: plans for gfx1151"),
    ):
        device.instantiate(graph.compile())


NACK = 'define amdgpu_kernel void @k(ptr addrspace(1) %o) "target-features"="{}xnack" {{ ret void }}'


def test_xnack() -> None:
    """Case 52: agents run with XNACK off, so an object that needs it is refused, and one that forbids it is not."""
    on, off = (radiowave.compile_ir(TRIPLE + NACK.format(sign), target="gfx1010") for sign in "+-")
    assert radiowave.CodeObject.parse(on).target_id == "gfx1010:xnack+"
    with pytest.raises(rl.CodeObjectError, match=r"RL0604 .*gfx1010:xnack\+; allowed: gfx1010 or gfx1010:xnack-"):
        rl.load(on)
    assert rl.load(off).target == "gfx1010"
    both = bundle([(device_id("gfx1010:xnack+"), on), (device_id("gfx1010:xnack-"), off)])
    assert rl.load(both, "gfx1010:xnack-").data == off
    with pytest.raises(rl.CodeObjectError, match="RL0603"):
        rl.load(both, "gfx1010")


# The hidden arguments that a dispatch fills: place behind the first hidden one, LLVM type.
FILLED = {
    "block_count": [(0, "i32"), (4, "i32"), (8, "i32")],
    "group_size": [(12, "i16"), (14, "i16"), (16, "i16")],
    "remainder": [(18, "i16"), (20, "i16"), (22, "i16")],
    "global_offset": [(40, "i64"), (48, "i64"), (56, "i64")],
    "grid_dims": [(64, "i16")],
    "dynamic_lds_size": [(120, "i32")],
}
PLACES = [place for places in FILLED.values() for place in places]


def _reader() -> str:
    """A kernel that stores every one of them, zero-extended, and uses LDS that the launch sizes."""
    lines = ["%p = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()"]
    for i, (at, kind) in enumerate(PLACES):
        lines += [
            f"%q{i} = getelementptr i8, ptr addrspace(4) %p, i64 {at}",
            f"%v{i} = load {kind}, ptr addrspace(4) %q{i}",
            f"%w{i} = {'zext' if kind != 'i64' else 'bitcast'} {kind} %v{i} to i64",
            f"%s{i} = getelementptr i64, ptr addrspace(1) %out, i64 {i}",
            f"store i64 %w{i}, ptr addrspace(1) %s{i}",
        ]
    body = "\n".join(lines)
    return (
        "@dynamic = external addrspace(3) global [0 x i32], align 4\n"
        f"define amdgpu_kernel void @k(ptr addrspace(1) noalias %out, i32 %n) #0 {{\n{body}\n"
        "%d = getelementptr [0 x i32], ptr addrspace(3) @dynamic, i32 0, i32 %n\n"
        "store volatile i32 %n, ptr addrspace(3) %d\nret void }\n"
        "declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()\n"
        f"attributes #0 = {{ {ATTRIBUTES} }}\n"
    )


@pytest.mark.parametrize("target", ["gfx1010", "gfx1100", "gfx1201"])
@pytest.mark.parametrize(
    ("size", "block", "lds", "expected"),
    [
        (1000, 256, 64, [3, 1, 1, 256, 1, 1, 232, 0, 0, 0, 0, 0, 1, 64]),
        ((33, 5), (16, 2), 4, [2, 2, 1, 16, 2, 1, 1, 1, 0, 0, 0, 0, 2, 4]),
        ((7, 1, 3), (8, 1, 1), 256, [0, 1, 3, 8, 1, 1, 7, 0, 0, 0, 0, 0, 3, 256]),
    ],
)
def test_hidden_arguments_arrive(target: str, size: Any, block: Any, lds: int, expected: list[int]) -> None:
    """Case 46: the code of each family finds what LLVM's documentation says; 64 of 1000 by 256 as in the report."""
    k = _compiled(_reader(), target)
    graph = rl.Graph()
    out = graph.buffer("out", 8 * len(PLACES), role="out")
    graph.launch(k, global_size=size, block=block, args=[rl.write(out), 0], dynamic_lds=lds)
    with rl.open(f"sim:{target}") as device, device.buffer(out.nbytes) as memory:
        memory.write(b"\xcc" * out.nbytes)
        with device.instantiate(graph.compile(), {out: memory}) as replay:
            replay.run(timeout=30.0)
        assert memory.read(np.uint64).tolist() == expected


def test_layout_of_case_46() -> None:
    """Case 46: the offsets of the report, and in the image the values of 1000 work-items by 256."""
    saxpy = rl.load(radiowave.compile_ir(sources.IMPLICIT, target="gfx1100"))["saxpy"]
    assert (saxpy.kernarg_bytes, saxpy.kernarg_align) == (280, 8)
    graph = rl.Graph()
    x = graph.buffer("x", 4096)
    launch = graph.launch(saxpy, global_size=1000, block=256, args=[rl.update(x), rl.read(x), 2.0, 1000])
    wanted = bytearray(280)
    struct.pack_into("<fI", wanted, 16, 2.0, 1000)
    struct.pack_into("<3I3H3H", wanted, 24, 3, 1, 1, 256, 1, 1, 232, 0, 0)
    struct.pack_into("<H", wanted, 88, 1)
    assert launch.kernarg == bytes(wanted)


def _refusal(k: rl.Kernel, *args: Any) -> rl.UnsupportedKernel:
    graph = rl.Graph()
    x = graph.buffer("x", 4096)
    with pytest.raises(rl.UnsupportedKernel) as caught:
        graph.launch(k, grid=1, block=1, args=[rl.update(x), *args])
    assert graph.launches == []
    return caught.value


UNOPTIMISED = sources.IMPLICIT.replace("i32 %n) {", "i32 %n) optnone noinline {").replace("@saxpy", "@k")
SERVICES = ("hostcall_buffer", "multigrid_sync_arg", "heap_v1", "default_queue", "completion_action", "queue_ptr")


def test_unoptimised_kernels_list_everything() -> None:
    """Cases 45, 46, 47: without optimisation LLVM lists what the code does not use; offsets as in the report."""
    k = _compiled(UNOPTIMISED, "gfx1100")
    hidden = {a.kind.removeprefix("hidden_"): a.offset for a in k.arguments if a.hidden}
    assert [hidden[name] for name in SERVICES] == [104, 112, 120, 128, 136, 224]
    error = _refusal(k, 1.0, 1)
    assert error.code == "RL0406"
    assert "argument 104 of kind hidden_hostcall_buffer" in error.seen
    assert "compile with optimisation" in error.do


@pytest.mark.parametrize("name", SERVICES)
def test_services_are_refused_by_name(name: str) -> None:
    """Case 45: what no dispatcher but a runtime supplies is refused, each by its own name."""
    from dataclasses import replace

    k = _compiled(UNOPTIMISED, "gfx1100")
    others = {f"hidden_{other}" for other in SERVICES if other != name}
    error = _refusal(replace(k, arguments=tuple(a for a in k.arguments if a.kind not in others)), 1.0, 1)
    assert f"of kind hidden_{name}" in error.seen


@pytest.mark.parametrize("kind", ["sampler", "image", "pipe", "queue", "hidden_printf_buffer", "hidden_tomorrow"])
def test_kinds_without_a_value_are_refused_by_name(kind: str) -> None:
    """What Redline cannot make, and what it does not know."""
    from dataclasses import replace

    k = rl.Kernel.synthetic("k")
    argument = rl.Argument("thing", 8, 8, kind)
    error = _refusal(replace(k, arguments=(*k.arguments, argument), kernarg_bytes=16), 1)
    assert (error.code, error.seen) == ("RL0406", f"argument 'thing' of kind {kind}")


@pytest.mark.parametrize(
    ("parameter", "code", "words"),
    [
        ("ptr addrspace(3) %v", "RL0406", "argument 'v' of kind dynamic_shared_pointer"),
        ("ptr addrspace(5) %v", "RL0406", "argument 'v', a pointer of 4 bytes"),
        ("ptr addrspace(8) %v", "RL0406", "argument 'v', a pointer of 16 bytes"),
        ("<16 x i64> %v", "RL0407", "aligned to 128 bytes"),
    ],
)
def test_parameters_that_no_launch_can_give(parameter: str, code: str, words: str) -> None:
    """As LLVM writes them: LDS and private pointers, buffer resources, vectors wider than a kernarg slot is aligned."""
    body = f"define amdgpu_kernel void @k(ptr addrspace(1) %o, {parameter}) {{ ret void }}"
    error = _refusal(_compiled(body), 0)
    assert error.code == code
    assert words in error.seen


def test_alignment_up_to_a_slot() -> None:
    """64 bytes are served: slots of the arena lie 64 bytes apart."""
    body = "define amdgpu_kernel void @k(ptr addrspace(1) %o, <8 x i64> %v) { ret void }"
    k = _compiled(body)
    assert k.kernarg_align == 64 == kernel.KERNARG_SLOT_BYTES
    graph = rl.Graph()
    graph.launch(k, grid=1, block=1, args=[rl.update(graph.buffer("x", 64)), bytes(64)])


def test_version_4_reads_the_packet() -> None:
    """Code object v4 finds the workgroup size in the dispatch packet, which a raw dispatch does not have."""
    body = """
    define amdgpu_kernel void @k(ptr addrspace(1) %o) {
      %p = call ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()
      %q = getelementptr i8, ptr addrspace(4) %p, i64 4
      %v = load i16, ptr addrspace(4) %q
      store i16 %v, ptr addrspace(1) %o
      ret void
    }
    declare ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()
    """
    error = _refusal(_compiled(body, version=4))
    assert (error.code, "DISPATCH_PTR" in str(error)) == ("RL0401", True)


def test_version_4_fills_its_own_hidden_arguments() -> None:
    """Code object v4 has global offsets first; offsets and sizes are the metadata's."""
    body = """
    define amdgpu_kernel void @k(ptr addrspace(1) %o) #0 {
      %p = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
      %v = load i64, ptr addrspace(4) %p
      store i64 %v, ptr addrspace(1) %o
      ret void
    }
    declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
    attributes #0 = { "amdgpu-no-hostcall-ptr" "amdgpu-no-multigrid-sync-arg" "amdgpu-no-default-queue"
                      "amdgpu-no-completion-action" }
    """
    k = _compiled(body, version=4)
    places = [(a.kind, a.offset, a.size) for a in k.arguments if a.hidden]
    assert places[:3] == [(f"hidden_global_offset_{axis}", 8 + 8 * i, 8) for i, axis in enumerate("xyz")]
    assert {kind for kind, _, _ in places[3:]} <= {"hidden_none"}
    graph = rl.Graph()
    launch = graph.launch(k, grid=1, block=1, args=[rl.write(graph.buffer("x", 8))])
    assert launch.kernarg == bytes(k.kernarg_bytes)
