# SPDX-License-Identifier: Apache-2.0
"""Damaged streams, rings and disassembler requests: a slice with a fixed seed, and each target can find something."""

from __future__ import annotations

import signal
import time
from importlib import import_module
from typing import Any

import pytest
from redline_fuzz import bounded, hostile_disassembler, hostile_manifests, hostile_rings, hostile_streams

from radiowave import Disassembler
from redline.sim.packets import Pm4Reader
from redline.sim.signals import Signals


@pytest.mark.parametrize(
    ("name", "count"), [("streams", 1000), ("rings", 150), ("disassembler", 60), ("manifests", 400)]
)
def test_a_slice_is_answered(name: str, count: int) -> None:
    """Every case was read, refused or failed with a status; no crash, no hang, no dead process."""
    record = import_module(f"redline_fuzz.hostile_{name}").run(count, 1)
    assert record["failures"] == []
    assert sum(record["answers"].values()) == count
    assert len(record["answers"]) > 1


def test_cases_are_the_same_in_every_process() -> None:
    """The seed and the number decide."""
    first = [hostile_streams.judge(3, index) for index in range(20)]
    assert first == [hostile_streams.judge(3, index) for index in range(20)]
    assert first != [hostile_streams.judge(4, index) for index in range(20)]


def test_another_exception_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that raises KeyError for some packet."""

    def broken(*_arguments: object) -> None:
        raise KeyError("opcode")

    monkeypatch.setattr(Pm4Reader, "_event_write", broken)
    wrong = {bounded.one(hostile_streams.judge, 1, index) for index in range(60)}
    assert ("crash", "KeyError: 'opcode'") in wrong


def test_a_hang_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that loops is stopped, and said to be what it is."""

    def endless(*_arguments: object) -> None:
        while True:
            time.sleep(0.01)

    monkeypatch.setattr(Pm4Reader, "_acquire_mem", endless)
    answers = {bounded.one(hostile_streams.judge, 1, index, seconds=1) for index in range(3)}
    assert ("hang", "not done after 1 s") in answers
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def test_a_device_that_raises_in_a_callback_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrapper of every call catches it, and the target looks there."""
    right = Signals.destroy

    def broken(self: Signals, handle: int) -> None:
        right(self, handle)
        raise ZeroDivisionError

    monkeypatch.setattr(Signals, "destroy", broken)
    answer = bounded.one(hostile_rings.judge, 1, 0)
    assert answer[1]


def test_a_child_that_answers_wrong_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another text for s_endpgm."""
    right = Disassembler.decode

    def wrong(self: Any, *arguments: Any) -> Any:
        return [item._replace(text="s_nop 0") for item in right(self, *arguments)]

    monkeypatch.setattr(Disassembler, "decode", wrong)
    assert "reads as" in bounded.one(hostile_disassembler.judge, 1, 1)[1]


def test_a_verdict_that_is_believed_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verification that keeps the narrower certificate."""
    monkeypatch.setattr("radiowave.verification._recertified", lambda *_arguments: None)
    answers = [bounded.one(hostile_manifests.judge, 1, index) for index in range(400)]
    assert any("its code scalar_args" in what for _answer, what in answers)


def test_a_process_that_dies_is_a_finding() -> None:
    """And the other cases are still counted."""
    record = bounded.run(_dies, 3, 1, workers=1)
    assert "a process died" in record["failures"][0]["what"]


def _dies(_seed: int, index: int) -> tuple[str, str]:
    if index == 1:
        signal.raise_signal(signal.SIGKILL)
    return "fine", ""
