# SPDX-License-Identifier: Apache-2.0
"""Example kernels on the software device against their oracles, one random case after another.

`expected` and `check` judge one case; `run` is the long form that `make prove` records. Cases come from
`kernel_cases`, the device from `bare_device`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redline.kernels import DEMO_TARGETS, NAMES, SPECS, build_all
from redline.kernels.oracles import ORACLES
from redline.sim.errors import DeviceFault
from redline.sim.scheduler import Policy
from redline_fuzz.bare_device import BareDevice, Loaded
from redline_fuzz.kernel_cases import Case, random_case

WAVES = (32, 64)


def expected(case: Case) -> Case:
    """The case with its arrays as the oracle leaves them."""
    after = case.copy()
    arguments = [int(a) if isinstance(a, np.integer) else a for a in after.arguments]
    ORACLES[case.kernel](*arguments, geometry=case.geometry)
    return after


def computed(device: BareDevice, loaded: Loaded, case: Case, policy: Policy | None = None) -> Case:
    """The case with its arrays as the device leaves them."""
    after = case.copy()
    device.run(loaded, case.kernel, after.arguments, *case.geometry, policy)
    return after


def difference(case: Case, device: Case, *, to_the_bit: bool = False) -> str:
    """The first array that is not as the oracle has it, in words; empty when all are.

    Compared to the bit, NaN as NaN, or within the kernel's tolerance.
    """
    spec = SPECS[case.kernel]
    wanted = expected(case)
    for argument, want, got in zip(spec.arguments, wanted.arguments, device.arguments, strict=True):
        if not argument.access:
            continue
        if spec.exact or to_the_bit or argument.access == "read":
            same = same_bits(want, got)
        else:
            same = np.isclose(want, got, rtol=spec.tolerance, atol=0.0)
        if not same.all():
            at = int(np.argmin(same))
            return (
                f"{case.kernel} {argument.name}[{at}]: {got[at]!r}, the oracle has {want[at]!r}; "
                f"{int((~same).sum())} of {len(same)} elements differ; {_scalars(case)}"
            )
    return ""


def check(case: Case, device: Case, *, to_the_bit: bool = False) -> None:
    """`difference` as an assertion, for tests."""
    found = difference(case, device, to_the_bit=to_the_bit)
    assert not found, found


def same_bits(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """Where two arrays hold the same bits, or both a NaN."""
    unsigned = f"u{a.dtype.itemsize}"
    same: NDArray[np.bool_] = a.view(unsigned) == b.view(unsigned)
    if a.dtype.kind == "f":
        same |= np.isnan(a) & np.isnan(b)
    return same


def _scalars(case: Case) -> str:
    """The launch in words, so that a failure can be read without a debugger."""
    named = zip(SPECS[case.kernel].arguments, case.arguments, strict=True)
    values = ", ".join(f"{a.name}={v}" for a, v in named if not a.access)
    return f"{values}, grid {case.geometry.global_size}, block {case.geometry.block}"


def run(
    count: int,
    *,
    first_seed: int = 0,
    targets: Sequence[str] = DEMO_TARGETS,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """`count` cases of each kernel on each target and wave size; the record says how many agreed."""
    began = time.monotonic()
    objects = build_all(targets, waves=WAVES)
    pairs: dict[str, int] = {}
    failures: list[str] = []
    for target in targets:
        with BareDevice(target) as device:
            for wave in WAVES:
                pair = f"{target} wave{wave}"
                pairs[pair] = 0
                for name in NAMES:
                    loaded = device.load(objects[name, target, wave])
                    for seed in range(first_seed, first_seed + count):
                        fault = _judge(device, loaded, random_case(name, seed))
                        pairs[pair] += not fault
                        failures += [f"{pair} seed {seed}: {fault}"] if fault else []
                    device.unload(loaded)
                if progress is not None:
                    progress(len(pairs), len(targets) * len(WAVES))
    return {
        "equal": not failures,
        "cases": {pair: f"{agreed} of {count * len(NAMES)}" for pair, agreed in pairs.items()},
        "tolerance": {name: SPECS[name].tolerance for name in NAMES if not SPECS[name].exact},
        "failures": failures,
        "seconds": round(time.monotonic() - began, 1),
    }


def _judge(device: BareDevice, loaded: Loaded, case: Case) -> str:
    """Empty when device and oracle agree; a fault of the device is a finding like any other."""
    try:
        return difference(case, computed(device, loaded, case))
    except DeviceFault as fault:
        return f"{case.kernel}: {fault}; {_scalars(case)}"
