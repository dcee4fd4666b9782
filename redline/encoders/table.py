# SPDX-License-Identifier: Apache-2.0
"""What a table of hardware facts is made of: fields, words, registers, packets and families; packing and
unpacking.

A table checks itself when it is declared: bits inside the word, no overlap, no name twice, no two registers
at one offset. `pack` refuses what does not fit, `unpack` refuses a set reserved bit.

Holds no facts (`pm4.py`, `gfx10.py`, `gfx11.py`, `gfx12.py`, `aql.py`) and writes no streams (`emit.py`).
Fast code never packs: it moves whole words that were packed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING

from redline.errors import EncodeError

if TYPE_CHECKING:
    import numpy as np

    from redline.encoders.dispatch import DispatchWords
    from redline.encoders.emit import Family

Value = int | str


def _declare(ok: bool, where: str, seen: str, allowed: str) -> None:
    if not ok:
        raise EncodeError("RL0510", where=where, seen=seen, allowed=allowed, do="correct the table")


@dataclass(frozen=True)
class Field:
    """Bits `high` to `low` of a 32-bit word; `names` gives values that have a name in the manual."""

    name: str
    high: int
    low: int
    names: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _declare(0 <= self.low <= self.high <= 31, self.name, self.bits, "bits inside 31:0")
        for value in self.names.values():
            _declare(0 <= value <= self.limit, self.name, f"named value {value:#x}", f"0..{self.limit:#x}")
        values = list(self.names.values())
        _declare(len(set(values)) == len(values), self.name, "two names for one value", "one name for each value")

    @property
    def limit(self) -> int:
        """The largest value that fits."""
        return (1 << (self.high - self.low + 1)) - 1

    @property
    def mask(self) -> int:
        return self.limit << self.low

    @property
    def bits(self) -> str:
        return f"bit {self.low}" if self.high == self.low else f"bits {self.high}:{self.low}"

    def pack(self, value: Value, where: str) -> int:
        """`value`, shifted into place; a number or one of `names`."""
        number = self.names.get(value, -1) if isinstance(value, str) else value
        if isinstance(number, bool) or not 0 <= number <= self.limit:
            named = f" or one of {', '.join(self.names)}" if self.names else ""
            raise EncodeError(
                "RL0501",
                where=f"{where}.{self.name}",
                seen=value if isinstance(value, str) else f"{number:#x}",
                allowed=f"0..{self.limit:#x} ({self.bits}){named}",
                do="give a value that fits the field",
            )
        return int(number) << self.low

    def unpack(self, word: int) -> int:
        return (word & self.mask) >> self.low

    def text(self, value: int) -> str:
        """The value's name, else the number in hexadecimal."""
        return next((name for name, number in self.names.items() if number == value), f"{value:#x}")


def flag(name: str, bit: int) -> Field:
    """A field of one bit."""
    return Field(name, bit, bit)


@dataclass(frozen=True)
class Word:
    """A 32-bit word. Bits that no field covers are reserved and must be 0."""

    name: str
    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        seen: dict[str, int] = {}
        for item in self.fields:
            _declare(item.name not in seen, f"{self.name}.{item.name}", "declared twice", "one declaration")
            taken = item.mask & sum(seen.values())
            _declare(taken == 0, f"{self.name}.{item.name}", f"overlap in {taken:#x}", "no overlap")
            seen[item.name] = item.mask

    @cached_property
    def by_name(self) -> dict[str, Field]:
        return {item.name: item for item in self.fields}

    @cached_property
    def reserved(self) -> int:
        """The bits that no field covers."""
        return 0xFFFFFFFF & ~sum(item.mask for item in self.fields)

    def pack(self, **values: Value) -> int:
        """The word with these fields; fields not given are 0."""
        word = 0
        for name, value in values.items():
            if name not in self.by_name:
                raise unknown_field(self.name, name, self.by_name)
            word |= self.by_name[name].pack(value, self.name)
        return word

    def unpack(self, word: int, where: str = "") -> dict[str, int]:
        """Every field of `word`, in declared order; a set reserved bit is refused."""
        if word & self.reserved or not 0 <= word <= 0xFFFFFFFF:
            raise EncodeError(
                "RL0508",
                where=where or self.name,
                seen=f"{word:#010x} sets reserved bits {word & self.reserved:#x}",
                allowed=f"bits of {0xFFFFFFFF & ~self.reserved:#010x}",
                do="check the word and the target that it is read for",
            )
        return {item.name: item.unpack(word) for item in self.fields}


def unknown_field(where: str, name: str, known: Iterable[str]) -> EncodeError:
    return EncodeError(
        "RL0502", where=where, seen=f"field {name}", allowed=", ".join(known), do="name a field of this word"
    )


def dword(name: str) -> Word:
    """A word that is one field of 32 bits with the word's own name."""
    return Word(name, (Field(name, 31, 0),))


@dataclass(frozen=True)
class Register(Word):
    """An SH register: `offset` is in dwords from the start of the SH space (byte address 0xB000 + 4 *
    offset).
    """

    offset: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _declare(0 <= self.offset <= 0x3FF, self.name, f"offset {self.offset:#x}", "0..0x3ff")


