# SPDX-License-Identifier: Apache-2.0
"""Every exception that Redline raises, on one screen.

::

    RedlineError                    code, where, seen, allowed, do
    ├── RecordError          RL01   the recording contradicts itself or its kernels
    ├── HazardError          RL02   two launches conflict and nothing orders them
    ├── UnsupportedTarget    RL03   a GPU name that is not on the list
    ├── UnsupportedKernel    RL04   a real kernel that needs what Redline does not supply
    ├── EncodeError          RL05   a value does not fit its field, packet or limit
    ├── CodeObjectError      RL06   bytes that are not a usable AMDGPU code object
    ├── BindingError         RL07   a buffer bound to the wrong memory, or not bound
    ├── StalePlan            RL08   what the plan was given addresses of is gone
    ├── HsaError             RL09   the HSA runtime is missing or refused a call
    ├── QueueFailed          RL10   the queue was stopped, by the device or by cancel
    ├── ReplayTimeout        RL11   a wait ended before the device did
    ├── NotRecorded          RL12   asked for something that was never recorded or submitted
    ├── KernargPoolExhausted RL13   no room for kernel arguments
    └── ReplayBusy           RL14   a change was asked for while a replay is in flight

A message has four parts: where, what was seen, what is allowed, what to do. The code is stable; `CODES` has one line
for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .ordering import UnorderedPair

CODES: dict[str, str] = {
    "RL0101": "an access declares no range",
    "RL0102": "not a buffer or a slice of one",
    "RL0103": "a range of another buffer behind one pointer",
    "RL0104": "a slice that is not a plain byte range",
    "RL0105": "a byte range outside its buffer",
    "RL0106": "no such kernel in the module",
    "RL0107": "a slot name that is not an identifier",
    "RL0108": "an unknown slot type",
    "RL0109": "a value that does not fit its argument or slot",
    "RL0110": "a value of a kind that no argument takes",
    "RL0111": "an unknown graph order",
    "RL0112": "a buffer name that is empty or taken",
    "RL0113": "a buffer size out of range",
    "RL0114": "an unknown buffer kind or role",
    "RL0115": "an alias of memory that does not hold it",
    "RL0116": "not a kernel",
    "RL0117": "kernels of two targets in one graph",
    "RL0118": "after= names something that is not a launch of this graph",
    "RL0119": "a buffer of another graph",
    "RL0120": "the wrong number of arguments",
    "RL0121": "a pointer where a value belongs, or a value where a pointer belongs",
    "RL0122": "a slot of another size than its argument",
    "RL0123": "one slot name with two types or defaults",
    "RL0124": "grid= and global_size= both given or both missing",
    "RL0125": "a workgroup larger than the kernel was compiled for",
    "RL0126": "not the workgroup that the kernel requires",
    "RL0128": "a partial workgroup for a kernel compiled for whole ones",
    "RL0130": "sizes that are not one to three positive ints",
    "RL0131": "a graph without launches",
    "RL0132": "an unknown option value",
    "RL0133": "an alias with a role or a kind of its own",
    "RL0134": "a wave size that is neither 32 nor 64",
    "RL0135": "dynamic LDS that is not a number of bytes",
    "RL0136": "a certificate in words or offsets that certificates do not have",
    "RL0137": "a launch that writes a buffer of role in",
    "RL0138": "no such launch in the plan",
    "RL0139": "a plan split where one side would be empty",
    "RL0140": "entries that are not in the stream",
    "RL0141": "workgroup counts in memory that cannot be read there, or for a kernel that needs to know them",
    "RL0142": "a conditional or loop node",
    "RL0143": "not a plan, fences or program",
    "RL0144": "workgroup counts in memory for a packet that holds its grid",
    "RL0145": "a synthetic kernel of arguments that no kernel has",
    "RL0146": "conflicting launches on queues that do not wait for one another",
    "RL0201": "a conflict that nothing orders",
    "RL0202": "fences at positions that are repeated, unordered or no positions",
    "RL0203": "an order that puts a launch before one that it is after=",
    "RL0204": "what is no fence, or acquires a class that there is not, or twice",
    "RL0205": "fences that are not of this plan",
    "RL0301": "the target is not on the list",
    "RL0401": "the kernel asks for a user SGPR value that Redline does not supply",
    "RL0402": "the kernel needs scratch memory",
    "RL0403": "the kernel uses a dynamic stack",
    "RL0404": "the kernel wants preloaded kernel arguments",
    "RL0405": "RSRC2.USER_SGPR contradicts what the kernel asks for",
    "RL0406": "an argument that a raw dispatch cannot supply",
    "RL0407": "arguments aligned to more than a kernarg slot",
    "RL0408": "an instruction whose memory accesses no fence can order",
    "RL0409": "code that may hold such an instruction, and no disassembler to tell",
    "RL0410": "a kernel that reaches memory which the launch does not declare",
    "RL0501": "a value does not fit its field",
    "RL0502": "a field or dword that the packet does not have",
    "RL0503": "grid sizes outside the limits",
    "RL0504": "a workgroup larger than the limit",
    "RL0505": "an address outside the limits or unaligned",
    "RL0506": "LDS size outside the limits",
    "RL0507": "an acquire of no cache",
    "RL0508": "a reserved bit is set",
    "RL0509": "a packet of the wrong size or with too many parts",
    "RL0510": "a table of hardware facts contradicts itself",
    "RL0511": "a packet behind the end of a stream",
    "RL0520": "too many dwords for one indirect buffer",
    "RL0521": "a fence outside the plan's order",
    "RL0522": "fences of one's own for a program of several lanes",
    "RL0601": "not a whole, linked AMDGPU code object",
    "RL0602": "a code object with another hash than asked for",
    "RL0603": "no code object for the target, or more than one",
    "RL0604": "a code object that needs XNACK",
    "RL0605": "a manifest that cannot be used for the code object",
    "RL0606": "a manifest for other bytes than the code object's",
    "RL0610": "the HSA runtime's loader refused the code object",
    "RL0701": "host access outside a buffer",
    "RL0702": "an unknown memory kind or size",
    "RL0703": "a kernel without code on a device",
    "RL0704": "a plan for another target than the device",
    "RL0705": "a grid larger than the device allows",
    "RL0706": "a binding for a buffer that takes none",
    "RL0707": "a buffer that is not bound",
    "RL0708": "a bound buffer that is too small",
    "RL0709": "a bound buffer that is cached more than declared",
    "RL0710": "distinct buffers bound to overlapping memory",
    "RL0711": "a binding that is no open memory of the device",
    "RL0713": "data of a type that host writes do not take",
    "RL0714": "not a plan, or bindings that are no mapping",
    "RL0715": "a dtype that memory cannot hold",
    "RL0716": "more packets than a queue's ring holds",
    "RL0717": "more queues than the agent has",
    "RL0801": "the replay's own memory, code or signals were closed beneath it",
    "RL0802": "memory bound to the replay was closed beneath it",
    "RL0901": "no HSA runtime library was found",
    "RL0902": "a call into the HSA runtime returned an error status",
    "RL0903": "the HSA runtime found no device",
    "RL0904": "the HSA runtime lacks a call that Redline needs",
    "RL0905": "a view of memory that the host must not touch in place",
    "RL0906": "a buffer's size, kind or range is wrong",
    "RL0907": "the agent has no memory pool of the kind",
    "RL0908": "the runtime is closed",
    "RL0909": "the loaded code object has no such symbol",
    "RL0910": "a queue's size or a batch of packets is wrong",
    "RL0911": "not a device name",
    "RL0912": "a timeout that is not a number of seconds",
    "RL0913": "a runtime that another process opened",
    "RL0914": "no address space for a software device",
    "RL0915": "the null engine without compiled code",
    "RL1001": "the device reported an error and stopped the queue",
    "RL1002": "the replay was cancelled, or closed in flight",
    "RL1101": "a wait for a signal ended before the device did",
    "RL1102": "a queue's ring stayed full",
    "RL1201": "no slot of that name",
    "RL1202": "slots without a value at submit",
    "RL1203": "a wait without a submit",
    "RL1204": "use of a closed replay",
    "RL1205": "a batch or a release that the plan does not have",
    "RL1206": "times of a program that notes none",
    "RL1301": "kernarg memory that crosses a 4 GiB boundary",
    "RL1401": "a change while the replay is in flight",
    "RL1402": "host access while a replay is in flight",
    "RL1403": "closing memory that an open replay uses",
    "RL1404": "a submit whose memory another replay in flight uses",
    "RL1405": "a submit during host access to its memory",
    "RL1406": "behind a submit without release",
    "RL1407": "an end of a replay from inside its own submit or wait",
}


class RedlineError(Exception):
    """Base of the tree. `code` is one of `CODES` and starts with the class's own `prefix`."""

    prefix = "RL"

    def __init__(self, code: str, *, where: str, seen: str, allowed: str, do: str) -> None:
        if code not in CODES or not code.startswith(self.prefix):
            raise KeyError(f"{code} is not a code of {type(self).__name__}")
        self.code, self.where, self.seen, self.allowed, self.do = code, where, seen, allowed, do
        super().__init__(f"{code} {where}: {seen}; allowed: {allowed}; do: {do}")

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.code, self.where, self.seen, self.allowed, self.do)


