# SPDX-License-Identifier: Apache-2.0
"""What clang 19 and 22 build: fat binaries, host libraries and objects, read as clang's own tools read them.

Marked `clang`: `make test` leaves these out, `.ci/run` installs the compilers and selects them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redline_fuzz.bundles import bundle, compress, device_id

import redline as rl
from radiowave import CodeObject, CodeObjectError, link, unbundle
from radiowave.bundle import container_of
from radiowave.cli import main
from tests.radiowave import clang

pytestmark = pytest.mark.clang

Build = Callable[..., bytes]
FORMS: dict[str, tuple[str, ...]] = {"plain": (), "compressed": ("--offload-compress",)}


@pytest.fixture(scope="module", params=clang.VERSIONS)
def version(request: pytest.FixtureRequest) -> int:
    """Each clang."""
    chosen: int = request.param
    return chosen


@pytest.fixture(scope="module")
def fats(version: int, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """One fat binary for the five demo targets, plain and compressed."""
    folder = tmp_path_factory.mktemp(f"clang{version}")
    return {form: clang.fat(folder, version, *options) for form, options in FORMS.items()}


@pytest.mark.parametrize("form", FORMS)
def test_fat_binary(form: str, version: int, fats: dict[str, bytes], tmp_path: Path) -> None:
    """One entry a target, byte for byte what clang-offload-bundler takes out; the container by its name."""
    found = unbundle(fats[form])
    assert [entry.id for entry in found] == [device_id(target) for target in clang.DEMO_TARGETS]
    for entry in found:
        assert entry.data == clang.unbundled(tmp_path, version, fats[form], entry.id)
        assert CodeObject.read(fats[form], entry.target).data == entry.data
    compressed = {
        19: "compressed clang offload bundle (CCOB v2, zstd)",
        22: "compressed clang offload bundle (CCOB v3, zstd)",
    }
    assert container_of(fats[form]) == (compressed[version] if form == "compressed" else "clang offload bundle")


def test_kernels_of_a_fat_binary(fats: dict[str, bytes], version: int) -> None:
    """Name, arguments and versions; the default code object version of each clang."""
    for target in clang.DEMO_TARGETS:
        found = CodeObject.read(fats["compressed"], target)
        assert (found.target, found.code_object_version) == (target, {19: 5, 22: 6}[version])
        kernel = found.kernel("scale")
        explicit = [(a.offset, a.size, a.kind) for a in kernel.arguments if not a.is_hidden]
        assert explicit == [(0, 8, "global_buffer"), (8, 8, "global_buffer"), (16, 4, "by_value"), (20, 4, "by_value")]
        assert kernel.has_uniform_workgroups


@pytest.mark.parametrize("target", clang.DEMO_TARGETS)
def test_fat_binary_runs(target: str, fats: dict[str, bytes]) -> None:
    """From clang's bundle to the result: the hidden group size that the code reads is the launch's."""
    scale = rl.load(fats["compressed"], target)["scale"]
    graph = rl.Graph()
    x, y = graph.buffer("x", 4096, role="in"), graph.buffer("y", 4096, role="out")
    graph.launch(scale, grid=8, block=128, args=[rl.write(y), rl.read(x), 2.5, 1000])
    values = np.arange(1024, dtype=np.float32)
    with rl.open(f"sim:{target}") as device, device.buffer(4096) as source, device.buffer(4096) as result:
        source.write(values)
        result.write(bytes(4096))
        with device.instantiate(graph.compile(), {x: source, y: result}) as replay:
            replay.run(timeout=30.0)
        expected = np.where(np.arange(1024) < 1000, values * np.float32(2.5), np.float32(0))
        assert np.array_equal(result.read(np.float32), expected)


@pytest.mark.parametrize("ccob", [1, 2, 3])
@pytest.mark.parametrize("method", ["zlib", "zstd"])
def test_layouts_are_clangs(ccob: int, method: str, version: int, fats: dict[str, bytes], tmp_path: Path) -> None:
    """Our writer's bundles, version 1 among them, are read by clang's bundler: both know the same layouts.

    clang 19 knows version 3 in its source alone.
    """
    entries = unbundle(fats["plain"])
    packed = compress(bundle([(entry.id, entry.data) for entry in entries]), version=ccob, method=method)
    assert unbundle(packed) == entries
    reader = 22 if ccob == 3 else version
    assert clang.unbundled(tmp_path, reader, packed, entries[-1].id) == entries[-1].data


def test_plain_layout_is_clangs(fats: dict[str, bytes], version: int) -> None:
    """Taken apart and written again, the bundle is the same bytes; the two name the host differently."""
    host = {19: "host-x86_64-unknown-linux--", 22: "host-x86_64-unknown-linux-gnu-"}[version]
    assert bundle([(entry.id, entry.data) for entry in unbundle(fats["plain"])], host=host) == fats["plain"]


@pytest.mark.parametrize("form", FORMS)
def test_host_library(form: str, version: int, tmp_path: Path) -> None:
    """Two translation units: two bundles in `.hip_fatbin`, with the linker's padding between (case 51)."""
    data = clang.library(tmp_path, version, *FORMS[form])
    assert container_of(data) == "host ELF file with section .hip_fatbin"
    found = unbundle(data)
    assert [(entry.bundle, entry.target) for entry in found] == [
        (number, target) for number in (0, 1) for target in ("gfx1100", "gfx1201")
    ]
    names = [list(CodeObject.parse(entry.data).kernels) for entry in found]
    assert names == [["scale"], ["scale"], ["other"], ["other"]]
    with pytest.raises(rl.CodeObjectError, match=r"RL0603 .*gfx1201 \(bundle 0\), .*gfx1201 \(bundle 1\)"):
        rl.load(data, "gfx1201")
    assert list(rl.load(found[3].data).kernels) == ["other"]


