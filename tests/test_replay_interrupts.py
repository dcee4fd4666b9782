# SPDX-License-Identifier: Apache-2.0
"""Signal handlers that end the replay whose submit or wait they interrupt: cancel in a wait, nothing else."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import redline as rl
from redline import hsa
from tests.devices import release, waiting_replay


@contextmanager
def _interrupting(handler: Callable[[], None]) -> Iterator[None]:
    """SIGUSR1 soon, in the main thread, which runs `handler` inside whatever it does then."""
    before = signal.signal(signal.SIGUSR1, lambda *_: handler())
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGUSR1])
    timer.start()
    yield
    timer.join()
    signal.signal(signal.SIGUSR1, before)


def test_a_signal_handler_may_cancel_what_it_interrupts(device: rl.Device) -> None:
    """The wait below it on the stack ends with the cause."""
    replay, _ = waiting_replay(device)
    with replay:
        replay.submit()
        with _interrupting(replay.cancel), pytest.raises(rl.QueueFailed, match="cancelled in flight"):
            replay.wait(timeout=60)


def test_a_signal_handler_may_not_free_what_it_interrupts(device: rl.Device) -> None:
    """Close is refused inside a wait of the same thread, which ends all the same; afterwards it frees."""
    refused: list[rl.ReplayBusy] = []
    replay, memory = waiting_replay(device)

    def close() -> None:
        try:
            replay.close()
        except rl.ReplayBusy as error:
            refused.append(error)

    replay.submit()
    with _interrupting(close), pytest.raises(rl.QueueFailed, match="closed in flight"):
        replay.wait(timeout=60)
    assert [error.code for error in refused] == ["RL1407"]
    with pytest.raises(rl.ReplayBusy, match="RL1403"):
        memory["z"].close()
    replay.close()
    memory["z"].close()


def test_a_signal_handler_may_not_end_the_submit_that_it_interrupts(
    device: rl.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The packet would go into a ring that is gone. Nothing is stopped, and the replay is as good as before."""
    replay, memory = waiting_replay(device)
    with replay:
        submit = hsa.Submission.submit

        def interrupted(submission: hsa.Submission) -> list[int]:
            for end in (replay.cancel, replay.close):
                with pytest.raises(rl.ReplayBusy, match=r"RL1407 .*inside Replay.submit"):
                    end()
            return submit(submission)

        monkeypatch.setattr(hsa.Submission, "submit", interrupted)
        replay.submit()
        release(device, memory)
        replay.wait(timeout=20)
