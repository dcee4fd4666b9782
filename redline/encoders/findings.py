# SPDX-License-Identifier: Apache-2.0
"""What a linter says about a stream, and where it collects it. Knows no rule: `lint.py` and `lint_launch.py` do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Finding:
    """`dword` is the index in the stream, `rule` a stable name, `level` "error" or "warning".

    >>> str(Finding(2, "event", "CS_DONE drains nothing", "error"))
    'dword 2: error: CS_DONE drains nothing [event]'
    """

    dword: int
    rule: str
    text: str
    level: str

    def __str__(self) -> str:
        return f"dword {self.dword}: {self.level}: {self.text} [{self.rule}]"


class Report:
    """Findings as they come."""

    def __init__(self) -> None:
        self._found: list[Finding] = []

    def error(self, dword: int, rule: str, text: str) -> None:
        self._found.append(Finding(dword, rule, text, "error"))

    def warning(self, dword: int, rule: str, text: str) -> None:
        self._found.append(Finding(dword, rule, text, "warning"))

    def sorted(self) -> list[Finding]:
        """In order of dwords, each once."""
        return sorted(set(self._found))
