# SPDX-License-Identifier: Apache-2.0
"""What `redline-fuzz` shows: progress while it runs, and at the end a table of what was done and found."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from redline_fuzz.judging import Tally

_PROGRESS_SECONDS = 1.0


def progress() -> Callable[[int, int, Tally], None]:
    """Prints a line to standard error at most once a second, in place on a terminal."""
    began, last = time.monotonic(), [0.0]

    def show_progress(done: int, total: int, tally: Tally) -> None:
        now = time.monotonic()
        if done < total and now - last[0] < _PROGRESS_SECONDS:
            return
        last[0] = now
        text = f"{done}/{total} examples, {tally.schedules} schedules, {now - began:.0f} s"
        _line(text, last=done == total)

    return show_progress


def step() -> Callable[[str], None]:
    """Prints what was done last, in the same way."""
    return lambda text: _line(text, last=not sys.stderr.isatty())


def _line(text: str, *, last: bool) -> None:
    in_place = sys.stderr.isatty()
    print(
        f"\r\x1b[K{text}" if in_place else text, end="\n" if last or not in_place else "", file=sys.stderr, flush=True
    )


def show(record: dict[str, Any]) -> None:
    """The table of a run, and each finding with the program that shows it."""
    console = Console(soft_wrap=True)
    table = Table(title=f"redline-fuzz --profile {record['profile']} --seed {record['seed']}")
    table.add_column("target")
    for column in ("judged", "passed over", "mutants tried", "noticed"):
        table.add_column(column, justify="right")
    for name, row in record.get("oracles", {}).items():
        counts = (row["tried"], row["killed"]) if row["tried"] else ("", "")
        table.add_row(name, str(row["judged"]), str(row["passed_over"] or ""), *map(str, counts))
    for name, row in record["hostile"].items():
        table.add_row(name, str(row["cases"]), "", "", "")
    console.print(table)
    if "examples" in record:
        console.print(f"{record['examples']} examples, {record['schedules']} schedules")
    for failure, kept in zip(record.get("failures", []), record["kept"], strict=True):
        console.print(f"\nFOUND by {failure['oracle']}: {escape(failure['what'])}\nkept as {escape(kept['file'])}")
        console.print(escape(kept["python"]), highlight=False)
    for name, row in record["hostile"].items():
        for found in row["failures"]:
            console.print(f"FOUND by {name}: {escape(str(found))}")
    console.print("clean" if record["clean"] else "[bold]findings[/bold]")


def show_faults(record: dict[str, Any]) -> None:
    """Every planted fault: what found it, after how many examples."""
    console = Console(soft_wrap=True)
    table = Table(title=f"planted faults: {record['killed']} of {record['total']} found")
    for column in ("fault", "file", "found by", "examples"):
        table.add_column(column)
    for fault in record["faults"]:
        table.add_row(fault["name"], fault["file"], fault["oracle"] or "NOT FOUND", str(fault["examples"]))
    console.print(table)
    if record["accused"]:
        console.print(f"[bold]sound Redline is accused too[/bold]: {escape(record['accused'])}")
    for name, reason in record.get("survivors", {}).items():
        console.print(f"survives: {escape(name)}: {escape(reason or 'NO KNOWN REASON')}")
