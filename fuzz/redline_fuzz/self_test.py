# SPDX-License-Identifier: Apache-2.0
"""`redline-fuzz self-test`: every planted fault must be found within a stated number of examples."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

from redline_fuzz.faults import FAULTS
from redline_fuzz.operator_mutants import EQUIVALENT, mutants
from redline_fuzz.planting import Fault, Search, search

#: The most examples that a fault may take.
MOST_EXAMPLES = 600

#: Examples of sound Redline, in the same kind of process: where it is accused too, no fault was found by its fault.
SOUND_EXAMPLES = 20

#: Where the package `redline` may stand: beside `fuzz` in a checkout, beside this package where it is installed.
ROOTS = Path(__file__).resolve().parents[2], Path(__file__).resolve().parents[1]

#: Imported once in the process that all others are forked from; nothing of ours may be among them.
_PRELOADED = ["numpy", "numba", "hypothesis", "hypothesis.strategies", "llvmlite.binding"]


def run(
    seed: int,
    examples: int | None = None,
    names: Sequence[str] | None = None,
    *,
    workers: int = 2,
    progress: Callable[[str], object] | None = None,
) -> dict[str, Any]:
    """Plant the named faults, or all of them with the generic mutants. Raises KeyError for a name that there is not."""
    generic = {fault.name: fault for fault in _generic()}
    known = {fault.name: fault for fault in FAULTS} | generic
    chosen = [known[name] for name in names] if names else list(known.values())
    found: dict[str, Search] = {}
    accused = ""
    for one in _searched(chosen, seed, examples or MOST_EXAMPLES, workers):
        if one.name not in known:
            accused = f"{one.oracle}: {one.what}" if one.oracle else ""
            continue
        found[one.name] = one
        if progress is not None:
            progress(f"{len(found)}/{len(chosen)} {one.name}: {one.oracle or 'NOT FOUND'}, {one.examples} examples")
    return _record(chosen, found, generic, seed, examples or MOST_EXAMPLES) | {"accused": accused}


def _generic() -> list[Fault]:
    root = next(root for root in ROOTS if (root / "redline" / "fences.py").exists())
    return list(mutants(root))


def _searched(faults: Sequence[Fault], seed: int, examples: int, workers: int) -> Iterator[Search]:
    """Each in a fresh process, forked from one that has the libraries and nothing of ours; first without a fault."""
    context = get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    # Not ProcessPoolExecutor(max_tasks_per_child=1), which may stop for ever (CPython issue 115634).
    with _interpreted(), context.Pool(workers, maxtasksperchild=1) as pool:
        work: list[tuple[Fault | None, int, int]] = [(None, seed, SOUND_EXAMPLES)]
        work += [(fault, seed, examples) for fault in faults]
        yield from pool.imap_unordered(_search, work)


def _search(work: tuple[Fault | None, int, int]) -> Search:
    return search(*work)


@contextmanager
def _interpreted() -> Iterator[None]:
    """Children run nopython code as Python."""
    with patch.dict(os.environ, NUMBA_DISABLE_JIT="1"):
        yield


def _record(
    faults: Sequence[Fault], found: dict[str, Search], generic: dict[str, Fault], seed: int, examples: int
) -> dict[str, Any]:
    """Equivalent mutants count as neither planted nor found; one that is found is no equivalent."""
    survivors = {name: EQUIVALENT.get(name, "") for name, one in found.items() if not one.oracle}
    counted = [fault for fault in faults if not survivors.get(fault.name)]
    return {
        "schema": 1,
        "seed": seed,
        "most_examples": examples,
        "killed": sum(bool(found[fault.name].oracle) for fault in counted),
        "total": len(counted),
        "planted": sum(fault.name not in generic for fault in counted),
        "generic": sum(fault.name in generic for fault in counted),
        "faults": [
            {
                "name": fault.name,
                "file": fault.file,
                "oracle": found[fault.name].oracle,
                "examples": found[fault.name].examples,
                "what": found[fault.name].what[:200],
            }
            for fault in faults
        ],
        "survivors": survivors,
    }
