# SPDX-License-Identifier: Apache-2.0
"""Strict reading of JSON that other programs or people wrote: each key once, finite numbers, real text, one object.

Says what is wrong as a ValueError in words; who reads makes it an error of its own. `msgspec` turns the result into
dataclasses.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

MAX_BYTES: Final = 64 << 20


def read_object(data: bytes) -> dict[str, Any]:
    """The one JSON object in `data`. Raises ValueError for anything else."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"{len(data):,} bytes, where at most {MAX_BYTES:,} are read")
    try:
        document = json.loads(
            data, object_pairs_hook=_without_twins, parse_constant=_refuse_constant, parse_float=_finite
        )
        json.dumps(document, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(document, dict):
        raise ValueError(f"a JSON {type(document).__name__}, not an object")
    return document


def canonical(document: object) -> bytes:
    """The one way to write a document: keys sorted, no spaces, ASCII."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twins = sorted({key for key, _ in pairs if sum(key == other for other, _ in pairs) > 1})
        raise ValueError(f"keys given twice: {', '.join(twins)[:200]}")
    return found


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


def _finite(digits: str) -> float:
    """Python reads 1e400 as infinity, which nobody can write down again."""
    if not math.isfinite(number := float(digits)):
        raise ValueError(f"{digits[:40]} is larger than any number of 64 bits")
    return number
