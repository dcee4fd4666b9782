# SPDX-License-Identifier: Apache-2.0
"""The AMDGPU metadata note of a code object: kernels and their arguments, each field checked for type and
range.

Reads the msgpack document only. Whether it agrees with the ELF header and the kernel descriptors is
`code_object.py`'s question. Keys and their meaning: LLVM AMDGPUUsage, "Code Object V3 Metadata" and its V4
and V5 additions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgpack

from radiowave.errors import CodeObjectError
from radiowave.value_kinds import VALUE_KINDS

# Far above what compilers write; a larger number is damage, and would make a loader reserve that much.
MAX_KERNARG_BYTES = 1 << 20
MAX_KERNELS = 1 << 16
# Less than 1 KiB a kernel. A document may take 30 times its size in memory, and more if it is all maps and lists.
MAX_NOTE_BYTES = 16 << 20
MAX_CONTAINERS = 1 << 20
U32 = 0xFFFFFFFF

ADDRESS_SPACES = frozenset(("private", "global", "constant", "local", "generic", "region"))
ACCESSES = frozenset(("read_only", "write_only", "read_write"))
KERNEL_KINDS = frozenset(("normal", "init", "fini"))


@dataclass(frozen=True)
class Argument:
    """One kernel argument, explicit or hidden, where the compiler put it: byte offset and size in the kernarg segment.

    `kind` is the metadata's `.value_kind` as written; `is_known` is False for one that is on no list of ours.
    `access` is what LLVM inferred about a pointer (`.actual_access`), None where it inferred nothing;
    `declared_access` is what the source says about an image or a pipe (`.access`). `type_name` is the source's, empty
    where the compiler left it out; HIP does, OpenCL does not.
    """

    name: str
    offset: int
    size: int
    kind: str
    address_space: str | None
    access: str | None
    type_name: str = ""
    declared_access: str | None = None
    pointee_align: int | None = None
    is_const: bool = False
    is_restrict: bool = False
    is_volatile: bool = False
    is_pipe: bool = False

    @property
    def is_hidden(self) -> bool:
        """Whether the dispatcher supplies the value, not the caller. Declared does not mean used."""
        return self.kind.startswith("hidden_")

    @property
    def is_known(self) -> bool:
        """Whether the meaning of `kind` is known here."""
        return self.kind in VALUE_KINDS


@dataclass(frozen=True)
class KernelMetadata:
    """What the note says about one kernel. `kind` is normal, or init or fini for module constructors, destructors."""

    name: str
    symbol: str
    wave: int
    kernarg_bytes: int
    kernarg_align: int
    group_bytes: int
    private_bytes: int
    arguments: tuple[Argument, ...]
    max_workgroup: int
    required_workgroup: tuple[int, int, int] | None
    has_uniform_workgroups: bool
    uses_dynamic_stack: bool | None
    vgpr_count: int
    sgpr_count: int
    vgpr_spill_count: int
    sgpr_spill_count: int
    language: str
    kind: str
    workgroup_hint: tuple[int, int, int] | None


@dataclass(frozen=True)
class Metadata:
    """The whole note."""

    version: tuple[int, int]
    target: str
    kernels: tuple[KernelMetadata, ...]


def unpack_document(payload: bytes) -> object:
    """The note's msgpack document as it is; nothing in it is checked."""
    if len(payload) > MAX_NOTE_BYTES:
        raise _malformed("metadata note", f"{len(payload):,} bytes", f"up to {MAX_NOTE_BYTES:,}")
    try:
        counted = _Counted()
        document: object = msgpack.unpackb(payload, object_hook=counted, list_hook=counted)
    except (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException) as error:
        raise _malformed("metadata note", f"{type(error).__name__}: {error}"[:300], "one msgpack document") from None
    return document


class _Counted:
    """Passes maps and lists on, up to a limit."""

    def __init__(self) -> None:
        self._left = MAX_CONTAINERS

    def __call__(self, container: object) -> object:
        self._left -= 1
        if self._left < 0:
            raise ValueError(f"more than {MAX_CONTAINERS:,} maps and lists")
        return container


def parse_metadata(payload: bytes) -> Metadata:
    """Read the document, or raise `CodeObjectError` that names the key."""
    root = _Map("metadata", unpack_document(payload))
    version = root.integers("amdhsa.version", 2)
    assert version is not None
    rows = root.value("amdhsa.kernels", list, default=[])
    if len(rows) > MAX_KERNELS:
        raise _malformed("metadata amdhsa.kernels", f"{len(rows):,} kernels", f"up to {MAX_KERNELS:,}")
    kernels = tuple(_kernel(_Map(f"metadata kernel {index}", row)) for index, row in enumerate(rows))
    return Metadata((version[0], version[1]), root.value("amdhsa.target", str, default=""), kernels)


