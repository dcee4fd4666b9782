# SPDX-License-Identifier: Apache-2.0
"""Side-by-side timing: what is compared runs in turn, round by round, so that a drifting machine cancels out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

Samples = dict[str, list[float]]


def measure(calls: Mapping[str, Callable[[], object]], rounds: int, repeat: int = 20) -> Samples:
    """Seconds per call of each, `rounds` samples of `repeat` calls, interleaved, after one warm-up call."""
    for call in calls.values():
        call()
    samples: Samples = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            started = time.perf_counter()
            for _ in range(repeat):
                call()
            samples[name].append((time.perf_counter() - started) / repeat)
    return samples