@dataclass(frozen=True)
class Layout:
    """Words in a row whose fields are addressed by name, wherever they are."""

    name: str
    words: tuple[Word, ...]

    def __post_init__(self) -> None:
        names = [item.name for word in self.words for item in word.fields]
        _declare(len(set(names)) == len(names), self.name, "a field name twice", "one field for each name")

    @cached_property
    def word_of(self) -> dict[str, int]:
        """Which of the words a field is in."""
        return {item.name: i for i, word in enumerate(self.words) for item in word.fields}

    def body(self, values: Mapping[str, Value]) -> list[int]:
        """The words with these fields; fields not given are 0."""
        fields: list[dict[str, Value]] = [{} for _ in self.words]
        for name, value in values.items():
            if name not in self.word_of:
                raise unknown_field(self.name, name, self.word_of)
            fields[self.word_of[name]][name] = value
        return [word.pack(**given) for word, given in zip(self.words, fields, strict=True)]

    def fields(self, body: Sequence[int]) -> dict[str, int]:
        """Every field of these words; a set reserved bit is refused."""
        found: dict[str, int] = {}
        for word, value in zip(self.words, body, strict=True):
            found |= word.unpack(value, f"{self.name}.{word.name}")
        return found


# Type-3 header. Bits 7:2 and 0 are for the graphics ring or reserved on the compute engine.
# K nvd.h:33,48,54; M sid.h:306,313-318; P12 mec:44-54.
HEADER = Word(
    "HEADER",
    (Field("TYPE", 31, 30), Field("COUNT", 29, 16), Field("OPCODE", 15, 8), flag("SHADER_TYPE", 1)),
)
# The count of a NOP that is nothing but its header. M sid.h:328; P12 mec:1839 (PM4_MEC_NOP).
PAD_COUNT = 0x3FFF


@dataclass(frozen=True)
class Packet(Layout):
    """A type-3 packet: header, `words`, then any number of dwords of `tail` (at least one) where it has a
    name.
    """

    opcode: int
    tail: str = ""
    shader_type: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _declare(0 <= self.opcode <= 0xFF, self.name, f"opcode {self.opcode:#x}", "0..0xff")
        _declare(self.shader_type in (0, 1), self.name, f"shader type {self.shader_type}", "0 or 1")

    @property
    def dwords(self) -> int:
        """Dwords with the header and without the tail."""
        return 1 + len(self.words)

    def header(self, tail: int = 0) -> int:
        """The header word of a packet with `tail` dwords behind its fixed words."""
        if self.dwords + tail - 2 >= PAD_COUNT:
            raise EncodeError(
                "RL0509",
                where=self.name,
                seen=f"{self.dwords + tail} dwords",
                allowed=f"at most {PAD_COUNT + 1}",
                do="split it",
            )
        return HEADER.pack(TYPE=3, COUNT=self.dwords + tail - 2, OPCODE=self.opcode, SHADER_TYPE=self.shader_type)

    def pad(self) -> int:
        """The header of a packet without a body: a NOP of one dword."""
        return HEADER.pack(TYPE=3, COUNT=PAD_COUNT, OPCODE=self.opcode)

    def pack(self, tail: Sequence[int] = (), **values: Value) -> list[int]:
        """Header and body as a list of words; fields not given are 0."""
        if bool(tail) != bool(self.tail):
            allowed = f"at least one dword of {self.tail}" if self.tail else "none"
            raise EncodeError(
                "RL0502", where=self.name, seen=f"{len(tail)} dwords behind the fields", allowed=allowed, do="match it"
            )
        rest = [Field(self.tail, 31, 0).pack(word, self.name) for word in tail]
        return [self.header(len(tail)), *self.body(values), *rest]


@dataclass(frozen=True)
class Form:
    """A packet with the field values that every use of it shares."""

    packet: str
    values: Mapping[str, Value]


