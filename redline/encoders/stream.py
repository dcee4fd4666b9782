# SPDX-License-Identifier: Apache-2.0
"""The low-level PM4 builder: for users who own their addresses and their dependencies.

Collects operations and encodes them on demand. Derives no fence, relocates nothing and submits nothing;
drains by EVENT_WRITE CS_PARTIAL_FLUSH on every family (a gfx10 with old microcode may return early from it:
see `FamilyTable.partial_flush_is_trusted`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from redline.encoders.dispatch import DispatchWords, dispatch_operation, operation
from redline.encoders.emit import ACQUIRE, DRAIN, OPERATION, RELOC, emit_program, max_dwords, max_relocs
from redline.encoders.families import family_for
from redline.encoders.table import FamilyTable
from redline.errors import EncodeError

__all__ = ["DispatchWords", "Pm4Stream"]


class Pm4Stream:
    """A PM4 stream for one target, with real addresses.

    >>> s = Pm4Stream("gfx1201")
    >>> s.wait_idle()
    >>> [f"{word:08X}" for word in s.words]
    ['C0004600', '00000407']
    """

    def __init__(self, target: str | FamilyTable, *, elide: bool = False) -> None:
        self.table = family_for(target) if isinstance(target, str) else target
        self.elide = elide
        self._operations: list[np.void] = []

    def acquire_system(self) -> None:
        """Make what the host and other agents wrote visible; waits for nothing."""
        self._acquire(self.table.entry_gcr)

    def dispatch(self, words: DispatchWords, *, global_size: int | Sequence[int], block: int | Sequence[int]) -> None:
        """Launch `global_size` work-items in workgroups of `block`; waits for nothing."""
        for name, address in (("entry", words.entry), ("kernarg", words.kernarg)):
            if address == 0 and (name == "entry" or words.takes_kernarg):
                raise EncodeError(
                    "RL0505",
                    where=f"{words.name}.{name}",
                    seen="0x0",
                    allowed="a real address",
                    do="give one",
                )
        self._operations.append(dispatch_operation(self.table, words, global_size, block))

    def wait_idle(self) -> None:
        """Wait until every dispatch before has ended; refreshes no cache."""
        self._operations.append(operation(DRAIN))

    def barrier(self, *, vmem_only: bool = False) -> None:
        """Drain, then a same-agent acquire: what dispatches before wrote, dispatches behind read.

        `vmem_only` leaves the scalar cache alone: only for readers whose loads of that data are all vector
        loads.
        """
        self.wait_idle()
        self._acquire(self.table.acquire_gcr(k=not vmem_only, v=True))

    def release_system(self) -> None:
        """Drain, then write back, so that the host and other agents can read."""
        self.wait_idle()
        self._acquire(self.table.release_gcr)

    @property
    def words(self) -> NDArray[np.uint32]:
        """The stream as encoded words: a copy, the caller's own."""
        ops = np.array(self._operations, OPERATION)
        words = np.zeros(max_dwords(ops), np.uint32)
        relocs = np.zeros(max_relocs(ops), RELOC)
        count, _ = emit_program(ops, words, relocs, self.table.family(), self.elide)
        return words[: int(count)].copy()

    def _acquire(self, gcr: int) -> None:
        self._operations.append(operation(ACQUIRE, gcr=gcr))
