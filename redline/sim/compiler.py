# SPDX-License-Identifier: Apache-2.0
"""From the text of one instruction to code for a `Front`, once for each text.

Asks each family of instructions in turn; what none of them knows is refused with address and text. The text says all
that decides the meaning (branch displacements are relative), so the cache key needs no address.
"""

from __future__ import annotations

from .control import NO_EFFECT, compile_control
from .errors import UnsupportedInstruction
from .flat import compile_flat
from .lds import compile_lds
from .names import normalise
from .operands import Parsed, ParseError, parse
from .scalar import compile_scalar
from .smem import compile_smem
from .step import Code, Context
from .valu import NOT_BIT_EXACT
from .vector import compile_vector
from .vmem import compile_vmem
from .vmem_atomic import compile_vmem_atomic

MAX_TEXTS = 1 << 16  # kept; hostile code could hold a new one in every dispatch


class Compiler:
    """Code by instruction text, for one generation and wave size."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._codes: dict[str, Code] = {}
        self.approximate: frozenset[str] = frozenset()  # of all that was compiled; what no wave reaches is not

    def compile(self, text: str, pc: int) -> Code:
        """The code of `text`; `pc` is only named when it is refused."""
        code = self._codes.get(text)
        if code is None:
            if len(self._codes) >= MAX_TEXTS:
                self._codes.clear()
            try:
                code = self._codes[text] = compile_text(text, self._context)
            except ParseError as error:
                raise UnsupportedInstruction(pc, text, str(error)) from error
            self.approximate |= code.approximate
        return code


def compile_text(text: str, context: Context) -> Code:
    """Compile one line of disassembly; ParseError says why it is refused."""
    if normalise(text.partition(" ")[0]) in NO_EFFECT:  # before parsing: operands of waits have a grammar of their own
        return Code(run=lambda front: None)
    parts = parse(text)
    code = _by_family(parts, context)
    if code is None:
        raise ParseError("not in the table of semantics")
    approximate = NOT_BIT_EXACT.intersection(parsed.name for parsed in parts)
    return Code(code.run, code.jump, code.touch, _highest_vgpr(parts), approximate)


def _by_family(parts: tuple[Parsed, ...], context: Context) -> Code | None:
    first = parts[0]
    if first.name.startswith("v_s_"):  # scalar operands in a vector encoding
        return compile_scalar(first, context)
    if len(parts) == 2 or first.name.startswith("v_"):
        return compile_vector(parts, context)
    if (code := compile_control(first, context)) is not None:
        return code
    if first.name.startswith("s_"):
        return compile_smem(first) or compile_scalar(first, context)
    if first.name.startswith("ds_"):
        return compile_lds(first, context)
    return compile_vmem(first) or compile_flat(first) or compile_vmem_atomic(first)


def _highest_vgpr(parts: tuple[Parsed, ...]) -> int:
    reached = [o.first + o.count for parsed in parts for o in parsed.operands if o.kind == "v"]
    return max(reached, default=0)