@dataclass(frozen=True, repr=False, eq=False)
class FamilyTable:
    """All that the encoder, the decoder and the documentation know of a GPU family. Each is compared by identity.

    `source` says where its facts are from. Register offsets are dwords from the start of SH space. Raises EncodeError
    when a table is declared that has a packet, register, opcode or offset twice.
    """

    name: str
    targets: tuple[str, ...]
    source: str
    packets: tuple[Packet, ...]
    registers: tuple[Register, ...]
    gcr: Word  # GCR_CNTL as in ACQUIRE_MEM
    initiator: Word  # COMPUTE_DISPATCH_INITIATOR as in DISPATCH_DIRECT
    entry: Mapping[str, Value]  # GCR fields of the system acquire at an entry
    release: Mapping[str, Value]  # GCR fields of the release to the system
    scalar: Mapping[str, Value]  # GCR fields that refresh what K (GLK) holds
    vector: Mapping[str, Value]  # GCR fields that refresh what V (GLV) holds
    workgroups: Mapping[str, Value]  # initiator fields when the dimensions count workgroups
    work_items: Mapping[str, Value]  # initiator fields when the dimensions count work-items
    wave32: str  # the initiator field that a wave32 kernel adds
    forms: Mapping[str, Form]
    partial_flush_is_trusted: bool  # False: EVENT_WRITE may return early on old microcode
    processor_reads_past_l2: bool  # the command processor works at memory: indirect counts must be written back
    l2_kinds: tuple[
        str, ...
    ]  # kinds of memory whose bytes GL2 may hold: the host sees them through its write-back only
    has_private_segment_buffer: bool  # kernels ask for it even without scratch
    queue_owned: Mapping[str, int]  # SH registers that a launch must not write: name to offset
    not_needed: Mapping[str, int]  # SH registers that a launch may set to 0 and ours leaves alone

    def __post_init__(self) -> None:
        for kind, names in (
            ("packet", [item.name for item in self.packets]),
            ("opcode", [f"{item.opcode:#x}" for item in self.packets]),
            ("register", [item.name for item in self.registers]),
            ("offset", [f"{item.offset:#x}" for item in self.registers]),
            (
                "offset of another kind",
                [f"{n:#x}" for n in (*self.register_at, *self.queue_owned.values(), *self.not_needed.values())],
            ),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            _declare(not twice, self.name, f"{kind} {', '.join(twice)} twice", f"each {kind} once")

    def __repr__(self) -> str:
        return f"<FamilyTable {self.name}>"

    @cached_property
    def packet(self) -> dict[str, Packet]:
        """Packets by name."""
        return {item.name: item for item in self.packets}

    @cached_property
    def packet_of(self) -> dict[int, Packet]:
        """Packets by opcode."""
        return {item.opcode: item for item in self.packets}

    @cached_property
    def register(self) -> dict[str, Register]:
        """Registers that a launch writes, by name."""
        return {item.name: item for item in self.registers}

    @cached_property
    def register_at(self) -> dict[int, Register]:
        """Registers that a launch writes, by offset in dwords."""
        return {item.offset: item for item in self.registers}

    @cached_property
    def queue_owned_at(self) -> dict[int, str]:
        """Names of the registers that a launch must not write, by offset in dwords."""
        return {offset: name for name, offset in self.queue_owned.items()}

    @cached_property
    def not_needed_at(self) -> dict[int, str]:
        """Names of the registers that a launch may set to 0 and ours leaves alone, by offset in dwords."""
        return {offset: name for name, offset in self.not_needed.items()}

    @cached_property
    def entry_gcr(self) -> int:
        """GCR_CNTL of the system acquire at an entry.

        Raises EncodeError for a table whose `entry` does not fit `gcr`.
        """
        return self.gcr.pack(**self.entry)

    @cached_property
    def release_gcr(self) -> int:
        """GCR_CNTL that writes back for the system; it follows a drain.

        Raises EncodeError for a table whose `release` does not fit `gcr`.
        """
        return self.gcr.pack(**self.release)

    def acquire_gcr(self, k: bool, v: bool, p: bool = False) -> int:
        """GCR_CNTL of a same-agent acquire for reads through K, V, or by the command processor past GL2 (p: written
        back).

        Raises EncodeError for none of them.
        """
        if not (k or v or p):
            raise EncodeError(
                "RL0507",
                where=f"{self.name} acquire",
                seen="neither K nor V",
                allowed="K, V or both",
                do="leave it out",
            )
        parts = ((k, self.scalar), (v, self.vector), (p, self.release))
        return reduce(or_, (self.gcr.pack(**fields) for wanted, fields in parts if wanted))

    def form(self, name: str, tail: Sequence[int] = (), **values: Value) -> list[int]:
        """The dwords of a form's packet, with the values that differ from use to use.

        Raises EncodeError for a value that does not fit its field and for a field that the packet does not have.
        """
        shared = self.forms[name]
        return self.packet[shared.packet].pack(tail, **{**shared.values, **values})

    def initiator_word(self, *, wave: int, work_items: bool) -> int:
        """COMPUTE_DISPATCH_INITIATOR for a wave of 32 or 64 lanes and the unit of the dimensions.

        Raises EncodeError for a table whose fields do not fit `initiator`.
        """
        shared = self.work_items if work_items else self.workgroups
        return self.initiator.pack(**{**shared, self.wave32: int(wave == 32)})

    def family(self) -> Family:
        """The numbers that `emit.py` takes."""
        return self._family

    @cached_property
    def _family(self) -> Family:
        # Imported here, because tables are read and printed without numba.
        from redline.encoders.dispatch import family_of

        return family_of(self)

    def dispatch_operation(self, words: DispatchWords, global_size: Sequence[int], block: Sequence[int]) -> np.void:
        """One checked OPERATION row; `global_size` and `block` in work-items, one to three of each.

        Raises EncodeError for a size, an address or a field beyond its limit, UnsupportedKernel for a kernel that needs
        what a raw dispatch does not supply.
        """
        from redline.encoders.dispatch import dispatch_operation

        return dispatch_operation(self, words, global_size, block)
