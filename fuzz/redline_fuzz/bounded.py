# SPDX-License-Identifier: Apache-2.0
"""Runs many small hostile cases in processes that may die or hang, and says which case did.

A case is a number: `judge(seed, index)` makes it, tries it and returns (answer, what is wrong, mostly nothing).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

Judge = Callable[[int, int], tuple[str, str]]

#: Seconds that one case may take; all of ours take milliseconds.
SECONDS = 20


class TooSlow(BaseException):
    """Raised by the alarm; nothing that catches Exception swallows it."""


@contextmanager
def alarm(seconds: int = SECONDS) -> Iterator[None]:
    """Stop what takes too long."""

    def ring(_number: int, _frame: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def one(judge: Judge, seed: int, index: int, seconds: int = SECONDS) -> tuple[str, str]:
    """One case: an exception of another kind, or none of an end, is what is wrong with it."""
    try:
        with alarm(seconds):
            return judge(seed, index)
    except TooSlow:
        return "hang", f"not done after {seconds} s"
    except Exception as error:
        return "crash", f"{type(error).__name__}: {error}"


def run(judge: Judge, count: int, seed: int, workers: int | None = None) -> dict[str, Any]:
    """`count` cases; the record says how they were answered and which of them were not."""
    began = time.monotonic()
    workers = workers or os.cpu_count() or 1
    size = max(1, min(500, -(-count // workers)))
    parts = [(judge, seed, first, min(size, count - first)) for first in range(0, count, size)]
    answers: Counter[str] = Counter()
    failures: list[dict[str, Any]] = []
    # Spawned, not forked: the parent may hold threads.
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        for part, future in [(part, pool.submit(_part, *part)) for part in parts]:
            try:
                seen, wrong = future.result()
                answers += seen
                failures += wrong
            except BrokenProcessPool as error:
                failures.append({"cases": [part[2], part[2] + part[3]], "what": f"a process died: {error}"})
    seconds = round(time.monotonic() - began, 1)
    return {"cases": count, "seed": seed, "answers": dict(sorted(answers.items())), "failures": failures} | {
        "seconds": seconds
    }


def _part(judge: Judge, seed: int, first: int, count: int) -> tuple[Counter[str], list[dict[str, Any]]]:
    answers: Counter[str] = Counter()
    failures: list[dict[str, Any]] = []
    for index in range(first, first + count):
        answer, wrong = one(judge, seed, index)
        answers[answer] += 1
        if wrong:
            failures.append({"case": index, "seed": seed, "what": wrong})
    return answers, failures
