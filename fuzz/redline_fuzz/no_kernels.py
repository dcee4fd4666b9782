# SPDX-License-Identifier: Apache-2.0
"""A back end of the software device that accepts every dispatch and runs none: for inputs that damage packets."""

from __future__ import annotations

import threading

from redline.sim.dispatch import Dispatch, InOrder
from redline.sim.memory import Memory


class NoKernels(InOrder):
    """Nothing is pending and nothing is cached."""

    def dispatch(self, dispatch: Dispatch, memory: Memory, cancelled: threading.Event) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """Nothing is held."""
