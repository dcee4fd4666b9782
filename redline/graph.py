# SPDX-License-Identifier: Apache-2.0
"""Graph: append-only recording of launches, buffers, accesses and explicit edges.

Recording checks each launch against its kernel's metadata at once and copies every argument, so a mistake is reported
at the line that made it. It orders nothing and needs no device; `plan.py` does the ordering.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .encoders import family_for
from .errors import RecordError
from .kernarg import Slot, hidden_bytes, scalar_bytes
from .kernel import POINTER_KINDS, Argument, Kernel
from .ranges import KINDS, MAX_BYTES, ROLES, Access, Buffer, Kind, Role, View

if TYPE_CHECKING:
    from .plan import Plan

Order = Literal["record", "explicit"]
Size = int | tuple[int, ...] | list[int]
Triple = tuple[int, int, int]

_HERE = os.path.dirname(os.path.abspath(__file__))
_owners = itertools.count(1)


@dataclass(frozen=True, slots=True)
class PointerArg:
    """8 bytes at `offset` of the kernarg segment hold the address of a buffer plus `addend`."""

    offset: int
    buffer: int
    addend: int


@dataclass(frozen=True, slots=True)
class SlotArg:
    """The bytes at `offset` of the kernarg segment are the value of a slot."""

    offset: int
    slot: str


@dataclass(frozen=True, slots=True)
class Touch:
    """One byte range that a launch reads or writes. `argument`: kernarg offset of its pointer, or None without one."""

    buffer: int
    start: int
    stop: int
    writes: bool
    argument: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """One recorded launch. `index` is its name everywhere, whatever order the plan chooses."""

    index: int
    label: str
    kernel: Kernel
    global_size: Triple
    block: Triple
    dynamic_lds: int
    kernarg: bytes
    pointers: tuple[PointerArg, ...]
    slots: tuple[SlotArg, ...]
    touches: tuple[Touch, ...]
    after: tuple[int, ...]
    site: str

    def __str__(self) -> str:
        return f"#{self.index} {self.label}"


class Graph:
    """Records launches of kernels of one target.

    `order="record"` (default): conflicting accesses keep the recorded order. `order="explicit"`: only `after=` orders,
    and conflicting launches that nothing orders are an error at compile.
    """

    def __init__(self, order: Order = "record") -> None:
        if order not in ("record", "explicit"):
            raise _bad("RL0111", _site(), "Graph(order=)", order, "'record' or 'explicit'", "choose one of them")
        self.order: Order = order
        self.buffers: list[Buffer] = []
        self.launches: list[Launch] = []
        self.slots: dict[str, Slot] = {}
        self._owner = next(_owners)
        self._names: set[str] = set()
        self._encodable: dict[tuple[int, Triple, Triple, int], Kernel] = {}

    def buffer(
        self,
        name: str,
        nbytes: int,
        *,
        kind: Kind = "device",
        role: Role = "internal",
        alias_of: Buffer | View | None = None,
    ) -> Buffer:
        """Name `nbytes` bytes of memory.

        kind: device (coarse-grained device), host (coarse-grained host), fine (fine-grained host), uncached.
        role: internal (the replay allocates it), in, out, inout (bound at instantiate; the host may touch it).
        alias_of: this is memory of another buffer: the same bytes (internal), or a second mapping bound on its own.
        """
        site = _site()
        self._check_buffer(site, name, nbytes, kind, role, alias_of)
        index, root, root_offset = len(self.buffers), len(self.buffers), 0
        if alias_of is not None:
            view = alias_of if isinstance(alias_of, View) else alias_of[:]
            root, root_offset = view.buffer.root, view.buffer.root_offset + view.start
        made = Buffer(name, nbytes, kind, role, index, self._owner, root, root_offset)
        self.buffers.append(made)
        self._names.add(name)
        return made

    def launch(
        self,
        kernel: Kernel,
        *,
        grid: Size | None = None,
        global_size: Size | None = None,
        block: Size,
        args: Sequence[Any] = (),
        after: Sequence[Launch] = (),
        accesses: Sequence[Access] = (),
        dynamic_lds: int = 0,
        label: str | None = None,
    ) -> Launch:
        """Record one launch and return it, for use in `after=`.

        `grid` counts workgroups, `global_size` work-items; exactly one is given. `block` is in work-items. `args`
        follow the kernel's explicit arguments. `accesses` declares memory that no pointer argument carries. `after=`
        orders two launches and makes nothing visible.
        """
        site = _site()
        name = label or str(getattr(kernel, "name", "?"))
        where = f"{site} launch #{len(self.launches)} {name!r}"
        self._check_kernel(kernel, where)
        blocks, sizes = _geometry(kernel, grid, global_size, block, where)
        self._check_encoding(kernel, sizes, blocks, dynamic_lds, where)
        packed = _Packer(self, kernel, where)
        packed.hidden(sizes, blocks, dynamic_lds)
        packed.explicit(args)
        for access in accesses:
            packed.declare(access, None)
        made = Launch(
            index=len(self.launches),
            label=name,
            kernel=kernel,
            global_size=sizes,
            block=blocks,
            dynamic_lds=dynamic_lds,
            kernarg=bytes(packed.image),
            pointers=tuple(packed.pointers),
            slots=tuple(packed.slot_args),
            touches=tuple(packed.touches),
            after=self._after(after, where),
            site=site,
        )
        self.slots.update(packed.new_slots)  # last: a launch that is refused leaves nothing behind
        self.launches.append(made)
        return made

    def compile(
        self,
        *,
        boundary: str = "host",
        schedule: str = "levels",
        fences: str = "minimal",
        gfx10_wait: str = "fence",
        elide: bool = True,
    ) -> Plan:
        """Plan, derive the fences, lower to words. Options as in `Plan.of` and `lower`. Returns the Plan."""
        from .plan import Lowering, Plan

        lowering = Lowering(gfx10_wait, elide)
        plan = Plan.of(self, boundary=boundary, schedule=schedule, fences=fences, lowering=lowering)
        _ = plan.program  # lowered now, so that what cannot be encoded is reported here
        return plan

    # -- checks --

    def _check_buffer(
        self, site: str, name: str, nbytes: int, kind: str, role: str, alias_of: Buffer | View | None
    ) -> None:
        where = f"{site} buffer {name!r}"
        if not isinstance(name, str) or not name or name in self._names:
            allowed = "a non-empty string that no other buffer of the graph has"
            raise _bad("RL0112", where, "name", repr(name), allowed, "choose another name")
        if isinstance(nbytes, bool) or not isinstance(nbytes, int) or not 0 < nbytes <= MAX_BYTES:
            raise _bad(
                "RL0113",
                where,
                "size",
                f"{nbytes!r} bytes",
                f"an int in 1..{MAX_BYTES}",
                "give its size in bytes",
            )
        if kind not in KINDS or role not in ROLES:
            allowed = f"kind of {KINDS}, role of {ROLES}"
            raise _bad("RL0114", where, "kind or role", f"{kind!r}, {role!r}", allowed, "choose from these")
        if alias_of is not None:
            self._check_alias(where, nbytes, alias_of)

    def _check_alias(self, where: str, nbytes: int, alias_of: Buffer | View) -> None:
        view = alias_of if isinstance(alias_of, View) else alias_of[:]
        if view.buffer.owner != self._owner or nbytes > view.nbytes:
            raise _bad(
                "RL0115",
                where,
                "alias_of",
                f"{nbytes} bytes in {view}",
                f"a buffer of this graph with at least {nbytes} bytes",
                "alias a buffer, or a slice of one, that holds all of it",
            )

    def _check_kernel(self, kernel: Kernel, where: str) -> None:
        if not isinstance(kernel, Kernel):
            allowed = 'a Kernel, as in rl.load("file.hsaco")["name"]'
            raise _bad("RL0116", where, "kernel", type(kernel).__name__, allowed, "load a code object first")
        kernel.check_arguments(where)
        target = self.launches[0].kernel.target if self.launches else kernel.target
        if kernel.target != target:
            raise _bad(
                "RL0117",
                where,
                "target",
                kernel.target,
                f"{target}, as the graph's first launch",
                "use one graph per target",
            )

    def _check_encoding(self, kernel: Kernel, sizes: Triple, blocks: Triple, dynamic_lds: int, where: str) -> None:
        """Limits and fields are the encoder's knowledge: ask it now, so that the error names this line."""
        key = (id(kernel), sizes, blocks, dynamic_lds)
        if key not in self._encodable:
            family_for(kernel.target).dispatch_operation(kernel.words(where, dynamic_lds), sizes, blocks)
            self._encodable[key] = kernel  # kept alive, so that its id stays its own

    def _after(self, after: Sequence[Launch], where: str) -> tuple[int, ...]:
        items = [after] if isinstance(after, Launch) else list(after)
        for item in items:
            known = isinstance(item, Launch) and item.index < len(self.launches) and self.launches[item.index] is item
            if not known:
                raise _bad(
                    "RL0118",
                    where,
                    "after",
                    repr(item),
                    "launches of this graph",
                    "pass what graph.launch returned",
                )
        return tuple(sorted({item.index for item in items}))

    def _adopt(self, buffer: Buffer, where: str) -> None:
        if buffer.owner != self._owner:
            raise _bad(
                "RL0119",
                where,
                "buffer",
                repr(buffer.name),
                "buffers of this graph",
                "make it with this graph's buffer()",
            )


