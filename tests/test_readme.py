# SPDX-License-Identifier: Apache-2.0
"""The README's example, run as a new user would: from the built wheel, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import redline
from redline.encoders import TARGETS

ROOT = Path(redline.__file__).parent.parent
README = (ROOT / "README.md").read_text()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the tree with the build back end that is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-q",
        "-w",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_packages_and_their_data(wheel: Path) -> None:
    """Both libraries, the fuzz and bench packages, kernel sources, licence files; no tests."""
    names = zipfile.ZipFile(wheel).namelist()
    for part in ("redline/kernels/saxpy.ll", "radiowave/cli.py", "redline_fuzz/cli.py", "redline_bench/__init__.py"):
        assert part in names
    for header in ("radiowave/hip.h", "without_hip/hip/hip_runtime.h"):
        assert f"radiowave/include/{header}" in names
    assert len([name for name in names if name.startswith("redline/kernels/") and name.endswith(".ll")]) == 14
    assert [name for name in names if name.endswith(("LICENSE", "NOTICE"))]
    assert not [name for name in names if name.startswith(("tests/", "fuzz/", "bench/"))]


def test_the_example_runs_from_the_wheel_in_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    """Copied from the README, with nothing but the wheel in front of the path; at most ten lines."""
    example = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    assert len(example.strip().splitlines()) <= 10
    site, work = tmp_path / "site", tmp_path / "work"
    zipfile.ZipFile(wheel).extractall(site)
    work.mkdir()
    script = example + "\nprint(redline.__file__)\n"
    environment = {**os.environ, "PYTHONPATH": str(site), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], cwd=work, env=environment, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout == f"[3. 3. 3. 3.]\n{site}/redline/__init__.py\n"
    assert list(work.iterdir()) == []


def test_the_explained_plan_is_what_the_example_prints() -> None:
    """Word for word, without the fingerprint before and the results behind."""
    script = [sys.executable, str(ROOT / "examples" / "decode_loop.py")]
    printed = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    (block,) = re.findall(r"```\n(entry: .*?)```", README, re.DOTALL)
    assert block in printed


def test_the_targets_of_the_table_are_the_encoders() -> None:
    """The README's list, written as ranges, names every target and no other."""
    (cell,) = re.findall(r"\| targets \| ([^;]*);", README)
    named = set()
    for part in cell.split(", "):
        first, _, last = part.strip().partition("-")
        numbers = range(int(first[3:]), int(last or first[3:]) + 1)
        named |= {f"gfx{number}" for number in numbers}
    assert named == set(TARGETS)
