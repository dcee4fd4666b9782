# SPDX-License-Identifier: Apache-2.0
"""Device: one GPU agent, or the software device that stands in for it, and the memory a user gets from it.

`open("sim:gfx1201")` needs no GPU; `open("hsa:0")` is the first GPU that the HSA runtime shows; `open()` takes
the first GPU or says how to get one. Replays are made here and live in `replay.py`.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import hsa
from .errors import BindingError, HsaError, ReplayBusy
from .flight import Uses
from .hsa.rocm_version import warn_if_old
from .ranges import MAX_BYTES, Buffer, Kind

if TYPE_CHECKING:
    from .plan import Plan
    from .replay import Replay


#: What a plan's outside buffers are bound to, by buffer or by name.
Bindings: TypeAlias = "Mapping[Buffer, DeviceBuffer] | Mapping[str, DeviceBuffer] | Mapping[Buffer | str, DeviceBuffer]"


class DeviceBuffer:
    """Memory on a device, in bytes. Reading and writing are runtime copies and count as host access.

    Made by `Device.buffer`. A context manager that frees the memory; its end raises what `close` does, ReplayBusy
    or HsaError.
    """

    def __init__(self, memory: hsa.Buffer, device: Device) -> None:
        self._memory = memory
        self.device = device
        self.uses = Uses()
        # A dropped buffer is freed: a replay holds its buffers, so none that could run still uses it.
        self._free = weakref.finalize(self, memory.close)
        self._free.atexit = False  # the runtime's own end frees what is left

    @property
    def address(self) -> int:
        """Where the GPU sees its first byte."""
        return self._memory.address

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return self._memory.nbytes

    @property
    def kind(self) -> str:
        """device, host, fine or uncached."""
        return self._memory.kind

    @property
    def closed(self) -> bool:
        """Whether it was freed."""
        return self._memory.closed

    def write(self, data: bytes | bytearray | memoryview | NDArray[Any] | np.generic, offset: int = 0) -> None:
        """Copy bytes or a numpy array, of any shape and in C order, to byte `offset`.

        Raises ReplayBusy while a replay that uses the buffer is in flight, BindingError outside the buffer and for data
        of another type, HsaError when the buffer or its device is closed or the runtime's copy fails.
        """
        if isinstance(data, np.ndarray | np.generic):
            _check_dtype(data.dtype)
            payload = np.ascontiguousarray(data).tobytes()
        elif isinstance(data, bytes | bytearray | memoryview):
            payload = bytes(data)
        else:
            seen, allowed = f"{type(data).__name__} {data!r}", "bytes, or a numpy array or scalar"
            raise _refused("RL0713", "DeviceBuffer.write", seen, allowed, "say the type: np.array(values, dtype)")
        self._check_range(offset, len(payload), 1)
        with self.uses.by_host("write"):
            self._memory.write(payload, offset)

    def read(self, dtype: DTypeLike = np.uint8, offset: int = 0, count: int | None = None) -> NDArray[Any]:
        """Copy `count` items of `dtype` from byte `offset`; all that fit by default. An array of shape (count,).

        Raises ReplayBusy while a replay that uses the buffer is in flight, BindingError outside the buffer and for a
        dtype without plain bytes, HsaError when the buffer or its device is closed or the runtime's copy fails.
        """
        size = _check_dtype(np.dtype(dtype)).itemsize
        items = max(0, self.nbytes - offset) // size if count is None and isinstance(offset, int) else count
        self._check_range(offset, items, size)
        with self.uses.by_host("read"):
            return self._memory.read(dtype, offset, items)

    def close(self) -> None:
        """Free the memory: at once, or when everything that is in flight on the device now has been seen to end.

        Raises ReplayBusy while an open replay uses it, HsaError when the runtime does not take it.
        """
        self.uses.check_idle("close")
        if self.uses.open_replays:
            seen = f"open replays that use it: {self.uses.open_replays}"
            do = "close these replays first"
            raise ReplayBusy("RL1403", where="DeviceBuffer.close", seen=seen, allowed="no open replay", do=do)
        self._memory.close()  # may fail, and be asked again
        self._free.detach()

    def __enter__(self) -> DeviceBuffer:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        with suppress(ReplayBusy) if error is not None else nullcontext():  # the caller's own error goes first
            self.close()

    def __repr__(self) -> str:
        return f"<DeviceBuffer of {self.nbytes} bytes, {self.kind}, on {self.device.name}>"

    def _check_range(self, offset: object, count: object, size: int) -> None:
        whole = isinstance(offset, int) and isinstance(count, int)
        if not whole or offset < 0 or count < 0 or offset + count * size > self.nbytes:  # type: ignore[operator]
            seen = f"{count} items of {size} bytes at byte {offset}" if size != 1 else f"{count} bytes at byte {offset}"
            allowed = f"[0:{self.nbytes}], the buffer"
            raise _refused("RL0701", "DeviceBuffer", seen, allowed, "stay inside the buffer")


def _check_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Refuse Python objects, whose bytes are this process's pointers, and items without a size."""
    if dtype.hasobject or dtype.itemsize == 0:
        raise _refused("RL0715", "DeviceBuffer", f"dtype {dtype}", "a dtype of plain bytes", "name one with a size")
    return dtype