def _kernel(row: _Map) -> KernelMetadata:
    name = row.value(".name", str)
    row.where = f"metadata of kernel {name[:200]!r}"
    kernarg_bytes = row.integer(".kernarg_segment_size", most=MAX_KERNARG_BYTES)
    return KernelMetadata(
        name=name,
        symbol=row.value(".symbol", str),
        wave=row.integer(".wavefront_size"),
        kernarg_bytes=kernarg_bytes,
        kernarg_align=_power_of_two(row, ".kernarg_segment_align"),
        group_bytes=row.integer(".group_segment_fixed_size"),
        private_bytes=row.integer(".private_segment_fixed_size"),
        arguments=_arguments(row, kernarg_bytes),
        max_workgroup=row.integer(".max_flat_workgroup_size"),
        required_workgroup=row.triple(".reqd_workgroup_size"),
        has_uniform_workgroups=bool(row.integer(".uniform_work_group_size", default=0)),
        uses_dynamic_stack=row.value(".uses_dynamic_stack", bool, default=None),
        vgpr_count=row.integer(".vgpr_count"),
        sgpr_count=row.integer(".sgpr_count"),
        vgpr_spill_count=row.integer(".vgpr_spill_count", default=0),
        sgpr_spill_count=row.integer(".sgpr_spill_count", default=0),
        language=row.value(".language", str, default=""),
        kind=row.word(".kind", KERNEL_KINDS) or "normal",
        workgroup_hint=row.triple(".workgroup_size_hint"),
    )


def _power_of_two(row: _Map, key: str) -> int:
    value: int = row.integer(key, most=4096)
    if value == 0 or value & (value - 1):
        raise _malformed(f"{row.where} {key}", str(value), "a power of two up to 4096")
    return value


def _arguments(row: _Map, kernarg_bytes: int) -> tuple[Argument, ...]:
    found = []
    for index, raw in enumerate(row.value(".args", list, default=[])):
        found.append(_argument(_Map(f"{row.where} argument {index}", raw), kernarg_bytes))
    end = 0
    for argument in sorted(found, key=lambda argument: argument.offset):
        if argument.offset < end:
            seen = f"argument {argument.name!r} at {argument.offset}"
            raise _malformed(f"{row.where} .args", seen, f"at or behind {end}, the end of the one before")
        end = argument.offset + argument.size
    return tuple(found)


def _argument(row: _Map, kernarg_bytes: int) -> Argument:
    offset, size, kind = row.integer(".offset"), row.integer(".size"), row.value(".value_kind", str)
    if size == 0 or offset + size > kernarg_bytes:
        seen = f"offset {offset}, size {size}"
        raise _malformed(row.where, seen, f"inside the kernarg segment of {kernarg_bytes} bytes")
    known = VALUE_KINDS.get(kind)
    if known is not None and known.nbytes not in (None, size):
        raise _malformed(row.where, f"{kind} of {size} bytes", f"{known.nbytes} bytes")
    return Argument(
        name=row.value(".name", str, default=""),
        offset=offset,
        size=size,
        kind=kind,
        address_space=row.word(".address_space", ADDRESS_SPACES),
        access=row.word(".actual_access", ACCESSES),
        type_name=row.value(".type_name", str, default=""),
        declared_access=row.word(".access", ACCESSES),
        pointee_align=row.integer(".pointee_align") if ".pointee_align" in row.raw else None,
        is_const=row.value(".is_const", bool, default=False),
        is_restrict=row.value(".is_restrict", bool, default=False),
        is_volatile=row.value(".is_volatile", bool, default=False),
        is_pipe=row.value(".is_pipe", bool, default=False),
    )


_REQUIRED: Any = object()


class _Map:
    """A msgpack map whose values are asked for by key and type."""

    def __init__(self, where: str, raw: object) -> None:
        self.where = where
        if not isinstance(raw, dict):
            raise _malformed(where, type(raw).__name__, "a map")
        self.raw: Mapping[object, Any] = raw

    def value(self, key: str, kind: type, default: Any = _REQUIRED) -> Any:
        """The value of a key, which has exactly this type."""
        value = self.raw.get(key, default)
        if value is _REQUIRED:
            raise _malformed(f"{self.where} {key}", "nothing", f"a {kind.__name__}")
        if value is not default and type(value) is not kind:  # a bool is no integer here
            raise _malformed(f"{self.where} {key}", f"{type(value).__name__} {value!r}"[:200], f"a {kind.__name__}")
        return value

    def integer(self, key: str, *, most: int = U32, default: Any = _REQUIRED) -> int:
        """A non-negative integer."""
        value: int = self.value(key, int, default)
        if not 0 <= value <= most:
            raise _malformed(f"{self.where} {key}", str(value), f"0..{most}")
        return value

    def integers(self, key: str, count: int, default: Any = _REQUIRED) -> list[int] | None:
        """A list of this many non-negative 32-bit integers."""
        values: list[Any] | None = self.value(key, list, default)
        if values is None:
            return None
        if len(values) != count or any(type(v) is not int or not 0 <= v <= U32 for v in values):
            raise _malformed(f"{self.where} {key}", f"{values!r}"[:200], f"{count} integers")
        return values

    def triple(self, key: str) -> tuple[int, int, int] | None:
        """Three integers, or None where the key is absent."""
        values = self.integers(key, 3, default=None)
        return (values[0], values[1], values[2]) if values else None

    def word(self, key: str, allowed: frozenset[str]) -> str | None:
        """One of a list of words, or None where the key is absent."""
        value: str | None = self.value(key, str, default=None)
        if value is not None and value not in allowed:
            raise _malformed(f"{self.where} {key}", repr(value)[:200], " ".join(sorted(allowed)))
        return value


def _malformed(where: str, seen: str, allowed: str) -> CodeObjectError:
    return CodeObjectError(
        "RW0308",
        where=where,
        seen=seen,
        allowed=allowed,
        do="rebuild the object, or copy it again if it was damaged",
    )
