# SPDX-License-Identifier: Apache-2.0
"""DPP: the first source comes from another lane of the same row, and some lanes may not be written.

The lane tables are AMD's RDNA instruction set manuals', section "DPP". A source lane that does not exist or is off
gives 0 with bound_ctrl, else the lane is not written; row_mask and bank_mask name the lanes that may be. `fi` also
reads lanes that are off. Rows are 16 lanes, banks 4.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .halves import Selection
from .op import Array, Mask, Op
from .operands import Parsed, ParseError
from .registers import Reader
from .state import Front
from .step import Context

Lanes = Callable[[Front], Mask]
_ROW: NDArray[np.int64] = np.arange(16)


def _shift(distance: int) -> NDArray[np.int64]:
    return np.where((_ROW + distance >= 0) & (_ROW + distance < 16), _ROW + distance, -1)


def _quad(text: str) -> NDArray[np.int64]:
    order = np.array([int(lane) for lane in text.strip("[]").split(",")])
    if len(order) != 4 or order.min() < 0 or order.max() > 3:
        raise ParseError(f"quad_perm:{text}")
    source: NDArray[np.int64] = _ROW // 4 * 4 + order[_ROW % 4]
    return source


def _eight(text: str) -> NDArray[np.int64]:
    order = np.array([int(lane) for lane in text.strip("[]").split(",")])
    if len(order) != 8 or order.min() < 0 or order.max() > 7:
        raise ParseError(f"dpp8:{text}")
    source: NDArray[np.int64] = _ROW // 8 * 8 + order[_ROW % 8]
    return source


# control -> for each lane of a row, the lane of that row it reads; -1: none
CONTROLS: dict[str, Callable[[str], NDArray[np.int64]]] = {
    "quad_perm": _quad,
    "dpp8": _eight,
    "row_shl": lambda text: _shift(_amount(text)),
    "row_shr": lambda text: _shift(-_amount(text)),
    "row_ror": lambda text: (_ROW - _amount(text)) % 16,
    "row_mirror": lambda text: 15 - _ROW,
    "row_half_mirror": lambda text: _ROW // 8 * 8 + 7 - _ROW % 8,
    "row_share": lambda text: np.full(16, _amount(text)),
    "row_xmask": lambda text: _ROW ^ _amount(text),
}


def _amount(text: str) -> int:
    value = int(text, 0)
    if not 0 <= value <= 15:
        raise ParseError(f"DPP row amount {text}")
    return value


def compile_lanes(parsed: Parsed, readers: list[Reader], context: Context, selection: Selection) -> Lanes | None:
    """Make the first reader fetch across lanes; return which lanes are written. None without DPP."""
    if "dpp" not in parsed.suffixes and "dpp8" not in parsed.suffixes:
        return None
    first = parsed.operands[len(parsed.operands) - len(selection.op.src)]
    if first.kind != "v":
        raise ParseError(f"DPP on the operand {first.token}")
    controls = [name for name in CONTROLS if name in parsed.modifiers]
    if len(controls) != 1:
        raise ParseError("not exactly one DPP control")
    in_row = CONTROLS[controls[0]](selection.take(controls[0]) or "")
    zeroes = _flag(selection, "bound_ctrl")
    fetches_inactive = _flag(selection, "fi") or (controls[0] == "dpp8" and "fi" in parsed.modifiers)
    allowed = _allowed(selection, context.wave)
    rows = np.arange(context.wave) // 16 * 16
    source = np.tile(in_row, context.wave // 16)
    exists = source >= 0
    source = np.where(exists, source, 0) + rows
    valid = _validity(source, exists, fetches_inactive)
    readers[0] = _crossing(readers[0], source, valid)
    if zeroes or controls[0] == "dpp8":
        return lambda front: front.exec & allowed
    return lambda front: front.exec & allowed & valid(front)


def _flag(selection: Selection, name: str) -> bool:
    text = selection.take(name)
    if text not in (None, "0", "1"):
        raise ParseError(f"{name}:{text}")
    return text == "1"


def _allowed(selection: Selection, wave: int) -> Mask:
    row_mask = int(selection.take("row_mask") or "0xf", 0)
    bank_mask = int(selection.take("bank_mask") or "0xf", 0)
    lane = np.arange(wave)
    return (row_mask >> lane // 16 & 1).astype(np.bool_) & (bank_mask >> lane % 16 // 4 & 1).astype(np.bool_)


def _validity(source: NDArray[np.int64], exists: Mask, fetches_inactive: bool) -> Lanes:
    if fetches_inactive:
        return lambda front: np.broadcast_to(exists, front.shape)
    return lambda front: front.exec[:, source] & exists


def _crossing(fetch: Reader, source: NDArray[np.int64], valid: Lanes) -> Reader:
    def read(front: Front) -> Array:
        value = fetch(front)
        taken: Array = value[:, source]
        return np.where(valid(front), taken, value.dtype.type(0))

    return read


def masked(
    store: Callable[[Front, tuple[Array, ...]], None], lanes: Lanes, op: Op
) -> Callable[[Front, tuple[Array, ...]], None]:
    """The same store, into fewer lanes."""
    if op.dst[0] in ("mask", "exec"):
        raise ParseError("DPP on a comparison")

    def narrowed(front: Front, values: tuple[Array, ...]) -> None:
        exec_mask, full = front.exec, front.full
        front.exec, front.full = lanes(front), False
        try:
            store(front, values)
        finally:
            front.exec, front.full = exec_mask, full

    return narrowed
