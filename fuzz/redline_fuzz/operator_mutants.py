# SPDX-License-Identifier: Apache-2.0
"""Generic mutants of `redline/fences.py`: every operator and small constant of the derivation changed in turn.

Where `faults.py` asks for mistakes that we thought of, this asks for those that we did not. A mutant that means the
same is listed with its reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from redline_fuzz.planting import Fault

FILE = "redline/fences.py"

#: The functions that decide; the others check what users pass, or present.
DECIDING = (
    *("derived", "full_fences", "all_classes", "_entry", "_line_drains", "_loop_drains", "acquires_at", "_stab"),
    "_check_order",
)

_COMPARE = {"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Add: "+",
    ast.Sub: "-",
    ast.BitOr: "|",
    ast.BitAnd: "&",
}
_ARITHMETIC = {"+": "-", "-": "+", "&": "|", "|": "&"}

_NEVER = "Plan.of never makes an order against after=; tests/test_verify.py asks for the error"
_NONE = "any negative number means none"

#: Mutants that survive, and why they mean the same.
EQUIVALENT: dict[str, str] = {
    "derived, line 7, 0 -> 1 at 30": _NEVER,
    "derived, line 7, loop -> True at 48": _NEVER,
    "derived, line 7, 0 -> 1 at 58": _NEVER,
    "_check_order, line 2, >= -> > at 33": _NEVER,
    "_check_order, line 7, 0 -> 1 at 40": _NEVER,
    "derived, line 16, rule -> True at 64": "an empty rule is no rule, as None is",
    "_line_drains, line 3, 1 -> 2 at 72": _NONE,
    "_loop_drains, line 5, 1 -> 2 at 74": _NONE,
    "_loop_drains, line 5, 1 -> 2 at 112": _NONE,
    "acquires_at, line 12, 1 -> 2 at 87": _NONE,
    "acquires_at, line 16, 1 -> 2 at 53": _NONE,
    "_loop_drains, line 4, >= -> > at 24": "on the circle, number `count` is number 0",
}


def mutants(root: Path) -> Iterator[Fault]:
    """All of them, named by function, line within it, and change. `root` is the project's folder."""
    source = (root / FILE).read_text()
    lines = source.splitlines(keepends=True)
    starts = [sum(map(len, lines[:at])) for at in range(len(lines) + 1)]
    for function in ast.parse(source).body:
        if isinstance(function, ast.FunctionDef) and function.name in DECIDING:
            for place, old, new in sorted(_changes(source, function, starts)):
                line = source.count("\n", 0, place) + 1
                name = f"{function.name}, line {line - function.lineno}, {old} -> {new} at {place - starts[line - 1]}"
                yield _fault(name, source, place, old, new)


def _fault(name: str, source: str, place: int, old: str, new: str) -> Fault:
    """The whole file is the text that is replaced, so that the place is exact."""
    return Fault(name, FILE, source, source[:place] + new + source[place + len(old) :])


def _changes(source: str, function: ast.FunctionDef, starts: list[int]) -> Iterator[tuple[int, str, str]]:
    """(place, old text, new text) of each change in a function's body."""

    def offset(node: ast.expr, *, end: bool = False) -> int:
        line = node.end_lineno if end else node.lineno
        column = node.end_col_offset if end else node.col_offset
        return starts[(line or 1) - 1] + (column or 0)

    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _OPERATORS:
            old = _OPERATORS[type(node.ops[0])]
            place = source.index(old, offset(node.left, end=True))
            yield place, old, _COMPARE[old]
        elif isinstance(node, ast.BinOp) and _OPERATORS.get(type(node.op)) in _ARITHMETIC:
            old = _OPERATORS[type(node.op)]
            yield source.index(old, offset(node.left, end=True)), old, _ARITHMETIC[old]
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            yield source.index(f" {old} ", offset(node.values[0], end=True)) + 1, old, new
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield offset(node), "not ", ""
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield offset(node), str(node.value), str(node.value + 1)
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            yield offset(node), str(node.value), str(not node.value)
        elif isinstance(node, ast.IfExp):
            yield offset(node.test), ast.get_source_segment(source, node.test) or "", "True"
            yield offset(node.test), ast.get_source_segment(source, node.test) or "", "False"
