# SPDX-License-Identifier: Apache-2.0
"""Cases that are kept: shrunk findings and the graphs of known mistakes. The tests run every one through every oracle.

One JSON file each, named by the case's id: the case, the oracle that it is for, and why it is there. New findings go
beside them in a checkout that can be written, and else into `redline-fuzz-findings` of the working directory.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from redline_fuzz.cases import Case
from redline_fuzz.printing import case_id, from_json, to_json

FOLDER = Path(__file__).parent / "corpus"
_IN_CHECKOUT = (Path(__file__).parents[2] / "pyproject.toml").is_file()
FINDINGS = Path("redline-fuzz-findings")


@dataclass(frozen=True)
class Kept:
    """A case with its reason."""

    id: str
    oracle: str
    why: str
    case: Case


def load_all() -> list[Kept]:
    """Those of the package and those of the working directory, sorted by id."""
    found = {path.stem: path for folder in (FINDINGS, FOLDER) if folder.is_dir() for path in folder.glob("*.json")}
    return [_read(path) for _, path in sorted(found.items())]


def load(name: str) -> Kept:
    """The case with this id. Raises KeyError when there is none."""
    for folder in (FOLDER, FINDINGS):
        path = folder / f"{name}.json"
        if path.parent == folder and path.is_file():
            return _read(path)
    raise KeyError(name)


def save(case: Case, oracle: str, why: str, folder: Path | None = None) -> Path:
    """Keep a case; the file's path. A case that is kept already is left as it is."""
    if folder is None:
        folder = FOLDER if _IN_CHECKOUT and os.access(FOLDER, os.W_OK) else FINDINGS
    folder.mkdir(exist_ok=True)
    path = folder / f"{case_id(case)}.json"
    if not path.exists():
        row = {"oracle": oracle, "why": why, "case": json.loads(to_json(case))}
        path.write_text(json.dumps(row, indent=1, sort_keys=True) + "\n")
    return path


def _read(path: Path) -> Kept:
    row = json.loads(path.read_text())
    return Kept(path.stem, row["oracle"], row["why"], from_json(json.dumps(row["case"])))