class Device:
    """One GPU agent. A context manager; closing it closes the runtime behind it. Made by `open`.

    The end of its `with` raises what `close` raises, HsaError.
    """

    def __init__(self, runtime: hsa.Runtime, agent: hsa.Agent, name: str) -> None:
        self.runtime = runtime
        self.agent = agent
        self.name = name

    @property
    def target(self) -> str:
        """The GPU's name, such as gfx1201.

        Raises HsaError when the device is closed and the name was never asked for.
        """
        return self.agent.target

    @property
    def approximate(self) -> tuple[str, ...]:
        """Instructions run so far whose results the software device rounds and a GPU only approximates.

        A result that depends on one of them is outside every bit-exact claim: v_rcp, v_rsq, v_sqrt, v_exp, v_log,
        v_sin, v_cos and the float dot products. Division as LLVM builds it from v_rcp is exact all the same. A GPU
        reports none.
        """
        return self.runtime.approximate()

    def buffer(self, nbytes: int, kind: Kind = "device") -> DeviceBuffer:
        """Allocate `nbytes` bytes of memory of a kind: device, host, fine or uncached.

        Raises BindingError for another kind or a size outside 1..2**48, HsaError when the runtime has no such memory
        left or the device is closed.
        """
        if kind not in get_args(Kind):
            allowed = ", ".join(get_args(Kind))
            raise _refused("RL0702", "Device.buffer", f"kind {kind!r}", allowed, "choose one of them")
        if isinstance(nbytes, bool) or not isinstance(nbytes, int) or not 1 <= nbytes <= MAX_BYTES:
            allowed = f"an int, at least 1 and at most {MAX_BYTES}"
            raise _refused("RL0702", "Device.buffer", f"{nbytes!r} bytes", allowed, "give bytes")
        return DeviceBuffer(self.agent.allocate(nbytes, kind), self)

    def instantiate(self, plan: Plan, bindings: Bindings | None = None) -> Replay:
        """Give a plan addresses on this device: load its code, allocate, relocate. Submits nothing.

        `bindings` maps each buffer of role in, out or inout, by object or by name, to a DeviceBuffer.

        Raises BindingError for bindings, a target or a grid that do not fit, KernargPoolExhausted and HsaError when the
        runtime has no room or refuses a call, CodeObjectError when its loader refuses the code; and what `plan.program`
        raises if the plan was not lowered before: HazardError, RecordError, EncodeError, UnsupportedKernel,
        UnsupportedTarget.
        """
        from .replay import Replay

        return Replay(self, plan, bindings or {})

    def close(self) -> None:
        """Release the runtime. Close replays and buffers first.

        Raises HsaError for what the runtime does not give back.
        """
        self.runtime.close()

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Device {self.name} {self.target}>"


def open(name: str | None = None) -> Device:  # shadows the builtin: called as rl.open
    """Open a device: "sim:gfx1201" (software), a GPU by "hsa:0", "hsa:0000:03:00.0" or "hsa:gfx1201", or the first GPU.

    GPUs are numbered as the runtime lists them, which is after ROCR_VISIBLE_DEVICES; a PCI id, an ISA name, a product
    name or a UUID must fit exactly one. "null:gfx1201" is for benchmarks of the host's side alone: it takes packets and
    runs nothing. Warns with `hsa.OldRuntimeWarning` of a ROCm older than 7.14. Raises HsaError when there is no such
    GPU or more than one, or no null engine, UnsupportedTarget for a target outside the list, and radiowave's
    ToolchainError when the software device has no disassembler.
    """
    scheme, _, which = ("hsa:0" if name is None else str(name)).partition(":")
    if scheme in ("sim", "null") and which:
        runtime = hsa.Runtime.sim(which) if scheme == "sim" else hsa.Runtime.null(which)
        return Device(runtime, runtime.agents()[0], f"{scheme}:{which}")
    if scheme == "hsa" and which:
        warn_if_old()
        return _gpu(hsa.Runtime.real(), which, f"hsa:{which}")
    raise HsaError(
        "RL0911",
        where="redline.open",
        seen=repr(name),
        allowed='"sim:<target>" such as "sim:gfx1201", "hsa:<number, PCI id or name>", nothing for the first GPU;'
        ' "null:<target>" for benchmarks',
        do="use one of these forms",
    )


def _gpu(runtime: hsa.Runtime, which: str, name: str) -> Device:
    """The one GPU that is meant; the runtime is closed when there is none or more than one."""
    try:
        agents = runtime.agents()
        found = [agent for number, agent in enumerate(agents) if _is_meant(agent, number, which)]
        if len(found) == 1:
            return Device(runtime, found[0], name)
        listed = "; ".join(f"{at} {a.pci_id} {a.target} {a.name}" for at, a in enumerate(agents)) or "no GPU agent"
    except BaseException:
        runtime.close()
        raise
    runtime.close()
    visible = os.environ.get("ROCR_VISIBLE_DEVICES")
    raise HsaError(
        "RL0903",
        where=f"redline.open({name!r})",
        seen=f"{len(found)} that fit among: {listed}"
        + ("" if visible is None else f" (ROCR_VISIBLE_DEVICES={visible or 'empty, which hides all'})"),
        allowed="exactly one: its number, PCI id, ISA name, product name or UUID",
        do='check rocminfo and ROCR_VISIBLE_DEVICES, or use the software device: redline.open("sim:gfx1201")',
    )


def _is_meant(agent: hsa.Agent, number: int, which: str) -> bool:
    if which.isdecimal():
        return number == int(which)
    return which.lower() in (agent.pci_id, agent.target, agent.name.lower(), agent.uuid.lower())


def _refused(code: str, where: str, seen: str, allowed: str, do: str) -> BindingError:
    return BindingError(code, where=where, seen=seen, allowed=allowed, do=do)
