# SPDX-License-Identifier: Apache-2.0
"""One launch, checked against its kernel: geometry, kernarg image, pointers, slots and the byte ranges it touches.

Everything is refused here or not at all, with the caller's file and line. Knows one launch, never a graph's order;
limits of fields and sizes are the encoder's knowledge.
"""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .errors import RecordError
from .kernarg import Slot, hidden_bytes, scalar_bytes, slot_bytes
from .kernel import POINTER_KINDS, Argument, Kernel
from .ranges import Access, Buffer, View

#: `Touch.argument` of the workgroup counts of an indirect launch: the command processor reads them, no kernel does.
INDIRECT: Final = -2

#: Three dwords: workgroups in x, y and z (PM4 DISPATCH_INDIRECT).
INDIRECT_BYTES: Final = 12

#: Hidden arguments that hold what an indirect launch does not know when it is recorded.
_OF_THE_GRID: Final = ("hidden_block_count_", "hidden_remainder_", "hidden_grid_dims")

Size = int | tuple[int, ...] | list[int]
Triple = tuple[int, int, int]


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
class Indirect:
    """Workgroup counts in memory: 12 bytes of a buffer from byte `addend`. `past_l2`: read where GL2 is not seen."""

    buffer: int
    addend: int
    past_l2: bool


@dataclass(frozen=True, slots=True)
class Touch:
    """One byte range that a launch reads or writes. `argument`: kernarg offset of its pointer, None without one, or
    INDIRECT.
    """

    buffer: int
    start: int
    stop: int
    writes: bool
    argument: int | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Launch:
    """One recorded launch. `index` is its name everywhere, whatever order the plan chooses.

    `global_size` and `block` are (x, y, z) in work-items, `dynamic_lds` is in bytes. `kernarg` is the image of the
    kernarg segment with zeros for pointers and slots. `site` is the caller's file and line. `global_size` is zeros
    where `indirect` says which memory holds the workgroup counts.
    """

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
    indirect: Indirect | None = None

    @property
    def encoded_size(self) -> Triple:
        """The work-items (x, y, z) that registers are made for: one workgroup where the counts are in memory."""
        return self.global_size if self.indirect is None else self.block

    def __str__(self) -> str:
        return f"#{self.index} {self.label}"

    def __repr__(self) -> str:
        return f"<Launch {self} ({self.site})>"