def _rebuild(kind: type[RedlineError], code: str, where: str, seen: str, allowed: str, do: str) -> RedlineError:
    return kind(code, where=where, seen=seen, allowed=allowed, do=do)


class RecordError(RedlineError):
    """The recording contradicts itself or the kernels it names."""

    prefix = "RL01"


class HazardError(RedlineError):
    """Launches conflict in a way that no fence mends; `pairs` holds the unordered ones of an explicit graph."""

    prefix = "RL02"
    pairs: tuple[UnorderedPair, ...] = ()


class UnsupportedTarget(RedlineError):
    """A GPU name outside the explicit list; prefixes are never guessed from."""

    prefix = "RL03"


class UnsupportedKernel(RedlineError):
    """A kernel that needs what Redline does not supply (scratch, a dispatch pointer), or that no fence can order."""

    prefix = "RL04"


class EncodeError(RedlineError):
    """A value does not fit its field, packet or limit."""

    prefix = "RL05"


class CodeObjectError(RedlineError):
    """Bytes that are not a usable AMDGPU code object."""

    prefix = "RL06"


class BindingError(RedlineError):
    """A buffer is bound to the wrong memory, or not bound at all."""

    prefix = "RL07"


class StalePlan(RedlineError):
    """What the plan was given addresses of is gone: memory, code or signals were closed beneath a replay."""

    prefix = "RL08"


class HsaError(RedlineError):
    """The HSA runtime is missing, or one of its calls returned an error status."""

    prefix = "RL09"


class QueueFailed(RedlineError):
    """The queue was stopped, by the device with an error or by `cancel`; pending work will never finish."""

    prefix = "RL10"


class ReplayTimeout(RedlineError):
    """A wait ended before the device did. The work is still in flight."""

    prefix = "RL11"


class NotRecorded(RedlineError):
    """Asked for something that was never recorded or submitted."""

    prefix = "RL12"


class KernargPoolExhausted(RedlineError):
    """The kernarg pool has no room."""

    prefix = "RL13"


class ReplayBusy(RedlineError):
    """A change was asked for while a replay is in flight."""

    prefix = "RL14"
