# SPDX-License-Identifier: Apache-2.0
"""A back end of the software device's packet reader that accepts every dispatch and runs none.

For cases that ask what packets do to queues and readers, and for devices whose machine comes later.
"""

from __future__ import annotations

import threading

from redline.sim.dispatch import Dispatch, InOrder
from redline.sim.memory import Memory


class NoKernels(InOrder):
    """Packets act in order; dispatches end at once."""

    def dispatch(self, dispatch: Dispatch, memory: Memory, cancelled: threading.Event) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """Nothing is held."""
