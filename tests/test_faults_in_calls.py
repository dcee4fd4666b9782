# SPDX-License-Identifier: Apache-2.0
"""Every call into the runtime refused in turn: its name in the error, nothing left behind, and the next run is right.

From opening a device to the last buffer's end. `test_faults_of_replays.py` has faults of a device that took the work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, nullcontext

import pytest

import redline as rl
from tests.devices import buffers
from tests.faulty import OUT_OF_RESOURCES, Faulty
from tests.test_replay_forms import FORMS, mixed

ENDS = {"hsa_queue_destroy", "hsa_executable_destroy", "hsa_code_object_reader_destroy", "hsa_signal_destroy"}
ENDS |= {"hsa_amd_memory_pool_free"}

#: Another library of the process may be the one that listens: not an error.
OPTIONAL = "hsa_amd_register_system_event_handler"


@pytest.fixture
def faulty() -> Iterator[Faulty]:
    """A device that outlives the runtimes of a test: what they leave is seen."""
    made = Faulty()
    with made.device():
        yield made
        made.count_from_here()
        made.lost_doorbells = None
    assert made.errors == made.sim.errors == []


def _run(faulty: Faulty, device: rl.Device, plan: rl.Plan, graph: rl.Graph) -> None:
    """From memory to memory, everything closed, whatever fails. The device starts once the host waits, so that every
    run makes the same calls.
    """
    with ExitStack() as stack:
        memory = {row.name: stack.enter_context(device.buffer(row.nbytes)) for row in graph.buffers}
        for held in memory.values():
            held.write(bytes(held.nbytes))
        replay = stack.enter_context(device.instantiate(plan, memory))
        replay.patch(a=1.0)
        faulty.lost_doorbells, faulty.found_in_wait = [], True
        replay.submit()
        replay.wait(timeout=20)
        memory["y0"].read("f4")


def _plans(form: str) -> tuple[rl.Graph, rl.Plan]:
    graph = mixed(length=2)
    return graph, graph.compile(**FORMS[form])


@pytest.mark.parametrize("form", FORMS)
def test_a_refused_call_is_named_and_leaves_nothing_behind(form: str, faulty: Faulty) -> None:
    """Case 37, case 44: for n in 1..N of a clean run. What a refused end leaves is given back by the device's own:
    one resource, or everything of the replay when it was a queue's, for that may still run."""
    graph, plan = _plans(form)
    before = faulty.holds()
    faulty.count_from_here()
    with faulty.device() as device:
        _run(faulty, device, plan, graph)
        assert len(device.runtime.resources) == 0
    calls = list(faulty.calls)
    assert set(calls) > ENDS
    for n, name in enumerate(calls, 1):
        refused = nullcontext() if name == OPTIONAL else pytest.raises(rl.HsaError)
        with refused as caught:
            _run_with_refusal(faulty, n, name, plan, graph)
        if caught is not None:
            code = "RL0903" if name == "hsa_init" else "RL0902"
            assert (caught.value.code, caught.value.where) == (code, name), (n, str(caught.value))
            assert hex(OUT_OF_RESOURCES) in caught.value.seen
        assert faulty.holds() == before, (n, name)


def _run_with_refusal(faulty: Faulty, n: int, name: str, plan: rl.Plan, graph: rl.Graph) -> None:
    """A run whose call `n` is refused, then one without, on a device that ends behind them."""
    faulty.count_from_here(refuse=n)
    with faulty.device() as device:
        try:
            _run(faulty, device, plan, graph)
        finally:
            assert faulty.calls[n - 1] == name
            left = len(device.runtime.resources)
            assert left > 1 if name == "hsa_queue_destroy" else left == (name in ENDS), (n, name, left)
            _run(faulty, device, plan, graph)


@pytest.mark.parametrize("form", FORMS)
def test_when_every_call_is_refused_from_one_on_the_first_is_named(form: str, faulty: Faulty) -> None:
    """Case 44: a device that is lost refuses the clean-up too, which must not hide what came first."""
    graph, plan = _plans(form)
    before = faulty.holds()
    with faulty.device() as device:
        memory = buffers(device, graph)
        device.instantiate(plan, memory).close()  # asks the agent what it is, once
        faulty.count_from_here()
        device.instantiate(plan, memory).close()
        calls = list(faulty.calls)
        making = [n for n, name in enumerate(calls, 1) if name not in ENDS]
        for n in making:
            faulty.count_from_here(refuse=n, all_behind=True)
            with pytest.raises(rl.HsaError) as caught:
                device.instantiate(plan, memory)
            assert caught.value.where == calls[n - 1]
        faulty.count_from_here()
        _run(faulty, device, plan, graph)
    assert faulty.holds() == before


def test_a_buffer_whose_end_was_refused_can_be_closed_again(faulty: Faulty) -> None:
    """Also after a replay whose own memory was not taken back: the replay is closed, and its buffers are free to go."""
    graph, plan = _plans("one queue")
    with faulty.device() as device:
        memory = buffers(device, graph)
        made = len(device.runtime.resources)
        replay = device.instantiate(plan, memory)
        faulty.count_from_here(refuse=2)  # the first ends the queue
        with pytest.raises(rl.HsaError, match="RL0902"):
            replay.close()
        replay.close()
        with pytest.raises(rl.NotRecorded, match="RL1204"):
            replay.submit()
        assert len(device.runtime.resources) == made + 1
        for held in memory.values():
            faulty.count_from_here(refuse=1)
            with pytest.raises(rl.HsaError, match="RL0902 hsa_amd_memory_pool_free"):
                held.close()
            assert not held.closed
            held.close()
            assert held.closed
        assert len(device.runtime.resources) == 1
