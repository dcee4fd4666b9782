# SPDX-License-Identifier: Apache-2.0
"""The example kernels as a package: sources, table, build, cache and build command. `tests/sim` runs them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import radiowave
from redline import kernels
from redline.kernels import DEMO_TARGETS, NAMES, SPECS, cache
from redline.kernels.__main__ import main

PAIRS = [(target, wave) for target in DEMO_TARGETS for wave in (32, 64)]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache directory of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "redline"


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many jobs each call of the compiler got."""
    sizes: list[int] = []
    real = radiowave.compile_many

    def counted(jobs: list[radiowave.CompileJob], progress: object = None) -> list[bytes]:
        sizes.append(len(jobs))
        return real(jobs, progress)  # type: ignore[arg-type]

    monkeypatch.setattr(radiowave, "compile_many", counted)
    return sizes


def test_there_are_fourteen_and_each_has_one_documented_source() -> None:
    """The table, the files and the order of arguments in each file's first comment say the same."""
    files = {path.stem for path in Path(kernels.__file__).parent.glob("*.ll")}
    assert len(NAMES) == 14
    assert files == set(NAMES)
    for name in NAMES:
        first, second = kernels.source(name).read_text().splitlines()[:2]
        assert first == "; SPDX-License-Identifier: Apache-2.0"
        listed = ", ".join(argument.name for argument in SPECS[name].arguments)
        assert second.startswith(f"; {name}({listed}): ")


@pytest.mark.parametrize("name", ["../errors", "copy.ll", ""])
def test_a_name_that_is_no_kernel_is_refused_with_the_list(name: str) -> None:
    """Names are looked up, never made into paths."""
    with pytest.raises(KeyError, match="there are: copy, saxpy, index3d"):
        kernels.source(name)


@pytest.mark.parametrize(("target", "wave"), PAIRS)
def test_metadata_and_table_agree(target: str, wave: int) -> None:
    """Names, order, sizes and kinds of arguments, the workgroup and partial groups, as LLVM wrote them."""
    objects = kernels.build_all([target], waves=[wave])
    for name, spec in SPECS.items():
        code = radiowave.CodeObject.parse(objects[name, target, wave])
        assert code.target == target
        assert code.code_object_version == 5
        facts = code.kernels[name]
        explicit = [argument for argument in facts.arguments if not argument.kind.startswith("hidden_")]
        assert [argument.name for argument in explicit] == [argument.name for argument in spec.arguments]
        for argument, told in zip(explicit, spec.arguments, strict=True):
            assert argument.kind == ("global_buffer" if told.access else "by_value")
            assert argument.size == (8 if told.access else int(told.type[1:]))
        assert facts.wave == wave
        assert facts.required_workgroup == spec.block
        assert facts.has_uniform_workgroups is not spec.partial
        assert facts.descriptor.private_bytes == 0
        assert not facts.uses_dynamic_stack


def test_only_activate_takes_hidden_arguments_and_only_those_that_a_launch_can_fill() -> None:
    """Case 46: a kernel without implicit use lists none, and nothing here needs a host service."""
    for name in NAMES:
        facts = radiowave.CodeObject.parse(kernels.build(name, "gfx1100")).kernels[name]
        hidden = [argument.kind for argument in facts.arguments if argument.kind.startswith("hidden_")]
        if name != "activate":
            assert hidden == []
        else:
            assert {kind.rpartition("_")[0] for kind in hidden} >= {"hidden_block_count", "hidden_group_size"}
            assert "hidden_grid_dims" in hidden
            assert not {"hidden_hostcall_buffer", "hidden_printf_buffer", "hidden_heap_v1"} & set(hidden)


def test_none_but_copy_has_fewer_than_twenty_instructions() -> None:
    """Counted up to the last s_endpgm, padding left out, for each target and wave size."""
    objects = kernels.build_all(waves=(32, 64))
    few: list[str] = []
    with radiowave.Disassembler() as disassembler:
        for (name, target, wave), content in objects.items():
            code = radiowave.CodeObject.parse(content)
            facts = code.kernels[name]
            listing = disassembler.decode(code.code(facts), facts.entry_va, target, wave)
            texts = [instruction.text for instruction in listing]
            assert all(texts), f"{name} {target} wave{wave} has bytes that are no instruction"
            assert not [text for text in texts if re.match("scratch_|flat_|image_", text)]
            count = sum(not text.startswith(("s_nop", "s_code_end")) for text in texts)
            if count < 20 and name != "copy":
                few.append(f"{name} {target} wave{wave}: {count}")
    assert few == []


