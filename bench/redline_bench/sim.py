# SPDX-License-Identifier: Apache-2.0
"""How fast the software device executes: wave-instructions a second on the tiled matmul, 512 waves in one dispatch.

A wave-instruction is one instruction executed by one wave, as the scheduler steps it. Timed after one warm-up run,
which disassembles and compiles; packets and queues are no part of it. The figure is this interpreter's, never a GPU's.
Every run's result is compared with the oracle, outside the timing.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from redline_fuzz.bare_device import BareDevice

from redline.kernels import SPECS, build
from redline.kernels.oracles import ORACLES, Geometry

KERNEL, N = "matmul", 128
TARGETS = ("gfx1030", "gfx1100", "gfx1201")
WANTED = 2_000_000  # wave-instructions a second on one core


def _launch() -> tuple[tuple[Any, ...], Geometry]:
    """C = A B for square matrices, and the smallest grid that covers C."""
    random, spec = np.random.default_rng(1), SPECS[KERNEL]
    c = np.zeros(N * N, np.float32)
    a, b = (random.standard_normal(N * N).astype(np.float32) for _ in range(2))
    scalars = [N] * 6 + [N * N] * 3
    names = [argument.name for argument in spec.arguments if not argument.access]
    assert spec.block is not None
    groups = spec.groups(dict(zip(names, scalars, strict=True)), (1, 1, 1))
    x, y, z = (count * size for count, size in zip(groups, spec.block, strict=True))
    return (c, a, b, *map(np.uint32, scalars)), Geometry((x, y, z), spec.block)


def measurements(target: str, rounds: int, wave: int = 32) -> dict[str, Any]:
    """Wave-instructions a second of each round, and the best of them."""
    arguments, geometry = _launch()
    expected = arguments[0].copy()
    ORACLES[KERNEL](expected, *map(_plain, arguments[1:]), geometry=geometry)
    rates: list[float] = []
    with BareDevice(target) as device:
        loaded = device.load(build(KERNEL, target, wave))
        for _ in range(rounds + 1):
            before, began = device.wave_instructions, time.perf_counter()
            device.run(loaded, KERNEL, arguments, *geometry)
            seconds, executed = time.perf_counter() - began, device.wave_instructions - before
            if not np.array_equal(arguments[0], expected):
                raise AssertionError(f"{KERNEL} on {target} differs from its oracle")
            rates.append(executed / seconds)
    items = geometry.global_size[0] * geometry.global_size[1] * geometry.global_size[2]
    return {
        "kernel": f"{KERNEL} {N}x{N}x{N}",
        "target": f"{target} wave{wave}",
        "waves": items // wave,
        "wave_instructions": executed,
        "per_second": [round(rate) for rate in rates[1:]],
        "best": round(max(rates[1:])),
        "wanted": WANTED,
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, np.ndarray) else int(value)