class _Packer:
    """Builds one launch's kernarg image, relocations, slots and byte ranges."""

    def __init__(self, graph: Graph, kernel: Kernel, where: str) -> None:
        self.graph, self.kernel, self.where = graph, kernel, where
        self.image = bytearray(kernel.kernarg_bytes)
        self.pointers: list[PointerArg] = []
        self.slot_args: list[SlotArg] = []
        self.touches: list[Touch] = []
        self.new_slots: dict[str, Slot] = {}

    def hidden(self, sizes: Triple, block: Triple, dynamic_lds: int) -> None:
        for argument in self.kernel.arguments:
            if argument.hidden:
                self._store(argument, hidden_bytes(argument, sizes, block, dynamic_lds))

    def explicit(self, args: Sequence[Any]) -> None:
        wanted = self.kernel.explicit_arguments
        if len(args) != len(wanted):
            names = ", ".join(f"{a.name or a.offset} ({a.kind}, {a.size} bytes)" for a in wanted)
            raise _bad(
                "RL0120",
                self.where,
                "arguments",
                str(len(args)),
                f"{len(wanted)}: {names}",
                "pass one per parameter, in order",
            )
        for argument, value in zip(wanted, args, strict=True):
            self._argument(argument, value)

    def _argument(self, argument: Argument, value: Any) -> None:
        is_pointer = argument.kind in POINTER_KINDS
        if is_pointer != isinstance(value, Access):
            allowed = "rl.read, rl.write, rl.update or rl.access" if is_pointer else "a scalar, bytes or rl.slot"
            place = f"argument {argument.name or argument.offset!r}"
            raise _bad(
                "RL0121",
                self.where,
                place,
                f"{type(value).__name__} {value!r}",
                allowed,
                "declare what the kernel does with it",
            )
        if isinstance(value, Access):
            self._pointer(argument, value)
        elif isinstance(value, Slot):
            self._slot(argument, value)
        else:
            self._store(argument, scalar_bytes(argument, value, self.where))

    def _pointer(self, argument: Argument, access: Access) -> None:
        self.graph._adopt(access.base.buffer, self.where)
        self.pointers.append(PointerArg(argument.offset, access.base.buffer.index, access.base.start))
        self.declare(access, argument.offset)

    def declare(self, access: Access, argument: int | None) -> None:
        for writes, views in ((False, access.reads), (True, access.writes)):
            for view in views:
                self.graph._adopt(view.buffer, self.where)
                self.touches.append(Touch(view.buffer.index, view.start, view.stop, writes, argument))

    def _slot(self, argument: Argument, slot: Slot) -> None:
        if int(slot.type[1]) != argument.size:
            place = f"argument {argument.name or argument.offset!r}"
            raise _bad(
                "RL0122",
                self.where,
                place,
                f"slot {slot.name!r} of type {slot.type}",
                f"{argument.size} bytes",
                "give the slot that size",
            )
        known = self.new_slots.get(slot.name) or self.graph.slots.get(slot.name)
        if known is not None and known != slot:
            raise _bad(
                "RL0123",
                self.where,
                f"slot {slot.name!r}",
                str(slot),
                f"{known}, as recorded before",
                "one name is one type and one default",
            )
        self.new_slots[slot.name] = slot
        self.slot_args.append(SlotArg(argument.offset, slot.name))
        if slot.default is not None:
            self._store(argument, slot.default)

    def _store(self, argument: Argument, data: bytes) -> None:
        self.image[argument.offset : argument.offset + argument.size] = data


