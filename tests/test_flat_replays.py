# SPDX-License-Identifier: Apache-2.0
"""Many replays leave nothing behind, and two processes with a device each do not notice one another."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests import flat_replays
from tests.test_replay_forms import FORMS


@pytest.mark.parametrize("form", FORMS)
def test_replays_are_flat_in_memory_signals_and_handles(form: str) -> None:
    """Case 28, case 41, case 61: 2,000 replays over all forms; `tests/prove.py` runs 10^5."""
    assert flat_replays.flat_replays(form, 400) == []


def test_something_that_grows_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """An object for each replay, kept."""
    kept: list[bytearray] = []
    run = flat_replays._run

    def leaking(replay: object, count: int) -> None:
        run(replay, count)  # type: ignore[arg-type]
        kept.extend(bytearray(50) for _ in range(count))

    monkeypatch.setattr(flat_replays, "_run", leaking)
    (found,) = flat_replays.flat_replays("one queue", 400)
    assert "bytes more" in found


def test_two_processes_each_have_a_device() -> None:
    """At the same time, started by spawn, as programs with several workers do; both get right results."""
    spawn = multiprocessing.get_context("spawn")
    with spawn.Manager() as manager, ProcessPoolExecutor(2, mp_context=spawn) as pool:
        together = manager.Barrier(2)
        work = [pool.submit(flat_replays.replay_beside_others, number, 20, together) for number in (1, 5)]
        assert len({done.result(timeout=120) for done in work}) == 2
