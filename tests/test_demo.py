# SPDX-License-Identifier: Apache-2.0
"""The demo and the commands: bit-exact on every target, JSON, exit codes, and a mismatch that shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

import redline as rl
from redline import cli, demo, doctor, kernels
from redline.sim import arena

#: Edges of the demo's longest chain, counted by hand: hash, embed, add position; in each of two layers norm a, project
#: qkv, split kv, write kv, transpose keys, query x keys, softmax, weights x values, project out, add, norm b, project
#: up, gate, project down, add; final norm, logits, argmax, feed back: 3 + 2 * 15 + 4 launches.
LONGEST_CHAIN = 36


@pytest.mark.parametrize("target", kernels.DEMO_TARGETS)
@pytest.mark.parametrize("wave", [32, 64])
def test_the_demo_is_bit_exact(target: str, wave: int) -> None:
    """Two layers, at least 24 launches of at least eight kernels, eight tokens, on every target and wave size."""
    with rl.open(f"sim:{target}") as device:
        assert device.approximate == ()
        result = demo.run(device, wave)
        assert device.approximate == result.approximate_instructions
    assert result.mismatch == ""
    assert result.exact
    assert result.launches >= 24
    assert result.kernels >= 8
    assert len(result.tokens) == 8
    assert result.minimal.drains < result.full.drains == result.launches - 1
    assert result.minimal.drains == LONGEST_CHAIN
    assert result.minimal.dwords < result.full.dwords
    assert set(result.approximate) == {"rmsnorm", "softmax"}
    assert {"v_rsq_f32", "v_exp_f32"} <= set(result.approximate_instructions)


@pytest.mark.parametrize("target", kernels.DEMO_TARGETS)
def test_the_demo_has_as_many_fences_as_its_longest_chain(target: str) -> None:
    """Drains are the edges of the longest chain of conflicts, found here by comparing every pair as ranges of
    bytes. `stats` says the same.
    """
    plan = demo.record(demo.modules(target, 32)).compile()
    depth: list[int] = []
    for late in plan.launches:
        before = [early for early in plan.launches[: late.index] if _conflict(plan, early, late)]
        depth.append(max((depth[early.index] + 1 for early in before), default=0))
    stats = plan.stats()
    assert stats["drains"] == stats["chain"] == max(depth) == LONGEST_CHAIN
    assert stats["drains"] < stats["per_dependent_launch"]["drains"] < stats["full"]["drains"] == len(depth) - 1
    assert stats["acquires"] <= stats["drains"]
    assert rl.verify(plan, plan.fences) == ()


def _conflict(plan: rl.Plan, early: rl.Launch, late: rl.Launch) -> bool:
    """Whether they share a byte that one of them writes; the demo has no aliases."""
    assert all(buffer.root == buffer.index for buffer in plan.buffers)
    return any(
        a.buffer == b.buffer and a.start < b.stop and b.start < a.stop and (a.writes or b.writes)
        for a in early.touches
        for b in late.touches
    )


def test_the_demo_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Schema 1, one entry a target."""
    assert cli.main(["demo", "--target", "gfx1201", "--json"]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert printed["schema"] == 1
    assert list(printed["targets"]) == ["gfx1201"]
    assert printed["targets"]["gfx1201"]["exact"] is True


def test_a_mismatch_is_shown_and_exits_with_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An oracle that is off by one bit in one buffer is noticed, with token, buffer and byte."""
    step = kernels.decode.step

    def wrong(state: Any, values: Any) -> int:
        token = step(state, values)
        state["k_cache1"][5] ^= 1
        return token

    monkeypatch.setattr(kernels.decode, "step", wrong)
    assert cli.main(["demo", "--target", "gfx1201"]) == 1
    output = capsys.readouterr().out
    assert "MISMATCH" in output
    assert "token 0: k_cache1[5] is 0x" in output


@pytest.mark.parametrize("arguments", [["--target", "gfx1250"], ["--device", "gfx1201"]])
def test_an_unknown_target_or_device_is_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2; the message has the name and what is allowed."""
    assert cli.main(["demo", *arguments]) == 2
    error = capsys.readouterr().err
    assert arguments[1] in error
    assert "allowed: " in error


def test_a_missing_disassembler_is_said_in_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1, no traceback, and what to install."""
    monkeypatch.setenv("RADIOWAVE_LIBLLVM", "/nowhere/libLLVM.so")
    assert cli.main(["demo", "--target", "gfx1201"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("redline: RW")
    assert "redline[sim]" in error


def test_a_gpu_that_is_not_there_exits_with_3(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking for hardware without any says where the runtime was looked for, or why it has no device."""
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "")
    assert cli.main(["demo", "--device", "hsa:99"]) == 3
    assert "RL09" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["demo", "--wave", "16"], ["demo", "--target", "a", "--device", "b"]])
