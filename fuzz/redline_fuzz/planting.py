# SPDX-License-Identifier: Apache-2.0
"""Plants one fault into Redline in a process of its own and looks whether an oracle finds it.

The module is compiled from its source with a text replaced, before anything else has imported it; nothing is written.
Nopython code runs interpreted there, so that a planted line is not compiled first and no cache sees it.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

#: Seconds that the examples of one chunk may take, which take some: a loop that never ends is found by it.
BOUND_SECONDS = 240

#: The most examples for a mutant that is listed as equivalent: enough to notice a list that is out of date.
LISTED_EXAMPLES = 100


@dataclass(frozen=True)
class Fault:
    """`old`, which stands exactly once in the file, becomes `new`. `file` counts from the project: redline/sweep.py."""

    name: str
    file: str
    old: str
    new: str
    oracles: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        return self.file.removesuffix(".py").replace("/", ".")


@dataclass(frozen=True)
class Search:
    """What a process did about a fault: the oracle that found it, "crash" or "hang", "" for none, and its examples."""

    name: str
    oracle: str
    examples: int
    what: str = ""


def faulty(source: str, fault: Fault) -> str:
    """The source with the fault. Raises ValueError unless the text stands there exactly once."""
    count = source.count(fault.old)
    if count != 1:
        raise ValueError(f"{fault.name}: {fault.file} has {fault.old!r} {count} times; allowed: once")
    return source.replace(fault.old, fault.new)


class _Loader(SourceFileLoader):
    def __init__(self, fault: Fault, path: str) -> None:
        super().__init__(fault.module, path)
        self._fault = fault

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path).decode()
        return compile(faulty(source, self._fault), self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    def __init__(self, fault: Fault) -> None:
        self._fault = fault

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._fault.module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(self._fault, spec.origin)
        return spec


def plant(fault: Fault) -> None:
    """From now on the faulty module is imported. Raises RuntimeError where the right one already was."""
    if fault.module in sys.modules:
        raise RuntimeError(f"{fault.module} is imported already; plant in a fresh process")
    sys.meta_path.insert(0, _Finder(fault))


class _TooLong(BaseException):
    """Not an Exception, so that nobody on the way swallows it."""


def _too_long(_signal: int, _frame: object) -> None:
    raise _TooLong


def search(fault: Fault | None, seed: int, examples: int) -> Search:
    """Plant and judge until an oracle finds something; for a fresh process. Without a fault: is all well?

    Kept cases come first, then random ones; fewer where a fault is listed as meaning the same.
    """
    from redline_fuzz.operator_mutants import EQUIVALENT

    name = fault.name if fault else "none"
    if fault:
        plant(fault)
    signal.signal(signal.SIGALRM, _too_long)
    done = 0
    examples = min(examples, LISTED_EXAMPLES) if name in EQUIVALENT else examples
    try:
        from redline_fuzz import corpus
        from redline_fuzz.judging import Tally
        from redline_fuzz.oracles import ORACLES, judge
        from redline_fuzz.run import chunks, run_chunk

        oracles = fault.oracles if fault and fault.oracles else tuple(ORACLES)
        for kept in corpus.load_all():
            signal.alarm(BOUND_SECONDS)
            done += 1
            failure = judge(kept.case, oracles, Tally())
            if failure is not None:
                return Search(name, failure.oracle, done, failure.text)
        for chunk in chunks(oracles, examples, seed):
            signal.alarm(BOUND_SECONDS)
            finished = run_chunk(chunk, shrink=False)
            done += finished.tally.examples
            if finished.failure is not None:
                return Search(name, finished.failure.oracle, done, finished.failure.text)
    except _TooLong:
        return Search(name, "hang", done, f"not done after {BOUND_SECONDS} s")
    except Exception as error:
        return Search(name, "crash", done, f"{type(error).__name__}: {error}")
    finally:
        signal.alarm(0)
    return Search(name, "", done)
