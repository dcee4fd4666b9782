# SPDX-License-Identifier: Apache-2.0
"""Runs hypothesis over cases in several processes and sums up what was done and found.

A run is cut into chunks, each with a seed of its own and one family of cases, so that any number of processes does the
same work. The first failure of a chunk is shrunk by the oracle that found it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase
from hypothesis.errors import NoSuchExample
from hypothesis.strategies import SearchStrategy, one_of

from redline_fuzz.cases import Case
from redline_fuzz.judging import Tally
from redline_fuzz.oracles import FIVE, Failure, judge
from redline_fuzz.shapes import SHAPES
from redline_fuzz.strategies import cases, explicit_cases

#: Examples of each profile; every one runs under at least 64 schedules.
EXAMPLES = {"quick": 120, "ci": 1000, "deep": 6000}
CHUNK = 20

FAMILIES = {"gfx10": FIVE[:2], "gfx11": FIVE[2:4], "gfx12": FIVE[4:]}


@dataclass(frozen=True)
class Chunk:
    """Part of a run: which cases, how many, and the seed they are drawn with."""

    kind: str
    oracles: tuple[str, ...]
    targets: tuple[str, ...]
    examples: int
    seed: int
    database: str = ""


@dataclass(frozen=True)
class Done:
    """What a chunk did, and the shrunk case that an oracle found wrong, if one did."""

    chunk: Chunk
    tally: Tally
    failure: Failure | None = None


def chunks(
    oracles: Sequence[str], examples: int, first_seed: int, targets: Sequence[str] = FIVE, database: str = ""
) -> Iterator[Chunk]:
    """The chunks of a run: general cases and named shapes by turns; for `errors` graphs in explicit order too."""
    kinds = ["any", "shapes"] if set(oracles) - {"errors"} else []
    kinds = ["explicit", *kinds, *kinds] if "errors" in oracles else kinds
    for number, start in enumerate(range(0, examples, CHUNK)):
        count, kind = min(CHUNK, examples - start), kinds[number % len(kinds)]
        yield Chunk(kind, tuple(oracles), tuple(targets), count, first_seed * 1_000_003 + number, database)


def run_chunk(chunk: Chunk, *, shrink: bool = True) -> Done:
    """One chunk in this process."""
    tally, asked = Tally(), list(chunk.oracles)

    def is_wrong(case: Case) -> bool:
        failure = judge(case, tuple(asked), tally)
        if failure is not None:
            asked[:] = [failure.oracle]  # the others need not agree while it shrinks
        return failure is not None

    options = settings(
        max_examples=chunk.examples,
        database=database_of(chunk.database),
        deadline=None,
        derandomize=False,
        phases=list(Phase) if shrink else [Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    # With a seed hypothesis looks into no database, so that equal seeds are equal examples: one or the other.
    drawn = None if chunk.database else Random(chunk.seed)
    key = f"redline-fuzz {chunk.kind}".encode()
    try:
        case = find(_strategy(chunk), is_wrong, settings=options, random=drawn, database_key=key)
    except NoSuchExample:
        return Done(chunk, tally)
    return Done(chunk, tally, judge(case, tuple(asked), Tally()))


def _strategy(chunk: Chunk) -> SearchStrategy[Case]:
    if chunk.kind == "explicit":
        return explicit_cases(targets=chunk.targets)
    if chunk.kind == "any":
        return cases(targets=chunk.targets)
    return one_of([shape(targets=chunk.targets) for shape in SHAPES.values()])


def database_of(place: str) -> ExampleDatabase | None:
    """Hypothesis's own: a directory or redis://host:port, which many machines may share; none for "".

    Raises OSError for a server that does not answer, ModuleNotFoundError without the `redis` package.
    """
    if not place:
        return None
    if place.startswith("redis://"):
        from hypothesis.extra.redis import RedisExampleDatabase
        from redis import Redis, RedisError  # the user's to install: only who shares a database over the net needs it

        try:
            shared = Redis.from_url(place)
            shared.ping()  # hypothesis would ask in the middle of an example
        except (RedisError, ValueError) as error:
            raise OSError(f"database {place}: {error}") from error
        return RedisExampleDatabase(shared)
    return DirectoryBasedExampleDatabase(place)


def run(
    work: Sequence[Chunk], workers: int, progress: Callable[[int, int, Tally], object] | None = None
) -> tuple[Tally, list[Failure]]:
    """All chunks; the sums, and at most one failure of each oracle, in the order of the chunks."""
    total, done = Tally(), 0
    found: dict[int, Failure] = {}
    for finished in _finished(work, workers):
        total.add(finished.tally)
        done += finished.chunk.examples
        if finished.failure is not None:
            found[finished.chunk.seed] = finished.failure
        if progress is not None:
            progress(done, sum(chunk.examples for chunk in work), total)
    first: dict[str, Failure] = {}
    for number in sorted(found):
        first.setdefault(found[number].oracle, found[number])
    return total, list(first.values())


def _finished(work: Sequence[Chunk], workers: int) -> Iterator[Done]:
    """Chunks as they end; one that kills its process is named."""
    if workers == 1:
        yield from map(run_chunk, work)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        left: set[Future[Done]] = {pool.submit(run_chunk, chunk) for chunk in work}
        try:
            while left:
                ended, left = wait(left, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield future.result()
        finally:
            for future in left:
                future.cancel()


def as_record(tally: Tally, failures: Sequence[Failure]) -> dict[str, Any]:
    """What a run did, ready for `json.dumps`."""
    return {
        "examples": tally.examples,
        "schedules": tally.schedules,
        "oracles": {
            name: {what: getattr(tally, what)[name] for what in ("judged", "passed_over", "tried", "killed")}
            for name in sorted({*tally.judged, *tally.passed_over})
        },
        "failures": [{"oracle": failure.oracle, "what": failure.text} for failure in failures],
    }