def test_wrong_usage_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """argparse's own code."""
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert "usage: redline" in capsys.readouterr().err


def test_doctor_says_what_was_found_and_where_it_looked(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON with a schema and every place; as text, the place that had it, or all that had not."""
    assert cli.main(["doctor", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["schema"] == 2
    assert printed["redline"] == rl.__version__
    assert any("libhsa-runtime64.so.1" in place for place in printed["gpu"]["looked"])
    assert {"numba", "numpy", "llvmlite"} <= set(printed["packages"])
    assert "gfx1201" in printed["targets"]["gfx12.0"]
    tools = {tool["name"]: tool for tool in printed["tools"]}
    assert tools["disassembler"]["path"]
    assert all(tool["looked"] and bool(tool["found"]) == bool(tool["path"]) for tool in tools.values())
    assert printed["software_device"]["memory_bytes"] == arena.arena_bytes()
    assert printed["gpu"]["agents"] or printed["gpu"]["off"]
    assert cli.main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "gfx12.0: gfx1200 gfx1201\n" in text
    assert "{" not in text
    assert text.count("    looked:") == sum(tool["path"] is None for tool in tools.values())
    assert f"    found: {tools['disassembler']['found']}\n" in text


@pytest.mark.parametrize("found", [None, "/opt/rocm/lib/libhsa-runtime64.so.1"])
def test_doctor_as_text_leaves_out_where_else_it_looked(found: str | None) -> None:
    """A library that was found is named alone; the places are for what is missing."""
    tool = {"name": "x", "path": found, "looked": ("a", "b"), "found": found}
    report = {"tools": [tool], "gpu": {"library": found, "looked": ["a: not there"], "agents": []}}
    short = doctor.shortened(report)
    gone, kept = ("looked", "found") if found else ("found", "looked")
    assert (gone in short["tools"][0], kept in short["tools"][0]) == (False, True)
    assert ("library" in short["gpu"], "looked" in short["gpu"]) == (bool(found), not found)
    assert report["tools"] == [tool]


@pytest.mark.parametrize("redirect", ["| head -n 1", ">&-", "2>&-", "> /dev/full"])
def test_output_that_cannot_be_written_is_no_traceback(redirect: str) -> None:
    """A closed pipe, closed streams, a full disk."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    for words in ("doctor", "explain RL0201"):  # short output stays in the buffer until the end
        command = f"{sys.executable} -m redline {words} {redirect}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment)
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr


def test_an_interrupt_exits_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As shells expect."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run", interrupted)
    assert cli.main(["demo", "--target", "gfx1201"]) == 130
    assert capsys.readouterr().err == "redline: interrupted\n"


def test_explain_prints_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    """Known codes with their class; an unknown one is a usage error."""
    assert cli.main(["explain", "rl1001"]) == 0
    assert capsys.readouterr().out.startswith("RL1001 QueueFailed: ")
    assert cli.main(["explain", "RW0102"]) == 0
    assert "ToolchainError" in capsys.readouterr().out
    assert cli.main(["explain", "RL9999"]) == 2
    assert "RL9999" in capsys.readouterr().err
