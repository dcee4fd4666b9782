# SPDX-License-Identifier: Apache-2.0
"""Arguments of every kind through real code: compiled kernels store what they were given, and it is what was passed."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import radiowave
import redline as rl
from tests.devices import device_memory

TEMPLATE = """
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @echo({parameters}) #0 {{
{body}
  ret void
}}
attributes #0 = {{ nounwind "amdgpu-flat-work-group-size"="1,64" "uniform-work-group-size"="false" }}
!llvm.module.flags = !{{!0}}
!0 = !{{i32 1, !"amdhsa_code_object_version", i32 500}}
"""

STRIDE = 128

#: LLVM type -> (bytes that a store writes, struct code or None for raw bytes).
TYPES: dict[str, tuple[int, str | None]] = {
    "i8": (1, "<b"),
    "i16": (2, "<h"),
    "i32": (4, "<i"),
    "i64": (8, "<q"),
    "half": (2, "<e"),
    "float": (4, "<f"),
    "double": (8, "<d"),
    "<3 x i32>": (12, None),
    "<4 x float>": (16, None),
    "<2 x i64>": (16, None),
    "[5 x i32]": (20, None),
}


def _source(types: Sequence[str]) -> str:
    """A kernel that stores argument i at STRIDE * i of its first argument."""
    parameters = ["ptr addrspace(1) noalias %out"]
    body = []
    for i, kind in enumerate(types):
        body.append(f"  %p{i} = getelementptr i8, ptr addrspace(1) %out, i64 {STRIDE * i}")
        if kind.startswith("byref"):
            size = int(kind.split()[1])
            parameters.append(f"ptr addrspace(4) noundef byref([{size} x i8]) align 8 %a{i}")
            body.append(f"  %v{i} = load [{size} x i8], ptr addrspace(4) %a{i}, align 8")
            body.append(f"  store [{size} x i8] %v{i}, ptr addrspace(1) %p{i}, align 1")
        else:
            parameters.append(f"{kind} %a{i}")
            body.append(f"  store {kind} %a{i}, ptr addrspace(1) %p{i}, align 1")
    return TEMPLATE.format(parameters=", ".join(parameters), body="\n".join(body))


def _echo(types: Sequence[str], values: Sequence[Any], target: str = "gfx1201") -> list[bytes]:
    """What the kernel stored for each argument."""
    kernel = rl.load(radiowave.compile_ir(_source(types), target=target))["echo"]
    graph = rl.Graph()
    out = graph.buffer("out", STRIDE * len(types), role="out")
    graph.launch(kernel, grid=1, block=1, args=[rl.write(out), *values])
    with rl.open(f"sim:{target}") as device, device.buffer(out.nbytes) as memory:
        memory.write(b"\xcc" * out.nbytes)
        with device.instantiate(graph.compile(), {out: memory}) as replay:
            replay.run(timeout=20.0)
        stored = memory.read().tobytes()
    sizes = [int(kind.split()[1]) if kind.startswith("byref") else TYPES[kind][0] for kind in types]
    for i, size in enumerate(sizes):
        rest = stored[STRIDE * i + size : STRIDE * (i + 1)]
        assert rest == b"\xcc" * len(rest)
    return [stored[STRIDE * i : STRIDE * i + size] for i, size in enumerate(sizes)]


@pytest.mark.parametrize("target", ["gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201"])
def test_every_scalar_type_arrives(target: str) -> None:
    """Sub-word integers, halves, doubles, vectors and arrays by value, from Python values and raw bytes."""
    values: list[Any] = [-5, -300, 70000, -(1 << 40), 1.5, -0.1, 1 / 3]
    kinds = list(TYPES)
    raw = [bytes(range(i, i + TYPES[kind][0])) for i, kind in enumerate(kinds[7:])]
    # A vector of three has the size of four in the segment (case 47); its fourth lane is not stored.
    passed = [data.ljust(16, b"?") if len(data) < 16 else data for data in raw]
    expected = [struct.pack(str(TYPES[k][1]), v) for k, v in zip(kinds, values, strict=False)] + raw
    assert _echo(kinds, [*values, *passed], target) == expected


def test_all_ways_to_pass_a_value_give_the_same_bytes() -> None:
    """Python number, typed scalar, numpy scalar, numpy array, bytes."""
    kinds = ["float", "i16", "double"]
    ways: list[list[Any]] = [
        [0.1, -2, 0.1],
        [rl.f32(0.1), rl.i16(-2), rl.f64(0.1)],
        [np.float32(0.1), np.int16(-2), np.float64(0.1)],
        [np.array([0.1], np.float32), np.array(-2, np.int16), np.array([0.1])],
        [struct.pack("<f", 0.1), struct.pack("<h", -2), struct.pack("<d", 0.1)],
        [0x3DCCCCCD, 0xFFFE, struct.unpack("<q", struct.pack("<d", 0.1))[0]],
    ]
    results = [_echo(kinds, way) for way in ways]
    assert all(result == results[0] for result in results)


def test_a_struct_by_value_of_100_bytes_is_copied_whole() -> None:
    """Case 47: larger than a pointer, neighbours untouched."""
    blob = bytes(range(100))
    stored = _echo(["i32", "byref 100", "i32"], [0x11223344, blob, 0x55667788])
    assert stored == [bytes.fromhex("44332211"), blob, bytes.fromhex("88776655")]


def test_the_layout_of_case_47() -> None:
    """i8, double, i16, <3 x i32>, ptr: offsets 0, 8, 16, 32, 48, segment 56; offsets come from the metadata."""
    parameters = "i8 %a, double %b, i16 %c, <3 x i32> %d, ptr addrspace(1) %e"
    body = "  store i8 %a, ptr addrspace(1) %e"
    code = radiowave.compile_ir(TEMPLATE.format(parameters=parameters, body=body), target="gfx1100")
    kernel = rl.load(code)["echo"]
    assert [argument.offset for argument in kernel.explicit_arguments] == [0, 8, 16, 32, 48]
    assert kernel.kernarg_bytes == 56
    graph = rl.Graph()
    out = graph.buffer("out", 64, role="out")
    vector = np.array([1, 2, 3], np.int32)
    # LLVM gives <3 x i32> sixteen bytes of the segment: the fourth lane is padding that the caller states.
    padded = vector.tobytes() + bytes(4)
    launch = graph.launch(kernel, grid=1, block=1, args=[7, 0.5, -2, padded, rl.write(out)])
    assert launch.kernarg == (
        b"\x07" + bytes(7) + struct.pack("<d", 0.5) + struct.pack("<h", -2) + bytes(14) + padded + bytes(8)
    )


def test_a_hundred_arguments() -> None:
    """Each arrives in its place, and nothing is left over."""
    kinds = [["i8", "i32", "double", "half"][i % 4] for i in range(100)]
    values = [i if kind.startswith("i") else i / 4 for i, kind in enumerate(kinds)]
    expected = [struct.pack(str(TYPES[k][1]), v) for k, v in zip(kinds, values, strict=True)]
    assert _echo(kinds, values) == expected


def test_padding_between_arguments_is_zero() -> None:
    """Equal launches have equal images: bytes that no argument owns are 0 in the arena."""
    kernel = rl.load(radiowave.compile_ir(_source(["i8", "i64", "i8"]), target="gfx1201"))["echo"]
    graph = rl.Graph()
    out = graph.buffer("out", 256, role="out")
    graph.launch(kernel, grid=1, block=1, args=[rl.write(out), -1, -1, -1])
    image = graph.compile().program.kernarg.tobytes()
    assert image == bytes(8) + b"\xff" + bytes(7) + b"\xff" * 8 + b"\xff" + bytes(64 - 25)
    with rl.open("sim:gfx1201") as device, device.buffer(256) as memory:
        with device.instantiate(graph.compile(), {out: memory}) as replay:
            arena = device_memory(device).bytes_at(int(replay.placed.kernarg.ctypes.data), 64)
        assert arena[8:] == image[8:]


def test_a_slot_in_every_size() -> None:
    """Patching replaces exactly the slot's bytes, between neighbours of every size."""
    names = {"i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "half": "f2", "float": "f4", "double": "f8"}
    kinds = [kind for name in names for kind in ("i8", name, "i8")]
    kernel = rl.load(radiowave.compile_ir(_source(kinds), target="gfx1201"))["echo"]
    graph = rl.Graph()
    out = graph.buffer("out", STRIDE * len(kinds), role="out")
    slots = [rl.slot(f"s_{name}", kind) for name, kind in names.items()]
    args = [value for slot in slots for value in (0x55, slot, 0x66)]
    graph.launch(kernel, grid=1, block=1, args=[rl.write(out), *args])
    with (
        rl.open("sim:gfx1201") as device,
        device.buffer(out.nbytes) as memory,
        device.instantiate(graph.compile(), {out: memory}) as replay,
    ):
        for value in (3, -7):
            replay.patch(**{slot.name: value for slot in slots})
            replay.run(timeout=20.0)
            stored = memory.read().tobytes()
            for i, name in enumerate(names):
                size, code = TYPES[name]
                at = STRIDE * (3 * i + 1)
                assert stored[at : at + size] == struct.pack(str(code), value)
                assert (stored[at - STRIDE], stored[at + STRIDE]) == (0x55, 0x66)


@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("target", ["gfx1010", "gfx1030", "gfx1100", "gfx1102", "gfx1151", "gfx1201"])
def test_a_kernel_without_arguments_runs(target: str, wave: int) -> None:
    """It has a private segment buffer up to gfx10, padded user SGPRs on gfx1100 and gfx1102, and no kernarg pointer.

    `redline-fuzz device` found that it was refused there.
    """
    source = TEMPLATE.format(parameters="", body="")
    kernel = rl.load(radiowave.compile_ir(source, target=target, wave=wave))["echo"]
    graph = rl.Graph()
    for _ in range(2):
        graph.launch(kernel, grid=1, block=32, args=[])
    with rl.open(f"sim:{target}") as device, device.instantiate(graph.compile()) as replay:
        replay.run()
