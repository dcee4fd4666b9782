# SPDX-License-Identifier: Apache-2.0
"""The linter's view of launches: which registers stand at each, and whether they make a launch of the kernel.

Registers of the queue, registers that nobody set, wrote twice or never used; LDS, user data, workgroup and grid
limits; and, with a descriptor, every register word and the launch size. Caches and fences are `lint.py`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

from redline.encoders.decode import Command
from redline.encoders.findings import Report
from redline.encoders.limits import BLOCK_LIMIT, LDS_LIMIT_BYTES, LDS_UNIT_BYTES, WORK_ITEM_LIMIT, Size, geometry
from redline.encoders.table import FamilyTable
from redline.errors import RedlineError

if TYPE_CHECKING:
    from redline.encoders.dispatch import DispatchWords

AXES = "XYZ"
TMPRING = "COMPUTE_TMPRING_SIZE"
LDS_LIMIT_UNITS = LDS_LIMIT_BYTES // LDS_UNIT_BYTES
USER_DATA_REGISTERS = 16  # stated in emit.py too, which imports nothing of ours and loads the compiler
REQUIRED = ("NUM_THREAD_X", "NUM_THREAD_Y", "NUM_THREAD_Z", "PGM_LO", "PGM_HI", "PGM_RSRC1", "PGM_RSRC2", "PGM_RSRC3")
# Initiator fields that compute stacks set. The others order graphics work, restore state or are unknown here.
INITIATOR_FIELDS = {
    "COMPUTE_SHADER_EN",
    "PARTIAL_TG_EN",
    "FORCE_START_AT_000",
    "USE_THREAD_DIMENSIONS",
    "ORDER_MODE",
    "TUNNEL_ENABLE",
    "CS_W32_EN",
}


@dataclass(frozen=True)
class Expected:
    """What a launch must have: registers by name with the rule that each breaks, and the size."""

    entry: int
    registers: dict[str, tuple[int, str]]
    wave32: bool
    size: Size | None
    block: Size | None

    @staticmethod
    def of(
        table: FamilyTable,
        report: Report,
        descriptor: DispatchWords,
        entry: int | None,
        kernarg: int | None,
        global_size: int | Sequence[int] | None,
        block: int | Sequence[int] | None,
    ) -> Expected | None:
        """From a descriptor; what no launch can be made of is a finding at dword 0."""
        words = replace(
            descriptor,
            entry=descriptor.entry if entry is None else entry,
            kernarg=descriptor.kernarg if kernarg is None else kernarg,
        )
        group = block if block is not None else 1
        try:
            sizes = geometry(words.name, group if global_size is None else global_size, group)
            row = table.dispatch_operation(words, *sizes)
        except RedlineError as error:
            report.error(0, "descriptor", str(error))
            return None
        return Expected(
            entry=words.entry,
            registers=_registers(row, words),
            wave32=words.wave == 32,
            size=sizes[0] if global_size is not None else None,
            block=sizes[1] if block is not None else None,
        )


def _registers(row: Any, words: DispatchWords) -> dict[str, tuple[int, str]]:
    found = {f"PGM_RSRC{i}": (int(row[f"rsrc{i}"]), "descriptor") for i in (1, 2, 3)}
    if words.entry:
        found |= {"PGM_LO": (words.entry >> 8 & 0xFFFFFFFF, "entry"), "PGM_HI": (words.entry >> 40, "entry")}
    user: list[tuple[int, str] | None] = [(0, "user-data")] * int(row["user_count"])
    if words.takes_kernarg:
        at = int(row["kernarg_at"])
        low, high = (words.kernarg & 0xFFFFFFFF, "kernarg"), (words.kernarg >> 32, "kernarg")
        user[at : at + 2] = [low, high] if words.kernarg else [None, None]
    return found | {f"USER_DATA_{i}": pair for i, pair in enumerate(user) if pair}


class Launches:
    """The registers of the stream, and the launches that used them."""

    def __init__(
        self, table: FamilyTable, report: Report, expected: Expected | None, launches: int, allowed: frozenset[str]
    ) -> None:
        self.table, self.report, self.expected = table, report, expected
        self.only_one, self.allowed = launches == 1, allowed
        self.count, self.last = 0, 0  # launches so far, and where the last one is
        self.matched = False
        self.starts: set[int] = set()  # entry addresses of the launches so far
        self.values: dict[str, tuple[int, int]] = {}  # register: value, and where it was written
        self.unused: dict[str, int] = {}  # registers written since the last launch, and where

    def write(self, command: Command) -> None:
        """SET_SH_REG."""
        for i, (offset, value) in enumerate(command.registers.items()):
            at = command.dword + 2 + i
            if offset in self.table.register_at:
                self._set(self.table.register_at[offset].name, value, at)
            elif offset in self.table.queue_owned_at:
                name = self.table.queue_owned_at[offset]
                if name not in self.allowed:
                    self.report.error(at, "queue-owned", f"{name} ({offset:#x}) belongs to the queue")
            elif offset in self.table.not_needed_at:
                self._not_needed(self.table.not_needed_at[offset], value, at)
            else:
                self.report.error(at, "register", f"{offset:#x} is no register of the tables")

    def launch(self, command: Command) -> None:
        """DISPATCH_DIRECT or DISPATCH_INDIRECT: everything that it uses stands now."""
        self.count += 1
        self.last = command.dword
        self._unset(command.dword)
        self._threads(command)
        self._resources(command.dword)
        self._initiator(command)
        self._compare(command)
        self.unused.clear()

    def end(self) -> None:
        """Registers that no launch used; and the kernel that was not launched."""
        if self.unused:
            names = ", ".join(sorted(self.unused))
            self.report.error(min(self.unused.values()), "unused", f"no launch uses {names}")
        if self.expected and not self.matched and self.count:
            self.report.error(self.last, "entry", self._starts_elsewhere(self.expected.entry))

    def _starts_elsewhere(self, entry: int) -> str:
        seen = sorted(self.starts)
        shown = ", ".join(f"{start:#x}" for start in seen[:4]) + (", ..." if len(seen) > 4 else "")
        text = f"no launch starts at {entry:#x}, but at {shown}"
        return f"{text}; 0x0 is an address not filled in yet: give no entry to compare all" if 0 in seen else text

    def _set(self, name: str, value: int, at: int) -> None:
        short = name.removeprefix("COMPUTE_")
        if short in self.unused:
            self.report.warning(at, "rewritten", f"{name} was set at {self.unused[short]}, and no launch used it")
        self.unused[short] = at
        self.values[short] = value, at

    def _not_needed(self, name: str, value: int, at: int) -> None:
        self.values[name.removeprefix("COMPUTE_")] = value, at
        if name == TMPRING:
            if name not in self.allowed:
                self.report.warning(at, "tmpring", f"{name} is the queue's while no launch uses scratch")
        elif value:
            self.report.warning(at, "register", f"{name} {value:#x}: a launch leaves it 0")

    def _unset(self, at: int) -> None:
        missing = [name for name in REQUIRED if name not in self.values]
        users = [f"USER_DATA_{i}" for i in range(min(self._field("PGM_RSRC2", "USER_SGPR"), USER_DATA_REGISTERS))]
        missing += [name for name in users if name not in self.values]
        if missing:
            self.report.error(at, "unset", f"the launch uses {', '.join(missing)}, and nothing has set them")
        if "RESOURCE_LIMITS" not in self.values:
            self.report.warning(at, "limits", "RESOURCE_LIMITS may still be an earlier user's; 0 is no limit")
        elif self.values["RESOURCE_LIMITS"][0]:
            self.report.warning(self._at("RESOURCE_LIMITS"), "limits", "RESOURCE_LIMITS other than 0, no limit")
        for name in self.unused:
            if name.startswith("USER_DATA_") and name not in users:
                self.report.warning(self.unused[name], "user-data", f"{name}, and RSRC2 asks for {len(users)} words")

    def _threads(self, command: Command) -> None:
        partial_enabled = command.fields["PARTIAL_TG_EN"]
        for axis in AXES:
            full, partial = self._thread(axis), self._field(f"NUM_THREAD_{axis}", "NUM_THREAD_PARTIAL")
            at = self._at(f"NUM_THREAD_{axis}", command.dword)
            if not full:
                self.report.error(at, "threads", f"NUM_THREAD_{axis} 0")
            if partial > full or bool(partial) > bool(partial_enabled):
                self.report.error(
                    at, "threads", f"a partial workgroup of {partial} in {axis}: at most {full}, with PARTIAL_TG_EN"
                )
            if self._field(f"NUM_THREAD_{axis}", "INTERLEAVE_BITS"):
                self.report.warning(at, "threads", "INTERLEAVE_BITS reorder work-items for graphics")
        block = prod(self._thread(axis) for axis in AXES)
        if block > BLOCK_LIMIT:
            self.report.error(self._at("NUM_THREAD_X"), "threads", f"{block} work-items, more than {BLOCK_LIMIT}")

    def _resources(self, at: int) -> None:
        at = self._at("PGM_RSRC2", at)
        if self._field("PGM_RSRC2", "SCRATCH_EN"):
            self.report.error(at, "scratch", "SCRATCH_EN: the launch has no scratch memory")
        if self._field("PGM_RSRC2", "LDS_SIZE") > LDS_LIMIT_UNITS:
            units = self._field("PGM_RSRC2", "LDS_SIZE")
            self.report.error(at, "lds", f"LDS_SIZE {units}, more than {LDS_LIMIT_UNITS} times {LDS_UNIT_BYTES} bytes")
        if self._field("PGM_RSRC2", "USER_SGPR") > USER_DATA_REGISTERS:
            self.report.error(at, "user-data", f"USER_SGPR, more than {USER_DATA_REGISTERS}")

    def _initiator(self, command: Command) -> None:
        fields, at = command.fields, command.dword + len(command.words) - 1
        other = sorted(name for name in self.table.initiator.by_name if fields[name] and name not in INITIATOR_FIELDS)
        if other:
            self.report.error(at, "initiator", f"{', '.join(other)}: no compute stack sets it")
        if not fields["COMPUTE_SHADER_EN"]:
            self.report.error(at, "initiator", "without COMPUTE_SHADER_EN nothing starts")
        if not fields["FORCE_START_AT_000"] and any(f"START_{axis}" not in self.values for axis in AXES):
            self.report.error(at, "initiator", "without FORCE_START_AT_000 the launch begins where START says: not set")
        partial = any(self._field(f"NUM_THREAD_{axis}", "NUM_THREAD_PARTIAL") for axis in AXES)
        if fields["PARTIAL_TG_EN"] and not partial:
            self.report.error(at, "initiator", "PARTIAL_TG_EN without a partial workgroup in NUM_THREAD")
        if command.name == "DISPATCH_DIRECT":
            self._grid(command)

    def _grid(self, command: Command) -> None:
        dims = [command.fields[f"DIM_{axis}"] for axis in AXES]
        if 0 in dims:
            self.report.error(command.dword + 1 + dims.index(0), "dims", "0 workgroups or work-items")
        block = 1 if command.fields["USE_THREAD_DIMENSIONS"] else prod(self._thread(axis) for axis in AXES)
        if prod(dims) * block > WORK_ITEM_LIMIT:
            self.report.error(
                command.dword + 1, "dims", f"{prod(dims) * block} work-items, more than {WORK_ITEM_LIMIT}"
            )

    def _compare(self, command: Command) -> None:
        """With the kernel that is expected here."""
        want = self.expected
        if want is None:
            return
        seen = self.values.get("PGM_LO", (0, 0))[0] << 8 | self.values.get("PGM_HI", (0, 0))[0] << 40
        self.starts.add(seen)
        if want.entry and seen != want.entry and not self.only_one:
            return
        self.matched = True
        for name, (value, rule) in want.registers.items():
            if name in self.values and self.values[name][0] != value:
                self._differs(name, value, rule)
        at = command.dword + len(command.words) - 1
        if bool(command.fields["CS_W32_EN"]) != want.wave32:
            self.report.error(at, "wave", f"CS_W32_EN, and the kernel has waves of {32 if want.wave32 else 64}")
        if want.block:
            for axis, n in zip(AXES, want.block, strict=True):
                if self._thread(axis) != n:
                    text = f"NUM_THREAD_{axis} {self._thread(axis)}, not {n}"
                    self.report.error(self._at(f"NUM_THREAD_{axis}", command.dword), "threads", text)
        if want.size and want.block and command.name == "DISPATCH_DIRECT":
            self._covers(command, want.size, want.block)

    def _differs(self, name: str, value: int, rule: str) -> None:
        seen = self.values[name][0]
        if name == "PGM_RSRC2":
            lds = self.table.register["COMPUTE_PGM_RSRC2"].by_name["LDS_SIZE"]
            if lds.unpack(seen) != lds.unpack(value):
                text = f"LDS_SIZE {lds.unpack(seen)}, not {lds.unpack(value)} times {LDS_UNIT_BYTES} bytes"
                self.report.error(self._at(name), "lds", text)
            if (seen ^ value) & ~lds.mask == 0:
                return
        text = f"COMPUTE_{name} {seen:#x}, not {value:#x}"
        if rule in ("entry", "kernarg") and not seen:
            text += f"; 0x0 is an address not filled in yet: give no {rule}"
        self.report.error(self._at(name), rule, text)

    def _covers(self, command: Command, size: Size, block: Size) -> None:
        """The dimensions make exactly the work-items: counted as such, or in whole and partial workgroups."""
        for i, (axis, n, m) in enumerate(zip(AXES, size, block, strict=True)):
            dim, rest = command.fields[f"DIM_{axis}"], n % m
            if command.fields["USE_THREAD_DIMENSIONS"]:
                right = dim == n
            else:
                right = dim == -(-n // m) and self._field(f"NUM_THREAD_{axis}", "NUM_THREAD_PARTIAL") in (
                    rest,
                    rest or m,
                )
            if not right:
                unit = "work-items" if command.fields["USE_THREAD_DIMENSIONS"] else "workgroups"
                text = f"DIM_{axis} {dim} {unit} are not the {n} work-items of the launch"
                self.report.error(command.dword + 1 + i, "dims", text)

    def _thread(self, axis: str) -> int:
        return self._field(f"NUM_THREAD_{axis}", "NUM_THREAD_FULL")

    def _field(self, register: str, name: str) -> int:
        """A field of a register as it stands; 0 where it is not set, or the family has no such field."""
        if register not in self.values:
            return 0
        item = self.table.register[f"COMPUTE_{register}"].by_name.get(name)
        return item.unpack(self.values[register][0]) if item else 0

    def _at(self, register: str, otherwise: int = 0) -> int:
        return self.values[register][1] if register in self.values else otherwise