class Packer:
    """Builds one launch's kernarg image, relocations, slots and byte ranges."""

    def __init__(
        self, kernel: Kernel, where: str, slots: Mapping[str, Slot], adopt: Callable[[Buffer, str], None]
    ) -> None:
        """`slots` are those that the graph knows; `adopt` refuses a buffer of another graph."""
        self.kernel, self.where, self.slots, self.adopt = kernel, where, slots, adopt
        self.image = bytearray(kernel.kernarg_bytes)
        self.pointers: list[PointerArg] = []
        self.slot_args: list[SlotArg] = []
        self.touches: list[Touch] = []
        self.new_slots: dict[str, Slot] = {}

    def hidden(self, sizes: Triple, block: Triple, dynamic_lds: int) -> None:
        for argument in self.kernel.arguments:
            if argument.hidden:
                self._store(argument, hidden_bytes(argument, sizes, block, dynamic_lds))

    def indirect(self, counts: Access, kinds: Container[str]) -> Indirect:
        """Workgroup counts that the command processor reads; past GL2 from memory of the given kinds."""
        (view,) = counts.reads
        self.adopt(view.buffer, self.where)
        self.touches.append(Touch(view.buffer.index, view.start, view.stop, False, INDIRECT))
        for argument in self.kernel.arguments:
            if argument.kind.startswith(_OF_THE_GRID):
                raise bad(
                    "RL0141",
                    self.where,
                    "grid",
                    f"counts in memory for a kernel with {argument.kind}",
                    "kernels that do not ask for the grid's size",
                    "pass the size as an argument, and compile with optimisation",
                )
        return Indirect(view.buffer.index, view.start, view.buffer.kind in kinds)

    def explicit(self, args: Sequence[Any]) -> None:
        wanted = self.kernel.explicit_arguments
        if not isinstance(args, list | tuple):
            raise bad("RL0120", self.where, "arguments", f"{args!r}", "a list or tuple", "pass one value per parameter")
        if len(args) != len(wanted):
            names = ", ".join(f"{a.name or a.offset} ({a.kind}, {a.size} bytes)" for a in wanted)
            raise bad(
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
            raise bad(
                "RL0121",
                self.where,
                place,
                reprlib.repr(value),
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
        self.adopt(access.base.buffer, self.where)
        self.pointers.append(PointerArg(argument.offset, access.base.buffer.index, access.base.start))
        self.declare(access, argument.offset)

    def extra(self, accesses: Sequence[Access]) -> None:
        """Memory that no argument carries."""
        for access in accesses if isinstance(accesses, list | tuple) else [accesses]:
            if not isinstance(access, Access):
                allowed = "rl.read, rl.write, rl.update or rl.access"
                raise bad("RL0121", self.where, "accesses=", repr(access), allowed, "say what the kernel does with it")
            self.declare(access, None)

    def declare(self, access: Access, argument: int | None) -> None:
        for writes, views in ((False, access.reads), (True, access.writes)):
            for view in views:
                self.adopt(view.buffer, self.where)
                self.touches.append(Touch(view.buffer.index, view.start, view.stop, writes, argument))

    def _slot(self, argument: Argument, slot: Slot) -> None:
        if slot_bytes(slot.type) != argument.size:
            place = f"argument {argument.name or argument.offset!r}"
            raise bad(
                "RL0122",
                self.where,
                place,
                f"slot {slot.name!r} of type {slot.type}",
                f"{argument.size} bytes",
                "give the slot that size",
            )
        known = self.new_slots.get(slot.name) or self.slots.get(slot.name)
        if known is not None and known != slot:
            raise bad(
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


def geometry(
    kernel: Kernel, grid: Size | None, global_size: Size | None, block: Size, where: str
) -> tuple[Triple, Triple]:
    """(block, global size in work-items), both with three dimensions, checked against what the kernel states."""
    if (grid is None) == (global_size is None):
        seen = "both" if grid is not None else "neither"
        raise bad(
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
        raise bad(
            "RL0128",
            where,
            "global_size",
            f"{sizes} with block {blocks}",
            allowed,
            "round up, and guard in the kernel",
        )
    return blocks, sizes


def check_counts(counts: Access, where: str) -> None:
    """Exactly 12 bytes that are read, at a multiple of 4 bytes of their memory."""
    whole = len(counts.reads) == 1 and not counts.writes and counts.base.start == counts.reads[0].start
    view = counts.reads[0] if counts.reads else counts.base
    aligned = (view.buffer.root_offset + view.start) % 4 == 0
    if not whole or view.nbytes != INDIRECT_BYTES or not aligned:
        raise bad(
            "RL0141",
            where,
            "grid",
            ", ".join([*(f"read of {view}" for view in counts.reads), *(f"write of {view}" for view in counts.writes)]),
            f"rl.read of {INDIRECT_BYTES} bytes, three dwords at a multiple of 4 bytes: workgroups in x, y and z",
            "give the slice that holds the counts",
        )


def check_dynamic_lds(dynamic_lds: int, where: str) -> None:
    """A whole number of bytes, not negative; the limit is the encoder's."""
    if isinstance(dynamic_lds, bool) or not isinstance(dynamic_lds, int) or dynamic_lds < 0:
        raise bad("RL0135", where, "dynamic_lds", repr(dynamic_lds), "an int of bytes, 0 or more", "give bytes")


def _check_block(kernel: Kernel, blocks: Triple, where: str) -> None:
    per_block = blocks[0] * blocks[1] * blocks[2]
    if per_block > kernel.max_workgroup:
        allowed = f"at most {kernel.max_workgroup}, for which the kernel was compiled"
        raise bad("RL0125", where, "block", f"{blocks} = {per_block} work-items", allowed, "use a smaller block")
    if kernel.required_block not in (None, blocks):
        raise bad(
            "RL0126",
            where,
            "block",
            str(blocks),
            f"{kernel.required_block}, which the kernel requires",
            "use that block",
        )


def _triple(size: Size | None, what: str, where: str) -> Triple:
    given = tuple(size) if isinstance(size, tuple | list) else (size,)
    # Whatever stands for a whole number, numpy's included; True is a mistake.
    whole = all(hasattr(item, "__index__") and not isinstance(item, bool) for item in given)
    items = tuple(map(operator.index, given)) if whole else ()  # type: ignore[arg-type]
    if not 1 <= len(items) <= 3 or min(items) < 1:
        in_memory = isinstance(size, Buffer | View)
        raise bad(
            "RL0130",
            where,
            what,
            reprlib.repr(size),
            "an int or 1 to 3 ints, each at least 1",
            "pass rl.read(counts[0:12]) for counts in memory" if in_memory else "give positive whole numbers",
        )
    padded = (*items, 1, 1)
    return padded[0], padded[1], padded[2]


def bad(code: str, where: str, what: str, seen: str, allowed: str, do: str) -> RecordError:
    return RecordError(code, where=f"{where}, {what}", seen=seen, allowed=allowed, do=do)
