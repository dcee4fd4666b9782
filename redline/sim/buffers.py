# SPDX-License-Identifier: Apache-2.0
"""Buffer descriptors (V#): which accesses are inside the buffer, and at which address.

Raw buffers only: stride 0, no swizzle, OOB_SELECT 3. Any other descriptor is refused when it is met, because nothing
here can show that its range rule is right.

Layout: base 47:0, stride 61:48, swizzle 63:62, num_records 95:64, OOB_SELECT 125:124, TYPE 127:126. Source: AMD's
RDNA2 to RDNA4 instruction set manuals, "Buffer resource descriptor"; PAL `gfx10_sq_ko_reg.h`.
"""

from __future__ import annotations

import numpy as np

from .op import U32, U64, Mask

RAW = 3  # TYPE 0 above OOB_SELECT 3


class DescriptorError(ValueError):
    """A descriptor that is not a raw buffer."""


def _fields(descriptor: U32) -> tuple[U64, U64]:
    """Base address and num_records of each wave's descriptor [wave, 4], as [wave, 1]."""
    words = descriptor.astype(np.uint64)
    stride_and_swizzle = descriptor[:, 1] >> np.uint32(16)
    if stride_and_swizzle.any():
        raise DescriptorError("a buffer descriptor with a stride or a swizzle")
    if ((descriptor[:, 3] >> np.uint32(28)) != RAW).any():
        raise DescriptorError("a descriptor whose TYPE is not buffer (0) or whose OOB_SELECT is not raw (3)")
    base = words[:, 0] | (words[:, 1] & np.uint64(0xFFFF)) << np.uint64(32)
    return base[:, None], words[:, 2][:, None]


def vector_in_range(descriptor: U32, offset: U64, uniform: U64, nbytes: int) -> tuple[Mask, U64]:
    """Per lane: whether `nbytes` at offset + uniform are inside, and their address.

    An access is outside when its end lies past num_records; the uniform offset counts. Not compared with hardware.
    """
    base, records = _fields(descriptor)
    at: U64 = offset + uniform
    return at + np.uint64(nbytes) <= records, base + at


def scalar_in_range(descriptor: U32, at: U64) -> tuple[Mask, U64]:
    """Per dword of a scalar buffer load: whether it is inside, and its address."""
    base, records = _fields(descriptor)
    return at + np.uint64(4) <= records, base + at
