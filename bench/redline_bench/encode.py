# SPDX-License-Identifier: Apache-2.0
"""How fast words are written and relocated, against the limit: copying the same bytes within the same run.

Measures compiled code only; planning and recording are `plan.py`'s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import redline as rl
from redline.encoders import family_for
from redline.encoders.emit import RELOC, apply_relocs, emit_program, max_dwords, max_relocs
from redline_bench.timing import Samples, measure


def measurements(target: str, launches: int, rounds: int) -> dict[str, Any]:
    """Median nanoseconds per launch of encoding and relocating, and their ratios to a copy of the words."""
    table = family_for(target)
    kernel = rl.Kernel.synthetic("k", pointers=2, target=target)
    row = table.dispatch_operation(kernel.words("k"), (1024, 1, 1), (256, 1, 1))
    ops = np.repeat(np.array([row]), launches)
    ops["entry_reloc"], ops["kernarg_reloc"] = np.arange(launches) % 16, np.arange(launches)
    words, relocs = np.zeros(max_dwords(ops), np.uint32), np.zeros(max_relocs(ops), RELOC)
    family = table.family()
    used, relocated = (int(n) for n in emit_program(ops, words, relocs, family, False))
    source, addresses = words[:used].copy(), np.arange(launches, dtype=np.uint64) << np.uint64(8)
    samples = measure(
        {
            "encode": lambda: emit_program(ops, words, relocs, family, False),
            "relocate": lambda: apply_relocs(words, relocs[:relocated], addresses, addresses, addresses, addresses),
            "copy": lambda: np.copyto(words[:used], source),
        },
        rounds,
    )
    return {"target": target, "launches": launches, "dwords": used, **_figures(samples, launches)}


def _figures(samples: Samples, launches: int) -> dict[str, Any]:
    medians = {name: float(np.median(values)) for name, values in samples.items()}
    per_launch = {f"{name}_ns_per_launch": round(1e9 * value / launches, 2) for name, value in medians.items()}
    ratios = {
        f"{name}_to_copy": round(float(np.median(np.array(samples[name]) / np.array(samples["copy"]))), 2)
        for name in ("encode", "relocate")
    }
    return {**per_launch, **ratios}
