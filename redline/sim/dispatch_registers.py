# SPDX-License-Identifier: Apache-2.0
"""The SH registers that a hardware queue keeps, and a dispatch made of them.

Registers stay between indirect buffers, as on hardware; a register that nobody wrote is unset, not zero, and a
dispatch that needs one faults. Which registers a stream may write is `families.py`, who writes them `packets.py`,
what they mean to a wave the back end.
"""

from __future__ import annotations

from redline.sim.dispatch import Dispatch
from redline.sim.errors import LaunchFault
from redline.sim.families import Family

UNSET_WORD = 0xDEADBEEF  # what a user-data register that nobody wrote holds
MAX_WORKGROUP = 1024
MAX_LDS_UNITS = 128  # 64 KiB in units of 512 bytes
MAX_USER_SGPRS = 16

START_X, NUM_THREAD_X, PGM_LO, PGM_HI = 0x204, 0x207, 0x20C, 0x20D
RSRC1, RSRC2, RSRC3, USER_DATA_0 = 0x212, 0x213, 0x228, 0x240
FORCE_START_AT_000 = 1 << 2


class DispatchRegisters:
    """One queue's registers and how many dispatches it ran."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._values: dict[int, int] = {}
        self.dispatches = 0

    def write(self, offset: int, value: int) -> None:
        self._values[offset] = value

    def forget(self) -> None:
        """Unset all of them: what another user of the hardware queue may do between two buffers."""
        self._values.clear()

    def launch(self, where: str, dims: tuple[int, int, int], initiator: int, counts_va: int = 0) -> Dispatch:
        """The dispatch that these registers start, or `LaunchFault` naming `where`."""
        rsrc2 = self._get(RSRC2, where)
        _check_rsrc2(rsrc2, where)
        self._check_start(initiator, where)
        threads = [self._get(NUM_THREAD_X + i, where) for i in range(3)]
        full = (threads[0] & 0xFFFF, threads[1] & 0xFFFF, threads[2] & 0xFFFF)
        if 0 in full or full[0] * full[1] * full[2] > MAX_WORKGROUP:
            raise LaunchFault(f"{where}, NUM_THREAD", f"{full}", f"1 to {MAX_WORKGROUP} work-items a workgroup")
        dispatch = Dispatch(
            entry=(self._get(PGM_LO, where) | self._get(PGM_HI, where) << 32) << 8,
            rsrc1=self._get(RSRC1, where),
            rsrc2=rsrc2,
            rsrc3=self._get(RSRC3, where),
            initiator=initiator,
            user_data=self._user_data(rsrc2 >> 1 & 0x1F, where),
            dims=dims,
            num_thread=full,
            partial=(threads[0] >> 16, threads[1] >> 16, threads[2] >> 16),
            ordinal=self.dispatches,
            counts_va=counts_va,
        )
        self.count()
        return dispatch

    def count(self) -> int:
        """One more dispatch of this queue; the number of those before it."""
        self.dispatches += 1
        return self.dispatches - 1

    def _get(self, offset: int, where: str) -> int:
        if offset not in self._values:
            name = self._family.settable[offset].name
            raise LaunchFault(f"{where}, {name}", "never written on this queue", "a value before the dispatch")
        return self._values[offset]

    def _check_start(self, initiator: int, where: str) -> None:
        """Without FORCE_START_AT_000 the START registers count; a queue is made with zeros there."""
        start = [self._values.get(START_X + i, 0) for i in range(3)]
        if not initiator & FORCE_START_AT_000 and any(start):
            raise LaunchFault(f"{where}, START", f"{start}", "0, or FORCE_START_AT_000")

    def _user_data(self, count: int, where: str) -> tuple[int, ...]:
        for i in range(count):
            self._get(USER_DATA_0 + i, where)
        return tuple(self._values.get(USER_DATA_0 + i, UNSET_WORD) for i in range(16))


def _check_rsrc2(rsrc2: int, where: str) -> None:
    user_sgprs, lds_units = rsrc2 >> 1 & 0x1F, rsrc2 >> 15 & 0x1FF
    if rsrc2 & 1:
        raise LaunchFault(f"{where}, RSRC2.SCRATCH_EN", "1", "0: this device has no scratch memory")
    if user_sgprs > MAX_USER_SGPRS:
        raise LaunchFault(f"{where}, RSRC2.USER_SGPR", f"{user_sgprs}", f"at most {MAX_USER_SGPRS}")
    if lds_units > MAX_LDS_UNITS:
        raise LaunchFault(f"{where}, RSRC2.LDS_SIZE", f"{lds_units}", f"at most {MAX_LDS_UNITS}")