def _geometry(
    kernel: Kernel, grid: Size | None, global_size: Size | None, block: Size, where: str
) -> tuple[Triple, Triple]:
    """(block, global size in work-items), both with three dimensions, checked against what the kernel states."""
    if (grid is None) == (global_size is None):
        seen = "both" if grid is not None else "neither"
        raise _bad(
            "RL0124",
            where,
            "grid= (workgroups) and global_size= (work-items)",
            seen,
            "exactly one",
            "give one of them",
        )
    blocks = _triple(block, "block", where)
    sizes = _triple(
        grid if global_size is None else global_size, "grid" if global_size is None else "global_size", where
    )
    if global_size is None:
        sizes = (sizes[0] * blocks[0], sizes[1] * blocks[1], sizes[2] * blocks[2])
    _check_block(kernel, blocks, where)
    partial = any(size % per for size, per in zip(sizes, blocks, strict=True))
    if partial and kernel.uniform_workgroups:
        allowed = "whole workgroups: the kernel was compiled with uniform-work-group-size"
        raise _bad(
            "RL0128",
            where,
            "global_size",
            f"{sizes} with block {blocks}",
            allowed,
            "round up, and guard in the kernel",
        )
    return blocks, sizes


def _check_block(kernel: Kernel, blocks: Triple, where: str) -> None:
    per_block = blocks[0] * blocks[1] * blocks[2]
    if per_block > kernel.max_workgroup:
        allowed = f"at most {kernel.max_workgroup}, for which the kernel was compiled"
        raise _bad("RL0125", where, "block", f"{blocks} = {per_block} work-items", allowed, "use a smaller block")
    if kernel.required_block not in (None, blocks):
        raise _bad(
            "RL0126",
            where,
            "block",
            str(blocks),
            f"{kernel.required_block}, which the kernel requires",
            "use that block",
        )


def _triple(size: Size | None, what: str, where: str) -> Triple:
    items = (size,) if isinstance(size, int) else tuple(size) if isinstance(size, tuple | list) else ()
    whole = all(isinstance(item, int) and not isinstance(item, bool) and item >= 1 for item in items)
    if not 1 <= len(items) <= 3 or not whole:
        raise _bad(
            "RL0130",
            where,
            what,
            repr(size),
            "an int or 1 to 3 ints, each at least 1",
            "pad with 1 or leave out",
        )
    padded = (*items, 1, 1)
    return padded[0], padded[1], padded[2]


def _bad(code: str, where: str, what: str, seen: str, allowed: str, do: str) -> RecordError:
    return RecordError(code, where=f"{where}, {what}", seen=seen, allowed=allowed, do=do)


def _site() -> str:
    """file:line of the nearest caller outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == _HERE:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
