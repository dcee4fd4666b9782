# SPDX-License-Identifier: Apache-2.0
"""The demo: two decode layers, eight tokens, from machine code to bits, on every demo target.

Records the launches of `kernels/decode.py`, replays them once per token with patched arguments on a device, and
compares every buffer that the host can see with the numpy oracles after each token. The model and its oracles are in
`redline/kernels`; printing is `cli.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from . import kernels
from .device import Device, DeviceBuffer
from .errors import RedlineError
from .graph import Graph
from .kernarg import Slot, slot
from .kernel import Module, load
from .kernels import decode
from .plan import Plan
from .ranges import Access, Buffer, View, read, update, write

_ACCESS: Final = {"read": read, "write": write, "read_write": update}

#: What is being done, how much of it is done, of how much.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Counts:
    """What a plan costs: fences between launches, and dwords of the indirect buffer."""

    drains: int
    acquires: int
    dwords: int


@dataclass(frozen=True, slots=True)
class Result:
    """One target's run. `exact`: every buffer of every token had the oracle's bits; `mismatch` says what did not."""

    target: str
    wave: int
    launches: int
    kernels: int
    minimal: Counts
    full: Counts
    tokens: tuple[int, ...]
    exact: bool
    mismatch: str
    approximate: tuple[str, ...]  # kernels
    approximate_instructions: tuple[str, ...]  # what these and other kernels ran of them, on a software device

    def as_json(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return asdict(self)


def modules(target: str, wave: int, progress: kernels.Progress | None = None) -> dict[str, Module]:
    """The example kernels that the demo uses, as loaded code objects, by kernel name."""
    names = sorted({launch.kernel for launch in decode.LAUNCHES})
    objects = kernels.build_all([target], waves=[wave], names=names, progress=progress)
    return {name: load(objects[name, target, wave]) for name in names}


def record(loaded: Mapping[str, Module]) -> Graph:
    """Record one token of the decoder."""
    graph = Graph()
    buffers = {b.name: graph.buffer(b.name, b.nbytes, role=b.role) for b in decode.BUFFERS.values()}
    for launch in decode.LAUNCHES:
        spec = kernels.SPECS[launch.kernel]
        pairs = zip(spec.arguments, launch.arguments, strict=True)
        graph.launch(
            loaded[launch.kernel][launch.kernel],
            global_size=launch.global_size,
            block=launch.block,
            args=[_argument(argument, given, buffers) for argument, given in pairs],
            label=launch.label,
        )
    return graph


def _argument(argument: kernels.Argument, given: object, buffers: Mapping[str, Buffer]) -> Access | Slot | object:
    if isinstance(given, decode.Range):
        view: View = buffers[given.buffer][given.start : given.stop]
        return _ACCESS[argument.access or "read"](view)
    if isinstance(given, decode.Slot):
        return slot(given.name, given.type)
    return given


def run(device: Device, wave: int = 32, tokens: int = decode.TOKENS, progress: Progress | None = None) -> Result:
    """Run the demo on one device. A device fault is a mismatch with its message, not an exception."""
    tell = progress or (lambda _what, _done, _total: None)
    loaded = modules(device.target, wave, partial(tell, "kernels"))
    graph = record(loaded)
    plan, full = graph.compile(), graph.compile(fences="full")
    chosen: list[int] = []
    mismatch = ""
    try:
        mismatch = _decode(device, plan, tokens, chosen, tell)
    except RedlineError as error:
        mismatch = str(error)
    return Result(
        target=device.target,
        wave=wave,
        launches=len(plan.launches),
        kernels=len(loaded),
        minimal=_counts(plan),
        full=_counts(full),
        tokens=tuple(chosen),
        exact=not mismatch,
        mismatch=mismatch,
        approximate=tuple(name for name in sorted(loaded) if not kernels.SPECS[name].exact),
        approximate_instructions=device.approximate,
    )


def _counts(plan: Plan) -> Counts:
    stats = plan.stats()
    return Counts(stats["drains"], stats["acquires"], stats["dwords"])


def _decode(device: Device, plan: Plan, tokens: int, chosen: list[int], tell: Progress) -> str:
    """Replay token after token; "" or the first difference from the oracles."""
    state = decode.initial()
    outside = [b for b in plan.buffers if b.role != "internal"]
    memory: dict[Buffer | str, DeviceBuffer] = {b: device.buffer(b.nbytes) for b in outside}
    try:
        for buffer in outside:
            memory[buffer].write(state[buffer.name])
        with device.instantiate(plan, memory) as replay:
            for token in range(tokens):
                values = decode.slot_values(token)
                replay.patch(**values)
                replay.run(timeout=60.0)
                decode.step(state, values)
                chosen.append(int(memory[_named(plan, "token")].read("<i4")[0]))
                different = _difference(outside, memory, state)
                if different:
                    return f"token {token}: {different}"
                tell("tokens", token + 1, tokens)
    finally:
        for item in memory.values():
            item.close()
    return ""


def _named(plan: Plan, name: str) -> Buffer:
    return next(buffer for buffer in plan.buffers if buffer.name == name)


def _difference(outside: list[Buffer], memory: Mapping[Buffer | str, DeviceBuffer], state: decode.State) -> str:
    """The first byte that is not the oracle's, or ""."""
    for buffer in outside:
        seen, wanted = memory[buffer].read(np.uint8, count=buffer.nbytes), state[buffer.name]
        if not np.array_equal(seen, wanted):
            at = int(np.flatnonzero(seen != wanted)[0])
            return f"{buffer.name}[{at}] is 0x{seen[at]:02x}, the oracle says 0x{wanted[at]:02x}"
    return ""