@pytest.mark.parametrize("form", FORMS)
def test_inspect_a_fat_binary(
    form: str, fats: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case 49 on clang's own file, as text and as JSON that says what the library says."""
    path = tmp_path / "scale.hipfb"
    path.write_bytes(fats[form])
    assert main(["inspect", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    for row, entry in zip(document["objects"], unbundle(fats[form]), strict=True):
        found = CodeObject.parse(entry.data)
        assert (row["entry"], row["target"], row["sha256"]) == (entry.id, found.target, found.sha256)
        (kernel,) = row["kernels"]
        for argument in kernel["arguments"]:
            assert argument.pop("known")
            assert argument.pop("hidden") == argument["kind"].startswith("hidden_")
        assert kernel.pop("refused_instructions") == []
        # 1,024 work-items are 8 waves on each of four SIMDs: of gfx1010's 20 slots, 16 are of use.
        assert kernel.pop("occupancy")["limiter"] == ("workgroup size" if found.target == "gfx1010" else "wave slots")
        assert kernel.pop("statistics")["global_stores"] == 1
        assert kernel.pop("certificate")["verdict"] == "vmem_only"
        assert [(a["reads"], a["writes"]) for a in kernel.pop("accesses")] == [([], True), (["vector"], False)]
        assert kernel.pop("unknown") == []
        assert kernel == json.loads(json.dumps(asdict(found.kernel("scale"))))
    assert main(["inspect", str(path)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{container_of(fats[form])}  5 code objects  {len(fats[form])} bytes\n")
    assert printed.count("kernel scale (scale.kd)  wave32") == 5


def test_opencl_argument_kinds(version: int, tmp_path: Path) -> None:
    """Every explicit kind, with type names and qualifiers as the source has them."""
    found = CodeObject.parse(clang.opencl(tmp_path, version, "gfx1100"))
    kinds, plain = found.kernel("kinds"), found.kernel("plain")
    assert [(a.kind, a.type_name, a.offset, a.size) for a in kinds.arguments] == [
        ("global_buffer", "float*", 0, 8),
        ("global_buffer", "float*", 8, 8),
        ("global_buffer", "int*", 16, 8),
        ("dynamic_shared_pointer", "float*", 24, 4),
        ("image", "image2d_t", 32, 8),
        ("image", "image1d_t", 40, 8),
        ("sampler", "sampler_t", 48, 8),
        ("pipe", "int", 56, 8),
        ("queue", "queue_t", 64, 8),
        ("by_value", "float", 72, 4),
        ("by_value", "int4", 80, 16),
        ("by_value", "uchar", 96, 1),
    ]
    assert all(argument.is_known for argument in kinds.arguments)
    y, x, c, local, image, line, _sampler, pipe = kinds.arguments[:8]
    assert (y.is_restrict, x.is_const, c.address_space, local.pointee_align) == (True, True, "constant", 4)
    assert (image.declared_access, line.declared_access, pipe.is_pipe) == ("read_only", "write_only", True)
    assert (kinds.required_workgroup, kinds.language) == ((8, 4, 1), "OpenCL C")
    assert plain.arguments[0].is_volatile


def test_opencl_kernels_are_refused_by_argument(version: int, tmp_path: Path) -> None:
    """The first argument that Redline cannot supply is named; a kernel beside it is not held up by it."""
    module = rl.load(clang.opencl(tmp_path, version, "gfx1100"))
    graph = rl.Graph()
    x = graph.buffer("x", 64)
    with pytest.raises(rl.UnsupportedKernel, match="RL0406 .*argument 24 of kind dynamic_shared_pointer"):
        graph.launch(module["kinds"], grid=1, block=(8, 4), args=[])
    graph.launch(module["plain"], grid=1, block=64, args=[rl.write(x)])


def test_unoptimised(version: int, tmp_path: Path) -> None:
    """Cases 45 to 47: -O0 lists every hidden argument, and the launch is refused by the name of one."""
    kernel = rl.load(clang.bare(tmp_path, version, "gfx1100", "-O0"))["scale"]
    graph = rl.Graph()
    x = graph.buffer("x", 64)
    with pytest.raises(rl.UnsupportedKernel, match="RL0406 .*hidden_hostcall_buffer.*compile with optimisation"):
        graph.launch(kernel, grid=1, block=64, args=[rl.write(x), rl.read(x), 1.0, 1])


@pytest.mark.parametrize("cov", [4, 5, 6])
def test_code_object_versions(cov: int, version: int, tmp_path: Path) -> None:
    """Versions 4, 5 and 6. Neither clang writes 2 or 3 any more."""
    options = [f"-mcode-object-version={cov}", "-Wno-everything"]
    found = CodeObject.parse(clang.bare(tmp_path, version, "gfx1030", *options))
    assert (found.code_object_version, found.target, list(found.kernels)) == (cov, "gfx1030", ["scale"])
    with pytest.raises(AssertionError, match="invalid integral value '3'"):
        clang.bare(tmp_path, version, "gfx1030", "-mcode-object-version=3")


def test_generic_target(tmp_path: Path) -> None:
    """Case 52, decided the other way: a generic target is refused by its name, alone and in a bundle."""
    bare = clang.bare(tmp_path, 22, "gfx11-generic")
    with pytest.raises(CodeObjectError, match=r"RW0305 .*gfx11-generic \(machine 0x54\): a generic target stands for"):
        CodeObject.parse(bare)
    data = clang.fat(tmp_path, 22, targets=("gfx11-generic", "gfx12-generic"))
    assert [entry.target for entry in unbundle(data)] == ["gfx11-generic", "gfx12-generic"]
    with pytest.raises(CodeObjectError, match="RW0317 .*gfx11-generic"):
        CodeObject.read(data, "gfx1151")


def test_xnack(version: int, tmp_path: Path) -> None:
    """Features of a target id, in the id of the entry, the ELF flags and the metadata."""
    data = clang.fat(tmp_path, version, targets=("gfx1010:xnack+", "gfx1010:xnack-"))
    for sign, mode in (("+", "on"), ("-", "off")):
        found = CodeObject.read(data, f"gfx1010:xnack{sign}")
        assert (found.xnack, found.target_id) == (mode, f"gfx1010:xnack{sign}")
    assert CodeObject.parse(clang.bare(tmp_path, version, "gfx1010")).xnack == "any"
    assert rl.load(data, "gfx1010:xnack-").target == "gfx1010"
    with pytest.raises(rl.CodeObjectError, match="RL0604"):
        rl.load(data, "gfx1010:xnack+")


def test_our_linker_and_lld_agree(version: int, tmp_path: Path) -> None:
    """A relocatable object, refused as such, then linked by both: the kernels say the same."""
    relocatable = clang.opencl(tmp_path, version, "gfx1201", "-c")
    with pytest.raises(CodeObjectError, match="RW0306 .*not linked"):
        CodeObject.parse(relocatable)
    ours, theirs = CodeObject.parse(link(relocatable)), CodeObject.parse(clang.opencl(tmp_path, version, "gfx1201"))
    assert [_facts(kernel) for kernel in ours.kernels.values()] == [
        _facts(kernel) for kernel in theirs.kernels.values()
    ]


def _facts(kernel: Any) -> dict[str, Any]:
    """Everything but where the linker put it."""
    facts = asdict(kernel)
    del facts["descriptor_va"], facts["entry_va"], facts["descriptor"]["entry_offset"]
    return facts