def test_second_build_comes_from_the_cache(home: Path, compilations: list[int]) -> None:
    """The compiler gets no job the second time, and the bytes are the same."""
    first = kernels.build("copy", "gfx1100")
    assert kernels.build("copy", "gfx1100") == first
    assert compilations == [1, 0]
    assert len(list(home.iterdir())) == 1


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "foreign"])
def test_damaged_entry_is_built_again(home: Path, compilations: list[int], damage: str) -> None:
    """Whatever happened to the file, the right bytes come back and the entry is whole afterwards."""
    first = kernels.build("copy", "gfx1030", 64)
    entry = next(home.iterdir())
    whole = entry.read_bytes()
    flipped = bytearray(whole)
    flipped[-1] ^= 1
    entry.write_bytes({"flip": bytes(flipped), "cut": whole[:-1], "empty": b"", "foreign": first}[damage])
    assert kernels.build("copy", "gfx1030", 64) == first
    assert entry.read_bytes() == whole
    assert compilations == [1, 1]


def test_entry_is_named_by_all_that_decides_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Source, target, wave size, LLVM and linker each give another name."""
    base = kernels._entry("copy", "gfx1100", 32)
    names = {base, kernels._entry("copy", "gfx1101", 32), kernels._entry("copy", "gfx1100", 64)}
    names.add(kernels._entry("saxpy", "gfx1100", 32))
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "_toolchain", lambda: "another")
        names.add(kernels._entry("copy", "gfx1100", 32))
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "_text", lambda name: "; edited")
        names.add(kernels._entry("copy", "gfx1100", 32))
    assert len(names) == 6
    assert kernels._entry("copy", "gfx1100", 32) == base


def test_directory_that_cannot_be_written_only_costs_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file stands where the directory should be: kernels still build."""
    (tmp_path / "redline").write_bytes(b"in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kernels.build("copy", "gfx1201")[:4] == b"\x7fELF"
    assert (tmp_path / "redline").read_bytes() == b"in the way"


def test_cache_directory_follows_the_specification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative XDG_CACHE_HOME is ignored; without it the home directory counts."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for ignored in ("", "relative/place"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache.directory() == tmp_path / ".cache" / "redline"
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.directory() == Path("/somewhere/redline")


def test_many_objects_take_one_compiler_and_report_progress(home: Path, compilations: list[int]) -> None:
    """What the cache has is not compiled again, and progress starts there and ends at the total."""
    kernels.build("fill", "gfx1010")
    told: list[tuple[int, int]] = []
    objects = kernels.build_all(
        ["gfx1010", "gfx1201"], names=["fill", "copy"], progress=lambda done, total: told.append((done, total))
    )
    assert list(objects) == [(name, target, 32) for target in ("gfx1010", "gfx1201") for name in ("fill", "copy")]
    assert compilations == [1, 3]
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_unknown_target_is_refused_before_any_work(home: Path) -> None:
    """Nothing is built or cached for the good target beside it."""
    with pytest.raises(radiowave.UnsupportedTarget, match="gfx9999"):
        kernels.build_all(["gfx1201", "gfx9999"], names=["copy"])
    assert not home.exists()


def test_build_command_writes_files(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m redline.kernels --target gfx1201 -o DIR`, with the hash of each file printed."""
    out = tmp_path / "new" / "objects"
    assert main(["--target", "gfx1201", "-o", str(out), "copy", "fill"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert sorted(path.name for path in out.iterdir()) == [
        f"{name}.gfx1201.wave{wave}.hsaco" for name in ("copy", "fill") for wave in (32, 64)
    ]
    assert all(re.fullmatch(r"[0-9a-f]{64}  .*\.hsaco", line) for line in printed)
    assert (out / "copy.gfx1201.wave64.hsaco").read_bytes() == kernels.build("copy", "gfx1201", 64)


def test_build_command_reports_an_unknown_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 1, the name in the message, no directory made."""
    assert main(["--target", "gfx9999", "-o", str(tmp_path / "out"), "copy"]) == 1
    assert "gfx9999" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_import_is_light() -> None:
    """`import redline.kernels` brings in neither numpy nor a compiler."""
    heavy = "{'numpy', 'numba', 'llvmlite'}"
    code = f"import sys, redline.kernels; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
