# SPDX-License-Identifier: Apache-2.0
"""Linked objects with one place changed: in headers, symbols, descriptors and metadata."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import msgpack

from radiowave import CodeObject
from radiowave import elf as e


def header_field(offset: int, layout: str, value: int) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        changed = bytearray(data)
        struct.pack_into(layout, changed, offset, value)
        return bytes(changed)

    return change


def symbol_row(data: bytes, name: str) -> int:
    elf = e.Elf(data)
    table = next(s for s in elf.sections if s.type == e.SHT_SYMTAB)
    return table.offset + [s.name for s in elf.symbols(table)].index(name) * e.SYM.size


def descriptor_field(at: int, layout: str, value: int) -> Callable[[bytes], bytes]:
    """Change a field of kernel one's descriptor, which lies in the first segment: address equals offset."""

    def change(data: bytes) -> bytes:
        return header_field(CodeObject.parse(data).kernel("one").descriptor_va + at, layout, value)(data)

    return change


def symbol_field(name: str, at: int, layout: str, value: int) -> Callable[[bytes], bytes]:
    return lambda data: header_field(symbol_row(data, name) + at, layout, value)(data)


def segment_field(index: int, at: int, layout: str, value: int) -> Callable[[bytes], bytes]:
    return header_field(e.EHDR.size + index * e.PHDR.size + at, layout, value)


def with_metadata(data: bytes, edit: Callable[[dict[str, Any]], None]) -> bytes:
    """The object with another metadata note, which stands at the file's end."""
    elf = e.Elf(data)
    document: dict[str, Any] = msgpack.unpackb(elf.notes()[0].payload)
    edit(document)
    return with_note(data, msgpack.packb(document))


def with_note(data: bytes, payload: bytes) -> bytes:
    elf = e.Elf(data)
    index = next(i for i, segment in enumerate(elf.segments) if segment.type == e.PT_NOTE)
    note = e.NHDR.pack(7, len(payload), e.NT_AMDGPU_METADATA) + b"AMDGPU\0\0" + payload + bytes(-len(payload) % 4)
    moved = segment_field(index, 8, "<Q", len(data))(data)
    return segment_field(index, 32, "<Q", len(note))(moved) + note


def edit_kernel(**changes: Any) -> Callable[[dict[str, Any]], None]:
    def edit(document: dict[str, Any]) -> None:
        for key, value in changes.items():
            document["amdhsa.kernels"][0][f".{key}"] = value

    return edit


def edit_argument(index: int, **changes: Any) -> Callable[[dict[str, Any]], None]:
    def edit(document: dict[str, Any]) -> None:
        for key, value in changes.items():
            document["amdhsa.kernels"][0][".args"][index][f".{key}"] = value

    return edit


def both(*edits: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    def edit(document: dict[str, Any]) -> None:
        for one in edits:
            one(document)

    return edit


def repeat_kernel(times: int) -> Callable[[dict[str, Any]], None]:
    def edit(document: dict[str, Any]) -> None:
        first = document["amdhsa.kernels"][0]
        document["amdhsa.kernels"] = [{**first, ".name": f"k{index}"} for index in range(times)]

    return edit
