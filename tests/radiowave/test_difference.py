# SPDX-License-Identifier: Apache-2.0
"""`radiowave diff`: what changed between two builds, and nothing where nothing did."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from radiowave import CodeObject, compare, compile_ir
from radiowave.cli import main
from radiowave.difference import Change
from tests.radiowave import sources

WIDER = sources.SAXPY.replace("[256 x float]", "[512 x float]")
OTHER = sources.SAXPY.replace("@saxpy", "@axpy")
UNIFORM = sources.SAXPY.replace("float, ptr addrspace(1) %px", "float, ptr addrspace(1) %x")


@cache
def built(source: str = sources.SAXPY, target: str = "gfx1201", wave: int = 32) -> CodeObject:
    """One object."""
    return CodeObject.parse(compile_ir(source, target=target, wave=wave))


def test_equal_objects_do_not_differ() -> None:
    """The same source twice."""
    assert compare(built(), CodeObject.parse(built().data)).is_empty


def test_what_changed_is_named() -> None:
    """More LDS; a uniform read that is a scalar load; another wave size; another target."""
    changes = compare(built(), built(WIDER)).changes
    assert Change("saxpy", "LDS bytes", 1024, 2048) in changes
    assert {change.what for change in changes} == {"LDS bytes"}
    found = {change.what: (change.before, change.after) for change in compare(built(), built(UNIFORM)).changes}
    assert found["verdict"] == ("vmem_only", "scalar_args")
    assert found["scalar arguments"] == ([], [8])
    assert found["global loads"] == (2, 1)
    assert {"wave", "code"} <= {change.what for change in compare(built(), built(wave=64)).changes}
    assert Change("", "target", "gfx1201", "gfx1200") in compare(built(), built(target="gfx1200")).changes


def test_kernels_that_came_and_went() -> None:
    """By name."""
    found = compare(built(), built(OTHER))
    assert (found.removed, found.added, found.changes) == (("saxpy",), ("axpy",), ())


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit codes as diff has them, text and JSON."""
    paths = [tmp_path / name for name in ("a.co", "b.co")]
    for path, source in zip(paths, (sources.SAXPY, WIDER), strict=True):
        path.write_bytes(built(source).data)
    assert main(["diff", str(paths[0]), str(paths[0])]) == 0
    assert capsys.readouterr().out == "nothing differs\n"
    assert main(["diff", *map(str, paths)]) == 1
    assert capsys.readouterr().out == "kernel saxpy\n  LDS bytes: 1024 -> 2048\n"
    assert main(["diff", *map(str, paths), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["changes"][0]["after"]) == (1, 2048)
    assert main(["diff", str(paths[0]), str(tmp_path / "none")]) == 2
    (broken := tmp_path / "broken.co").write_bytes(paths[0].read_bytes()[:200])
    assert main(["diff", str(paths[0]), str(broken)]) == 2
    assert "RW0307" in capsys.readouterr().err
