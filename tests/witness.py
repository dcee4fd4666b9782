# SPDX-License-Identifier: Apache-2.0
"""The software device as a second witness of certificates: what kernels were seen to touch, against what is certified.

Runs kernels as launches of one graph with an observer, and says where a certificate promises less than was seen. The
certifier reads code and runs nothing; the device runs code and proves nothing: they share LLVM's disassembler alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import redline as rl
from radiowave import KernelCertificate
from radiowave.elf import Elf
from radiowave.object_memory import ObjectMemory
from redline import hsa
from redline.observations import Key, Observations, Seen

SLOT = 64  # bytes that a kernarg segment is a multiple of


@dataclass(frozen=True)
class Pointers:
    """An argument's memory that holds addresses of the argument at a position, over and over."""

    to: int
    nbytes: int


@dataclass(frozen=True)
class Run:
    """One launch: arrays and `Pointers` are buffers, numpy scalars values; `starts` are where pointers point, in bytes.

    An `Address` of another argument is a value of 8 bytes.
    """

    kernel: rl.Kernel
    arguments: Sequence[Any]
    global_size: tuple[int, int, int]
    block: tuple[int, int, int]
    starts: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Address:
    """The address of the buffer of the argument at a position, as a value."""

    of: int


@dataclass(frozen=True)
class Witnessed:
    """What one launch touched, and where its memory lay: kernarg offset -> start and stop; its kernel arguments."""

    seen: Seen
    buffers: dict[int, tuple[int, int]]
    kernarg: tuple[int, int]
    memory: ObjectMemory


def witness(target: str, runs: Sequence[Run]) -> list[Witnessed]:
    """Run all of them in order on one software device."""
    graph = rl.Graph()
    made = [_record(graph, number, run) for number, run in enumerate(runs)]
    plan = graph.compile(schedule="record")
    seen = Observations()
    runtime = hsa.Runtime.sim(target, seen)
    with rl.Device(runtime, runtime.agents()[0], f"sim:{target}") as device:
        memory = {b.name: device.buffer(b.nbytes) for b in plan.buffers}
        where = {b.name: memory[b.name].address for b in plan.buffers}
        for run, buffers in zip(runs, made, strict=True):
            for at, argument in enumerate(run.arguments):
                if at in buffers:
                    memory[buffers[at].name].write(_content(argument, buffers, where))
        with device.instantiate(plan, memory) as replay:
            slots = {
                name: where[buffers[argument.of].name]
                for number, (run, buffers) in enumerate(zip(runs, made, strict=True))
                for at, argument in enumerate(run.arguments)
                if isinstance(argument, Address) and (name := f"p{number}_{at}")
            }
            replay.patch(**slots)
            replay.run(timeout=60.0)
            start = replay.placed.kernarg.ctypes.data
        for item in memory.values():
            item.close()
    seen.settle()
    return [
        Witnessed(
            seen.dispatches[number],
            {
                run.kernel.explicit_arguments[at].offset: (where[b.name], where[b.name] + b.nbytes)
                for at, b in made[number].items()
            },
            _kernarg(plan, number, start),
            _memory(run.kernel),
        )
        for number, run in enumerate(runs)
    ]


def _record(graph: rl.Graph, number: int, run: Run) -> dict[int, rl.Buffer]:
    """Launch it; the buffers by position of their argument."""
    buffers: dict[int, rl.Buffer] = {}
    args: list[Any] = []
    starts = dict(run.starts)
    for at, argument in enumerate(run.arguments):
        if isinstance(argument, np.ndarray | Pointers):
            buffers[at] = graph.buffer(f"b{number}_{at}", max(argument.nbytes, 1), role="inout")
            args.append(rl.update(buffers[at], base=buffers[at][starts.get(at, 0) :]))
        else:
            args.append(rl.slot(f"p{number}_{at}", "u8") if isinstance(argument, Address) else argument)
    graph.launch(run.kernel, global_size=run.global_size, block=run.block, args=args)
    return buffers


def _content(argument: Any, buffers: dict[int, rl.Buffer], where: dict[str, int]) -> NDArray[Any]:
    if isinstance(argument, Pointers):
        return np.full(argument.nbytes // 8, where[buffers[argument.to].name], np.uint64)
    content: NDArray[Any] = argument
    return content


def _kernarg(plan: rl.Plan, number: int, start: int) -> tuple[int, int]:
    begin = start + int(plan.program.slot_offsets[plan.program.order.index(number)])
    return begin, begin + max(-(-len(plan.launches[number].kernarg) // SLOT), 1) * SLOT


def _memory(kernel: rl.Kernel) -> ObjectMemory:
    assert kernel.module is not None
    return ObjectMemory(Elf(kernel.module.data))


# Comparing


def violations(certificate: KernelCertificate, witnessed: Witnessed) -> list[str]:
    """Where more was seen than the certificate says; empty when it holds."""
    found = []
    sites = {site.address: site for site in certificate.sites}
    for key, places in witnessed.seen.places.items():
        where = f"{certificate.name}: {key.text!r} at {key.address:#x}"
        site = sites.get(key.address)
        complete = all(site.path != "none" for site in certificate.sites)
        if site is None:
            found += [f"{where} is no site"] if complete else []
        elif site.path != ("scalar" if key.scalar else "vector") or not (site.writes if key.writes else site.reads):
            found.append(f"{where}: certified as {site}")
        for low in places.starts:
            problem = _problem(certificate, site, key, witnessed, int(low))
            if problem:
                found.append(f"{where}: {problem}")
                break
    return found


def _problem(c: KernelCertificate, site: Any, key: Key, witnessed: Witnessed, address: int) -> str:
    """What is wrong with one access, or ""."""
    image, end = witnessed.seen.image
    if witnessed.kernarg[0] <= address < witnessed.kernarg[1]:
        return _of_kernarg(c, site, key)
    arguments = [offset for offset, (low, high) in witnessed.buffers.items() if low <= address < high]
    if arguments:
        return _of_argument(c, site, key, arguments[0])
    if image <= address < end and witnessed.memory.is_immutable(address - image):
        return "a write of a constant" if key.writes else ""
    if not c.undeclared:
        return "memory that no argument carries, and it is not certified as undeclared"
    if image <= address < end and witnessed.memory.variable(address - image) not in c.variables:
        return f"a variable that is not among {c.variables}"
    return "a scalar load of it" if key.scalar and c.verdict != "scalar_or_unknown" else ""


def _of_kernarg(c: KernelCertificate, site: Any, key: Key) -> str:
    if site is not None and site.reach not in ("kernarg", "kernarg_indexed", "unknown") and not site.beside_kernarg:
        return f"kernel arguments, certified as {site.reach}"
    if not key.scalar and not c.kernarg_vector_loads:
        return "a vector load of kernel arguments"
    return "a write of kernel arguments" if key.writes else ""


def _of_argument(c: KernelCertificate, site: Any, key: Key, argument: int) -> str:
    if site is not None and site.reach == "argument":
        if argument not in site.arguments:
            return f"argument {argument}, certified as {site.arguments}"
        if argument in c.l2_args and not key.writes and not (key.atomic or site.at_l2):
            return f"argument {argument} read through a cache, certified as read at L2"
    elif site is not None and not c.undeclared:
        return f"argument {argument}, certified as {site.reach}"
    if key.scalar and c.verdict == "vmem_only":
        return f"a scalar load of argument {argument} of a vmem_only kernel"
    if key.scalar and c.verdict == "scalar_args" and argument not in c.scalar_args:
        return f"a scalar load of argument {argument}, certified {sorted(c.scalar_args)}"
    return ""
