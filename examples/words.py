# SPDX-License-Identifier: Apache-2.0
"""PM4 words without a graph: for users who own their addresses and their dependencies.

Two dispatches with a same-agent barrier between them, printed as the decoder reads them back. Needs no GPU.
"""

from __future__ import annotations

from redline.encoders import DispatchWords, Pm4Stream
from redline.encoders.decode import decode, text


def main() -> None:
    """Build the stream and print it."""
    # The descriptor words are LLVM's for a kernel with 1024 bytes of LDS; addresses are what the GPU sees.
    kernel = DispatchWords(
        entry=0x7F0012345600,
        rsrc1=0xE0AF0000,
        rsrc2=0x00000084,
        rsrc3=0x20,
        properties=0x408,
        group_bytes=1024,
        private_bytes=0,
        kernarg=0x7F00ABCD0040,
    )
    stream = Pm4Stream("gfx1151", elide=True)
    stream.acquire_system()
    stream.dispatch(kernel, global_size=(1024, 1, 1), block=(256, 1, 1))
    stream.barrier()
    stream.dispatch(kernel, global_size=(1000, 1, 1), block=(256, 1, 1))  # a partial workgroup at the end
    stream.release_system()
    for packet in decode(stream.words, "gfx1151"):
        print("\n".join(text(packet, "gfx1151")))


if __name__ == "__main__":
    main()
