# SPDX-License-Identifier: Apache-2.0
"""Ask of decoded words whether a stream does what a stream must: a linter for streams of any origin.

On top of the strict decoder: caches at the entry and the end, drains before acquires, cache words that lose data,
fences that are never released, packets that lie in the data of others. Launches and their registers are
`lint_launch.py`'s. Derives no fence: whether two launches conflict is not in the words.

A finding is an "error" (the stream is wrong, or means something else than it seems) or a "warning" (real stacks
do it, none of our streams needs it). Rules are named; each finding says what was seen at its dword.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from redline.encoders.decode import Command, header_of, hidden_packets, read
from redline.encoders.families import family_for
from redline.encoders.findings import Finding, Report
from redline.encoders.limits import ADDRESS_LIMIT
from redline.encoders.lint_launch import TMPRING, Expected, Launches
from redline.encoders.table import FamilyTable

if TYPE_CHECKING:
    from redline.encoders.dispatch import DispatchWords

__all__ = ["Finding", "lint"]

# Sizes that mean all of memory: MEC keeps 8 bits of COHER_SIZE_HI, drivers write 8 or 24 ones.
WHOLE_SIZE, WHOLE_SIZE_HI = 0xFFFFFFFF, (0xFF, 0xFFFFFF)
# No buffer of ours lies in what these refresh. Mesa sets them beside GL2 operations by convention.
METADATA = ("GLM_WB", "GLM_INV")
END_OF_PIPE = ("BOTTOM_OF_PIPE_TS", "CACHE_FLUSH_AND_INV_TS")
BITS = {"32_BIT": 32, "64_BIT": 64, "CLOCK": 64}


def lint(
    words: Iterable[int],
    target: str | FamilyTable,
    descriptor: DispatchWords | None = None,
    *,
    entry: int | None = None,
    kernarg: int | None = None,
    global_size: int | Sequence[int] | None = None,
    block: int | Sequence[int] | None = None,
    allow_queue_owned: bool = False,
    allow_tmpring: bool = False,
) -> list[Finding]:
    """Everything to say about a stream, in order of dwords; an empty list is a clean stream.

    Raises UnsupportedTarget for an unknown target and nothing for any words: a `descriptor` or sizes that no launch can
    have are a finding at dword 0, not an EncodeError. Source of the rules: the family's table (`redline tables
    TARGET`), and what the comments of `lint.py` name.

    `descriptor`: what the launch of that kernel must have in its registers. A stream of several kernels is
    compared where the program address is `entry`; `entry` and `kernarg` are the descriptor's own unless given,
    0 is not compared. `global_size` and `block` are work-items. `allow_queue_owned`: for streams of other
    stacks, registers of the queue are no finding. `allow_tmpring`: nor is TMPRING_SIZE, which IREE and tinygrad
    set with every launch and others leave to the queue.
    """
    table = family_for(target) if isinstance(target, str) else target
    commands = list(read(words, table))
    report = Report()
    expected = None
    if descriptor is not None:
        expected = Expected.of(table, report, descriptor, entry, kernarg, global_size, block)
    launches = sum(command.name.startswith("DISPATCH") for command in commands)
    stream = _Stream(
        table, report, Launches(table, report, expected, launches, _allowed(table, allow_queue_owned, allow_tmpring))
    )
    for command in commands:
        if not stream.understands(command):
            return report.sorted()
        stream.take(command)
    stream.end()
    return report.sorted()


def _allowed(table: FamilyTable, queue_owned: bool, tmpring: bool) -> frozenset[str]:
    return frozenset([*(table.queue_owned if queue_owned else ()), *([TMPRING] if tmpring else ())])


#: Packets of a warm entry: zero of the fence word, drain, acquire.
WARM_ENTRY = ("WRITE_DATA", "EVENT_WRITE", "RELEASE_MEM", "WAIT_REG_MEM", "ACQUIRE_MEM")

#: What stands directly behind a warm entry: the packets of a launch.
LAUNCH = ("SET_SH_REG", "DISPATCH_DIRECT", "DISPATCH_INDIRECT")


class _Stream:
    """What is known of the stream so far."""

    def __init__(self, table: FamilyTable, report: Report, launches: Launches) -> None:
        self.table, self.report, self.launches = table, report, launches
        self.drained = 0  # launches known to have ended when the next packet is read
        self.ended = 0  # launches whose end somebody can wait for
        self.written_back = 0  # launches whose writes the system sees, once they have ended
        self.refreshed: set[str] = set()  # GCR fields of the acquires before the first launch
        self.fences: dict[int, tuple[int, int]] = {}  # address: value and launches before its RELEASE_MEM
        self.chained = False
        self.passed_over: Command | None = None  # a warm entry, when it was the packet before

    def understands(self, command: Command) -> bool:
        """Report what the decoder did not understand; False where the stream cannot be followed any further."""
        for problem in command.problems:
            if problem.rule != "register":  # the launches' own matter
                self.report.error(problem.dword, problem.rule, problem.text)
        return command.whole

    def take(self, command: Command) -> None:
        if self.chained:
            self.report.error(command.dword, "behind-chain", f"{command.name} behind a chained buffer is never read")
        if self.passed_over is not None and command.name not in LAUNCH:
            self._hidden_packets(self.passed_over)
        self.passed_over = None
        self._named_values(command)
        self._addresses(command)
        handler = {
            "SET_SH_REG": self.launches.write,
            "DISPATCH_DIRECT": self._dispatch,
            "DISPATCH_INDIRECT": self._dispatch,
            "ACQUIRE_MEM": self._acquire,
            "EVENT_WRITE": self._event,
            "RELEASE_MEM": self._release,
            "WAIT_REG_MEM": self._wait,
            "WAIT_REG_MEM64": self._wait,
            "WRITE_DATA": self._write_data,
            "COPY_DATA": self._copy_data,
            "NOP": self._nop,
            "INDIRECT_BUFFER": self._indirect_buffer,
        }
        handler[command.name](command)

    def end(self) -> None:
        """What must have happened by the end, unless another buffer goes on."""
        self.launches.end()
        count, last = self.launches.count, self.launches.last
        if self.chained or not count:
            return
        if self.ended < count:
            self.report.error(
                last, "final-drain", f"nothing waits for the last {count - self.ended} of {count} launches"
            )
        elif self.written_back < count:
            self.report.error(last, "final-release", "no GL2_WB behind the last launch: the host may read old bytes")

    def _dispatch(self, command: Command) -> None:
        if not self.launches.count:
            needed = {name for name in self.table.entry if name not in METADATA}
            missing = sorted(needed - self.refreshed)
            if missing == sorted(needed):
                self.report.error(command.dword, "entry", "no acquire before the first launch")
            elif missing:
                text = f"the acquires before the first launch leave out {', '.join(missing)}"
                self.report.warning(command.dword, "entry", text)
        self.launches.launch(command)

    def _acquire(self, command: Command) -> None:
        fields, at = command.fields, self._place(command)
        whole = fields["COHER_SIZE"] == WHOLE_SIZE and fields["COHER_SIZE_HI"] in WHOLE_SIZE_HI
        if not whole or fields["COHER_BASE_LO"] or fields["COHER_BASE_HI"]:
            name = next(
                (n for n in ("COHER_BASE_LO", "COHER_BASE_HI") if fields[n]),
                "COHER_SIZE" if fields["COHER_SIZE"] != WHOLE_SIZE else "COHER_SIZE_HI",
            )
            self.report.error(at(name), "range", f"{name} {fields[name]:#x} leaves out some of memory")
        self._gcr(command, at("GLI_INV"))
        for name in ("GLK_WB", "GL2_US", "SEQ"):
            if fields[name]:
                self.report.warning(at(name), "gcr-extra", f"{name} {fields[name]:#x}: no boundary needs it")
        running = self.launches.count - self.drained
        if running:
            launches = "1 launch" if running == 1 else f"{running} launches"
            text = f"ACQUIRE_MEM waits for nothing, and {launches} before it may still run"
            self.report.warning(command.dword, "undrained", text)
        self._needless(command)
        if not self.launches.count:
            self.refreshed |= {name for name in self.table.gcr.by_name if fields[name]}
        if fields["GL2_WB"]:
            self.written_back = max(self.written_back, self.drained)

    def _gcr(self, command: Command, at: int) -> None:
        """Cache actions that lose data, or do not do what they seem to. Not every packet has every bit."""
        fields = {name: command.fields.get(name, 0) for name in self.table.gcr.by_name}
        if fields["GL2_DISCARD"]:
            self.report.error(at, "gl2-discard", "GL2_DISCARD drops written lines")
        if fields["GL2_INV"] and not fields["GL2_WB"]:
            self.report.error(at, "gl2-inv", "GL2_INV without GL2_WB may drop written lines")
        if fields.get("GLM_WB") and not fields["GLM_INV"]:
            self.report.error(at, "glm", "GLM_WB does nothing without GLM_INV")
        for name, together in (("GLK_INV", self.table.scalar), ("GLV_INV", self.table.vector)):
            missing = [other for other in together if not fields[other]]
            if fields[name] and missing:
                self.report.error(at, "gl1", f"{name} without {', '.join(missing)} refreshes from an old line")
        ranged = [name for name in ("GL1_RANGE", "GL2_RANGE", "RANGE_IS_PA") if fields[name]]
        if fields["GLI_INV"] > 1:
            ranged.append("GLI_INV")
        if ranged:
            self.report.warning(at, "gcr-range", f"{', '.join(ranged)}: a part of memory, or a form that none needs")

    def _event(self, command: Command) -> None:
        at, event = self._place(command), self._named(command, "EVENT_TYPE")
        if event != "CS_PARTIAL_FLUSH" or command.fields["EVENT_INDEX"] != 4:
            index = command.fields["EVENT_INDEX"]
            text = f"{event} with index {index} drains nothing; CS_PARTIAL_FLUSH has index 4"
            self.report.error(at("EVENT_TYPE"), "event", text)
            return
        self._needless(command)
        self.drained = self.ended = self.launches.count

    def _needless(self, command: Command) -> None:
        """Behind a whole entry and before the first launch nothing is left to drain or refresh: a NOP may be lost."""
        if not self.launches.count and set(self.table.entry) <= self.refreshed:
            text = f"{command.name} behind the entry and before any launch: is it a warm entry without its NOP?"
            self.report.warning(command.dword, "needless", text)

    def _release(self, command: Command) -> None:
        fields, at, event = command.fields, self._place(command), self._named(command, "EVENT_TYPE")
        self._gcr(command, at("EVENT_TYPE"))
        if event not in END_OF_PIPE or fields["EVENT_INDEX"] != 5:
            text = f"{event} with index {fields['EVENT_INDEX']}, not an end of pipe with index 5"
            self.report.error(at("EVENT_TYPE"), "event", text)
            return
        if self._named(command, "INT_SEL") not in ("NONE", "DATA_CONFIRM"):
            self.report.warning(at("INT_SEL"), "interrupt", "raises an interrupt that nobody waits for")
        data = self._named(command, "DATA_SEL")
        if data in ("32_BIT", "64_BIT"):
            value = fields["DATA_LO"] | (fields["DATA_HI"] << 32 if data == "64_BIT" else 0)
            self.fences[_long(fields, "ADDR")] = value, self.launches.count
            self.ended = self.launches.count
            if fields["GL2_WB"]:
                self.written_back = self.launches.count

    def _wait(self, command: Command) -> None:
        fields, at = command.fields, self._place(command)
        if fields["OPERATION"] or self._named(command, "MEM_SPACE") != "MEMORY":
            self.report.error(at("MEM_SPACE"), "wait", "waits for a register, or writes before it waits")
        wide = "REFERENCE_LO" in fields
        reference = _long(fields, "REFERENCE") if wide else fields["REFERENCE"]
        mask = _long(fields, "MASK") if wide else fields["MASK"]
        if reference & ~mask:
            self.report.error(at("MASK_LO" if wide else "MASK"), "wait", f"mask {mask:#x} hides bits of {reference:#x}")
        value, before = self.fences.get(_long(fields, "ADDR"), (None, 0))
        function = self._named(command, "FUNCTION")
        if value is None or function not in (">=", "=="):
            return
        if value < reference or (function == "==" and value != reference):
            text = f"waits for {function} {reference:#x}, and the stream releases {value:#x}"
            self.report.error(command.dword, "wait", text)
        else:
            self._needless(command)
            self.drained = max(self.drained, before)

    def _write_data(self, command: Command) -> None:
        at = self._place(command)
        if self._named(command, "DST_SEL") not in ("TC_L2", "MEMORY"):
            self.report.error(at("DST_SEL"), "register-write", "WRITE_DATA to registers, past every check of them")
        if not command.fields["WR_CONFIRM"]:
            self.report.warning(at("WR_CONFIRM"), "unconfirmed", "the write may land at any later time")
        if command.fields["ADDR_INCR"]:
            self.report.warning(at("ADDR_INCR"), "one-address", "every dword goes to the same address")
        self._hidden_packets(command)

    def _copy_data(self, command: Command) -> None:
        at = self._place(command)
        source, destination = self._named(command, "SRC_SEL"), self._named(command, "DST_SEL")
        if destination not in ("TC_L2", "TC_L2_OBSOLETE"):
            self.report.error(at("DST_SEL"), "register-write", "COPY_DATA to registers, past every check of them")
        for name in (source, destination):
            if name == "TC_L2_OBSOLETE":
                self.report.warning(at("SRC_SEL"), "obsolete", "a selector that MEC calls obsolete; TC_L2 is 2")
        if source in ("GPU_CLOCK", "SYSTEM_CLOCK") and not command.fields["COUNT_SEL"]:
            self.report.warning(at("COUNT_SEL"), "clock", "half of a clock")

    def _indirect_buffer(self, command: Command) -> None:
        fields, at = command.fields, self._place(command)
        self.chained = True
        if not (fields["VALID"] and fields["CHAIN"] and fields["IB_SIZE"]):
            self.report.error(
                at("VALID"), "chain", "not VALID and CHAIN with a size: the stream ends here, or comes back"
            )
        for name in ("OFFLOAD_POLLING", "VMID", "PRIV"):
            if fields[name]:
                self.report.error(at(name), "chain", f"{name} {fields[name]:#x} belongs to the driver")

    def _nop(self, command: Command) -> None:
        """A warm entry right before the first launch, which a cold start passes over, or padding."""
        inside = hidden_packets(command, self.table)
        if inside and not self.launches.count and all(packet.name in WARM_ENTRY for packet in inside):
            self.passed_over = command
        else:
            self._hidden_packets(command)

    def _hidden_packets(self, command: Command) -> None:
        """A wrong count swallows the packets behind it as data: whole packets in data are suspicious."""
        tail, first = command.tail, command.dword + len(command.words) - len(command.tail)
        for i, word in enumerate(tail):
            inner = header_of(word, len(tail) - i, self.table)
            if inner:
                text = f"the {command.name} at {command.dword} holds what reads as {inner.name}: is its count right?"
                self.report.warning(first + i, "hidden", text)
                return

    def _named_values(self, command: Command) -> None:
        at = self._place(command)
        for word in self.table.packet[command.name].words:
            for item in word.fields:
                value = command.fields.get(item.name, 0)
                if item.names and value not in item.names.values():
                    self.report.error(at(item.name), "value", f"{item.name} {value:#x} has no meaning")

    def _addresses(self, command: Command) -> None:
        """48 bits, real and aligned, where the packet reads or writes memory."""
        at = self._place(command)
        for name, bits, address in self._memory(command):
            if address >= ADDRESS_LIMIT:
                self.report.error(at(f"{name}_HI"), "address", f"{address:#x} is not below {ADDRESS_LIMIT:#x}")
            elif not address:
                self.report.error(at(f"{name}_LO"), "address", "address 0")
            elif address % (bits // 8):
                self.report.error(at(f"{name}_LO"), "address", f"{address:#x} is no multiple of {bits // 8}")

    def _memory(self, command: Command) -> Iterator[tuple[str, int, int]]:
        """Name, width in bits and address of each place in memory that a packet names."""
        fields = command.fields
        if command.name == "RELEASE_MEM" and self._named(command, "DATA_SEL") in BITS:
            yield "ADDR", BITS[self._named(command, "DATA_SEL")], _long(fields, "ADDR")
        elif command.name in ("WAIT_REG_MEM", "WRITE_DATA"):
            yield "ADDR", 32, _long(fields, "ADDR")
        elif command.name == "WAIT_REG_MEM64":
            yield "ADDR", 64, _long(fields, "ADDR")
        elif command.name == "DISPATCH_INDIRECT":
            yield "ADDR", 32, _long(fields, "ADDR", 2)
        elif command.name == "INDIRECT_BUFFER":
            yield "IB_BASE", 32, _long(fields, "IB_BASE", 2)
        elif command.name == "COPY_DATA":
            for name, select in (("SRC", "SRC_SEL"), ("DST", "DST_SEL")):
                if self._named(command, select).startswith("TC_L2"):
                    yield name, 32 << fields["COUNT_SEL"], _long(fields, name)

    def _named(self, command: Command, name: str) -> str:
        word = self.table.packet[command.name]
        item = word.words[word.word_of[name]].by_name[name]
        return item.text(command.fields[name])

    def _place(self, command: Command) -> _Place:
        return _Place(command.dword + 1, self.table.packet[command.name].word_of)


def _long(fields: Mapping[str, int], name: str, low_bits: int = 0) -> int:
    """Two fields as one value; a low half may lack the bits that alignment makes 0."""
    return fields[f"{name}_LO"] << low_bits | fields[f"{name}_HI"] << 32


class _Place:
    """The dword of a field of one packet."""

    def __init__(self, body: int, word_of: Mapping[str, int]) -> None:
        self.body, self.word_of = body, word_of

    def __call__(self, name: str) -> int:
        return self.body + self.word_of[name]
