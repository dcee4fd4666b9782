# SPDX-License-Identifier: Apache-2.0
"""What the software device can find wrong, drawn on one screen.

::

    DeviceFault                    status: the HSA status that its queue fails with
    ├── MemoryFault                an access outside every allocation that the device may touch
    ├── InstructionFault           a program counter and what stands there
    │   ├── UnsupportedInstruction a real instruction (or operand, or mode) that is not covered
    │   └── UndecodableInstruction bytes that are no instruction
    ├── BarrierFault               waves wait at a barrier that nobody can complete
    ├── LaunchFault                registers that start no wave (unset, contradictory, scratch)
    ├── PacketFault                an AQL packet or PM4 word that the packet processor refuses
    └── WaitExpired                a wait inside a stream that nothing satisfied in time
    Cancelled                      the queue was destroyed while work was running; no fault
    Refusal                        an HSA call with wrong arguments: the status that it returns, and why

Each message says where, what was seen, what is allowed. Nothing here raises towards a user: the runtime table
remembers the fault (`fault_text`) and reports `status` through the queue's error callback, as hardware does.
"""

from __future__ import annotations

from typing import ClassVar


class DeviceFault(Exception):
    """The device stops the queue with `status`; one line in `str(fault)` says why."""

    # hsa.h, hsa_status_t; hsa_ext_amd.h for the three below 0x1000.
    status: ClassVar[int] = 0x1000  # HSA_STATUS_ERROR


class MemoryFault(DeviceFault):
    """An access that is not wholly inside one allocation that the device may touch."""

    status = 41  # HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION

    def __init__(self, address: int, nbytes: int, access: str, near: str = "no allocation is near") -> None:
        self.address, self.nbytes, self.access, self.near = address, nbytes, access, near
        super().__init__(f"{access} of {nbytes} bytes at {address:#x}: outside every allocation of the device ({near})")


class InstructionFault(DeviceFault):
    """A program counter whose instruction the device does not execute."""

    status = 42  # HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION


class UnsupportedInstruction(InstructionFault):
    """A real instruction, operand, modifier or mode that the table of semantics does not cover."""

    def __init__(self, pc: int, text: str, reason: str = "not in the table of semantics") -> None:
        self.pc, self.text, self.reason = pc, text, reason
        super().__init__(f"instruction at {pc:#x}: {text!r}: {reason}")


class UndecodableInstruction(InstructionFault):
    """Bytes that LLVM's disassembler takes for no instruction of the target."""

    def __init__(self, pc: int, code: bytes) -> None:
        self.pc, self.code = pc, code
        super().__init__(f"instruction at {pc:#x}: bytes {code.hex(' ')} are no instruction of this target")


class BarrierFault(DeviceFault):
    """Waves wait at a barrier, and every other wave of their workgroup has ended or waits too."""

    def __init__(self, pc: int, waves: int) -> None:
        self.pc, self.waves = pc, waves
        super().__init__(f"barrier before {pc:#x}: {waves} waves wait and no wave can arrive any more")


class LaunchFault(DeviceFault):
    """Dispatch registers that cannot start a wave: never written, contradictory, or asking for scratch."""

    status = 0x1009  # HSA_STATUS_ERROR_INVALID_PACKET_FORMAT

    def __init__(self, where: str, seen: str, allowed: str) -> None:
        self.where, self.seen, self.allowed = where, seen, allowed
        super().__init__(f"{where}: {seen}; allowed: {allowed}")


class PacketFault(DeviceFault):
    """An AQL packet or a PM4 word that the packet processor refuses."""

    status = 0x1009  # HSA_STATUS_ERROR_INVALID_PACKET_FORMAT

    def __init__(self, where: str, seen: str, allowed: str) -> None:
        self.where, self.seen, self.allowed = where, seen, allowed
        super().__init__(f"{where}: {seen}; allowed: {allowed}")


class WaitExpired(DeviceFault):
    """A WAIT_REG_MEM or a barrier packet whose condition never came true within the device's patience."""

    def __init__(self, where: str, wanted: str, seen: str, after_seconds: float) -> None:
        self.where, self.wanted, self.seen, self.after_seconds = where, wanted, seen, after_seconds
        super().__init__(f"{where}: waited {after_seconds:g} s for {wanted}, last saw {seen}")


class Refusal(Exception):
    """A call into the runtime table that returns `status`; the text is kept for whoever asks why."""

    def __init__(self, status: int, text: str) -> None:
        self.status, self.text = status, text
        super().__init__(text)


class Cancelled(Exception):
    """The queue is being destroyed: whoever is running its work stops here. Not a fault of the work."""
