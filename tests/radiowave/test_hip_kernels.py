# SPDX-License-Identifier: Apache-2.0
"""The kernels of `examples/hip`, compiled with each toolchain of this machine, inspected, and run against numpy.

A slice of `hip_kernels.run`, which `make prove` does in full: every kernel on every target, and every toolchain and
both wave sizes in turn.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import redline as rl
from radiowave import CodeObject, compile_hip
from radiowave.certifier import certify
from tests.radiowave.clang import DEMO_TARGETS
from tests.radiowave.hip_kernels import CASES, FOLDER, WAVES, difference, examine, toolchains

pytestmark = pytest.mark.clang


@pytest.fixture(scope="module", params=DEMO_TARGETS)
def device(request: pytest.FixtureRequest) -> Iterator[rl.Device]:
    """One software device a target."""
    with rl.open(f"sim:{request.param}") as opened:
        yield opened


@pytest.mark.parametrize("name", CASES)
def test_kernel_is_what_numpy_says(device: rl.Device, name: str) -> None:
    """Each pair of toolchain and wave size has its turn over the targets and kernels."""
    builds = [(toolchain.name, wave) for wave in WAVES for toolchain in toolchains()]
    turn = DEMO_TARGETS.index(device.target) + len(DEMO_TARGETS) * list(CASES).index(name)
    toolchain, wave = builds[turn % len(builds)]
    assert examine(name, device.target, wave, toolchain, device) == "", (toolchain, wave)


def test_every_source_has_a_case_and_every_toolchain_is_here() -> None:
    """A kernel without an oracle would never run; CI has two clangs."""
    assert {path.stem for path in FOLDER.glob("*.hip")} == set(CASES)
    assert {"clang-19", "clang-22"} <= {toolchain.name for toolchain in toolchains()}


@pytest.mark.parametrize("name", CASES)
def test_no_kernel_reads_a_buffer_through_the_scalar_cache(name: str) -> None:
    """All eight are certified; the position of `kv_write` only because of `vmem_load`."""
    data = compile_hip(FOLDER / f"{name}.hip", target="gfx1201").code_object
    assert certify(CodeObject.parse(data))[name].verdict == "vmem_only"


def test_plain_load_of_the_position_is_a_scalar_load() -> None:
    """What `vmem_load` is for."""
    text = (FOLDER / "kv_write.hip").read_text().replace("radiowave::vmem_load(position)", "*position")
    data = compile_hip(text, target="gfx1201").code_object
    assert certify(CodeObject.parse(data))["kv_write"].verdict == "scalar_args"


def test_a_wrong_result_is_seen() -> None:
    """One bit of an exact result, one part in a thousand of a sum, one byte of an input that was written."""
    exact, summed = CASES["vector_add"](32), CASES["matmul"](32)
    right = exact.expected["c"]
    assert difference("c", right, right, exact) == ""
    assert difference("c", np.nextafter(right, np.float32(9)), right, exact).startswith("c[0]")
    close = summed.expected["c"].reshape(-1)
    assert difference("c", close, close, summed) == ""
    assert difference("c", close * 1.001, close, summed)
    assert difference("a", exact.arguments["a"] + 1, exact.arguments["a"], exact).startswith("a[0]")
