# SPDX-License-Identifier: Apache-2.0
"""What the compiler made of the header stores. Runs where code is compiled, so it is no `nopython` test."""

from __future__ import annotations

import re

import numpy as np
from numba import njit

from redline.hsa.publish import publish


def test_headers_are_atomic_release_stores_of_32_bits() -> None:
    """LLVM may neither tear them, nor merge them with the body's, nor move the body behind them."""
    fresh = njit(error_model="numpy")(publish.py_func)  # code from numba's cache cannot be inspected
    fresh(np.zeros(16, np.uint32), 0, np.zeros((1, 16), np.uint32))
    texts = fresh.inspect_llvm().values()
    stores = [line.strip() for text in texts for line in text.splitlines() if "store atomic" in line]
    found = [re.fullmatch(r"store atomic i32 (\S+), ptr \S+ release, align 4", store) for store in stores]
    values = [match[1] for match in found if match]
    assert len(values) == len(stores)
    assert "1" in values  # INVALID, before the body
    assert [value for value in values if value.startswith("%")]  # the packet's own header
