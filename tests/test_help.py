# SPDX-License-Identifier: Apache-2.0
"""`--help` of each command: purpose, an example that runs here, exit codes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import redline

ROOT = Path(redline.__file__).parent.parent
COMMANDS = [
    *("redline decode", "redline lint", "redline tables"),
    *("radiowave", "radiowave compile", "radiowave inspect", "radiowave disassemble", "radiowave tools"),
]
#: The console scripts and the Python of this very installation.
SHELL = """set -eu
python() { "$PYTHON" "$@"; }
redline() { "$PYTHON" -m redline "$@"; }
radiowave() { "$PYTHON" -m radiowave "$@"; }
"""


def _shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "fuzz"), str(ROOT / "bench")])
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": path}
    done = subprocess.run(
        ["bash", "-c", SHELL + script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_a_purpose_an_example_that_runs_and_exit_codes(command: str, tmp_path: Path) -> None:
    """Every example is run as printed, in an empty folder, without a GPU."""
    text = _shell(f"{command} --help", tmp_path).stdout
    head, *examples = re.split(r"^Example.*:\n", text, flags=re.MULTILINE)
    assert "Needs no GPU." in " ".join(head.split())
    assert examples
    for example in examples:
        lines = example.partition("\n\n")[0]
        assert command in lines
        _shell(lines, tmp_path)
    codes = examples[-1].partition("Exit codes:\n")[2]
    assert re.findall(r"^  (\d)  \w", codes, re.MULTILINE)[0] == "0"
    assert "\n  2  wrong usage" in codes
