# SPDX-License-Identifier: Apache-2.0
"""The device's constant-rate clock: what timestamp packets write and what wait hints count in.

One clock for host and device, so HSA_SYSTEM_INFO_TIMESTAMP and a timestamp packet can be compared directly; on
hardware they are two clocks of one frequency. Never goes back. Says nothing about how long a kernel would take.
"""

from __future__ import annotations

import time

# HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY and HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY: the reference clock of RDNA cards.
DEVICE_TICKS_PER_SECOND = 100_000_000


def device_ticks() -> int:
    """Ticks since an arbitrary start, as 64 bits hold them."""
    return time.monotonic_ns() * DEVICE_TICKS_PER_SECOND // 1_000_000_000
