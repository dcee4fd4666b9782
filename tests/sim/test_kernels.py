# SPDX-License-Identifier: Apache-2.0
"""The example kernels, run from their machine code, against their numpy oracles.

Each kernel on five targets in both wave sizes: random shapes and data, and the same bytes whether all waves step
together, one at a time, or a few in shuffled order. Then the claim behind "bit-exact" itself: approximations of the
hardware may only show in the kernels whose table says so.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redline_fuzz.bare_device import BareDevice, Loaded
from redline_fuzz.kernel_cases import CASES, Case, random_case
from redline_fuzz.kernel_runs import WAVES, check, computed, expected

import radiowave
from redline.kernels import DEMO_TARGETS, NAMES, SPECS, build, build_all, decode
from redline.sim import approximate, valu
from redline.sim.errors import MemoryFault
from redline.sim.op import Array, Op
from redline.sim.scheduler import Policy

PAIRS = [(target, wave) for target in DEMO_TARGETS for wave in WAVES]


class Bench:
    """One device for each target, one disassembler for all, every kernel loaded once."""

    def __init__(self) -> None:
        self.disassembler = radiowave.Disassembler()
        self.objects = build_all(waves=WAVES)
        self.device = cache(self._device)
        self.loaded = cache(self._loaded)
        self._devices: list[BareDevice] = []

    def _device(self, target: str) -> BareDevice:
        self._devices.append(BareDevice(target, disassembler=self.disassembler))
        return self._devices[-1]

    def _loaded(self, name: str, target: str, wave: int) -> Loaded:
        return self.device(target).load(self.objects[name, target, wave])

    def run(self, case: Case, target: str, wave: int, policy: Policy | None = None) -> Case:
        return computed(self.device(target), self.loaded(case.kernel, target, wave), case, policy)

    def close(self) -> None:
        for device in self._devices:
            device.close()
        self.disassembler.close()


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()


@pytest.mark.parametrize(("target", "wave"), PAIRS)
@pytest.mark.parametrize("name", NAMES)
def test_kernel_equals_its_oracle(bench: Bench, name: str, target: str, wave: int) -> None:
    """Random shapes and data; to the bit, rmsnorm and softmax within their tolerance; nothing else is written."""

    @settings(max_examples=5)
    @given(data=st.data(), seed=st.integers(0, 1 << 32))
    def agrees(data: st.DataObject, seed: int) -> None:
        case = CASES[name](lambda low, high: data.draw(st.integers(low, high)), np.random.default_rng(seed))
        check(case, bench.run(case, target, wave))

    agrees()


@pytest.mark.parametrize(("target", "wave"), PAIRS)
def test_tolerance_is_for_hardware_only(bench: Bench, target: str, wave: int) -> None:
    """Oracle and software device both round the approximations correctly, so here even these two agree to the bit:
    a wrong last place anywhere in their sums or quotients shows."""
    for case in (random_case(name, seed) for name in ("rmsnorm", "softmax") for seed in range(30)):
        check(case, bench.run(case, target, wave), to_the_bit=True)


@pytest.mark.parametrize(("target", "wave"), PAIRS)
def test_how_waves_are_batched_changes_nothing(bench: Bench, target: str, wave: int) -> None:
    """All together, one wave at a time, and at most three in an order drawn at random: equal bytes everywhere."""
    for name in NAMES:
        case = random_case(name, 11)
        together = bench.run(case, target, wave)
        check(case, together)
        for policy in (Policy(batch=1), Policy(batch=3, seed=wave)):
            other = bench.run(case, target, wave, policy)
            for a, b in zip(together.arguments, other.arguments, strict=True):
                assert a.tobytes() == b.tobytes(), f"{name} under {policy}"


def test_all_targets_compute_the_same_bits(bench: Bench) -> None:
    """One source text, ten translations of it, one result."""
    for name in NAMES:
        case = random_case(name, 3)
        results = {b"".join(a.tobytes() for a in bench.run(case, target, wave).arguments) for target, wave in PAIRS}
        assert len(results) == 1, name


@pytest.mark.parametrize(("target", "wave"), PAIRS)
def test_decoder_tokens_come_out_of_machine_code(bench: Bench, target: str, wave: int) -> None:
    """The decoder's launches one after another, two tokens: every buffer as the oracles leave it. The approximations
    are correctly rounded on both sides here, so even the sums behind rmsnorm and softmax agree to the bit."""
    wanted, found = decode.initial(), decode.initial()
    for position in range(2):
        values = decode.slot_values(position)
        decode.step(wanted, values)
        for launch in decode.LAUNCHES:
            loaded = bench.loaded(launch.kernel, target, wave)
            arguments = tuple(decode.arguments(launch, found, values))
            bench.device(target).run(loaded, launch.kernel, arguments, launch.global_size, launch.block)
    assert [name for name in wanted if wanted[name].tobytes() != found[name].tobytes()] == []


def test_a_check_notices_one_wrong_bit() -> None:
    """The judge itself: one flipped bit in any array of any kernel, or a value beyond the tolerance, is an error."""
    for name in NAMES:
        case = random_case(name, 5)
        for at, argument in enumerate(SPECS[name].arguments):
            if not argument.access or not len(case.arguments[at]):
                continue
            wrong = expected(case)
            array = wrong.arguments[at].view(np.uint8)
            element = random.Random(at).randrange(len(case.arguments[at])) * case.arguments[at].itemsize
            # The lowest bit where results are exact; the exponent's lowest where there is a tolerance.
            array[element + (0 if SPECS[name].exact or argument.access == "read" else 3)] ^= 1
            with pytest.raises(AssertionError, match=f"{name} {argument.name}"):
                check(case, wrong)


@pytest.mark.parametrize(("target", "wave"), [("gfx1030", 64), ("gfx1201", 32)])
def test_a_buffer_one_element_short_is_a_fault(bench: Bench, target: str, wave: int) -> None:
    """A kernel told of more elements than its buffer has stops at the first byte outside."""
    case = random_case("saxpy", 1)
    n = len(case.arguments[0])
    for x_elements, kind in ((n, None), (n - 1, "read")):
        short = Case(
            "saxpy", (case.arguments[0], case.arguments[1][:x_elements], np.float32(2), np.uint32(n)), case.geometry
        )
        if kind is None:
            check(short, bench.run(short, target, wave))
        else:
            with pytest.raises(MemoryFault, match=kind):
                bench.run(short, target, wave)


class _Faithful:
    """An approximation that rounds to either neighbour of the true value, as hardware within 1 ULP may."""

    def __init__(self, op: Op, seed: int) -> None:
        self._exact, self._random = op.fn, np.random.default_rng(seed)
        self.calls = 0

    def __call__(self, a: Array, **needs: Any) -> Array:
        self.calls += 1
        near = self._exact(a, **needs)
        wide = self._exact(a.astype(np.float64), **needs)
        with np.errstate(all="ignore"):
            other = np.nextafter(near, np.where(wide > near, np.inf, -np.inf).astype(near.dtype))
            free = np.isfinite(near) & (wide != near.astype(np.float64)) & (self._random.random(near.shape) < 0.5)
        result: Array = np.where(free, other, near).astype(near.dtype)
        return result


@pytest.mark.parametrize(("target", "wave"), [("gfx1100", 32), ("gfx1030", 64)])
def test_approximations_show_only_in_rmsnorm_and_softmax(
    monkeypatch: pytest.MonkeyPatch, target: str, wave: int
) -> None:
    """Every approximate instruction replaced by a random faithful neighbour: the exact kernels keep their bits, the
    other two change (so the replacement is real) and stay within their tolerance. f32 division is built on v_rcp_f32
    and still exact."""
    cases = [random_case(name, seed) for name in NAMES for seed in range(4)]
    replaced: dict[str, _Faithful] = {}
    for name in sorted(approximate.APPROXIMATE & valu.VALU.keys()):
        if name.endswith("_f32"):
            replaced[name] = _Faithful(valu.VALU[name], len(replaced))
    before = _run_all(cases, target, wave)
    for name, faithful in replaced.items():
        monkeypatch.setitem(valu.VALU, name, replace(valu.VALU[name], fn=faithful))
    after = _run_all(cases, target, wave)
    changed = set()
    for case, plain, perturbed in zip(cases, before, after, strict=True):
        check(case, perturbed)
        if any(a.tobytes() != b.tobytes() for a, b in zip(plain.arguments, perturbed.arguments, strict=True)):
            changed.add(case.kernel)
    assert changed == {"rmsnorm", "softmax"}
    assert {name for name, faithful in replaced.items() if faithful.calls} == {"v_rcp_f32", "v_rsq_f32", "v_exp_f32"}


def _run_all(cases: list[Case], target: str, wave: int) -> list[Case]:
    """On a fresh device, whose decoded instructions come from the table as it is now."""
    with BareDevice(target) as device:
        return [computed(device, device.load(build(case.kernel, target, wave)), case) for case in cases]
