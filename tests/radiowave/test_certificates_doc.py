# SPDX-License-Identifier: Apache-2.0
"""`docs/certificates.md`: the machine code that it shows is what clang 22 makes of the source that it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from radiowave.cli import main
from tests.radiowave import clang

pytestmark = pytest.mark.clang

FILE = Path(__file__).parents[2] / "docs" / "certificates.md"
PRELUDE = """
#define __global__ extern "C" __attribute__((global))
struct Id { unsigned x; };
#define blockIdx (Id{__builtin_amdgcn_workgroup_id_x()})
#define threadIdx (Id{__builtin_amdgcn_workitem_id_x()})
"""


def blocks(language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"```{re.escape(language)}\n(.*?)```", FILE.read_text(encoding="utf-8"), re.DOTALL)


def printed(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], *command: str) -> str:
    """What a command of radiowave says about a source compiled for gfx1100; spaces made one."""
    device = ("--offload-device-only", "--no-gpu-bundle-output", "--offload-arch=gfx1100")
    path = clang.hip(tmp_path, 22, *device, source=PRELUDE + source, name="scale")
    assert main([*command, str(path)]) == 0
    return re.sub(r" +", " ", capsys.readouterr().out)


def lines(block: str) -> list[str]:
    """The instructions of a listing, without what is said about them."""
    return [re.sub(r" +", " ", line.split("   ")[0]) for line in block.splitlines() if "_" in line.split(" ")[0]]


def test_listings_are_real(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each instruction of the text, in its order; and the verdicts."""
    source, change = blocks("c++")
    listing, certified, atomic = blocks("text")[:3]
    shown = printed(source, tmp_path, capsys, "disassemble")
    found = [shown.index(line) for line in lines(listing)]
    assert len(found) == 8
    # The scheduler may interleave; what is read and what is written is in the order of the text.
    assert found == sorted(found)
    said = re.sub(r" +", " ", certified.partition("\n")[2])
    assert printed(source, tmp_path, capsys, "certify") == said
    body = source.replace("  y[i] = x[i] * factor[0];\n", f"  {change}").replace(
        "const float *__restrict__ factor", "float *factor"
    )
    assert lines(atomic)[0] in printed(body, tmp_path, capsys, "disassemble")
    assert atomic.splitlines()[1] in printed(body, tmp_path, capsys, "certify")
