# SPDX-License-Identifier: Apache-2.0
"""Damage for code objects and bundles: at random, and where the file's own structure says that it hurts.

Each mutation takes bytes and a random generator and returns bytes; none knows a reader's limits. Structure-aware ones
find headers, tables, descriptors and notes in the undamaged object with Radiowave's reader.
"""

from __future__ import annotations

import copy
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import msgpack

from radiowave import elf as e

Mutation = Callable[[bytes, random.Random], bytes]
Field = tuple[int, int]  # file offset, bytes

_EHDR = (
    (4, 1),
    (5, 1),
    (7, 1),
    (8, 1),
    (16, 2),
    (18, 2),
    (24, 8),
    (32, 8),
    (40, 8),
    (48, 4),
    (52, 2),
    (54, 2),
    (56, 2),
)
_EHDR_END = ((58, 2), (60, 2), (62, 2))
_PHDR = ((0, 4), (4, 4), (8, 8), (16, 8), (32, 8), (40, 8), (48, 8))
_SHDR = ((0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 4), (44, 4), (48, 8), (56, 8))
_SYM = ((0, 4), (4, 1), (5, 1), (6, 2), (8, 8), (16, 8))
_RELA = ((0, 8), (8, 4), (12, 4), (16, 8))
_DESCRIPTOR = ((0, 4), (4, 4), (8, 4), (12, 4), (16, 8), (24, 8), (44, 4), (48, 4), (52, 4), (56, 2), (58, 2), (60, 4))
_EDGES = (0, 1, 2, 3, 7, 8, 16, 63, 64, 255, 256, 4095, 4096, 65535, 65536, 1 << 20, 1 << 31, 1 << 32, 1 << 40, 1 << 63)


def random_bytes(data: bytes, rng: random.Random) -> bytes:
    """A few bytes replaced."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def random_bit(data: bytes, rng: random.Random) -> bytes:
    """One bit flipped."""
    changed = bytearray(data)
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(data: bytes, rng: random.Random) -> bytes:
    """The end missing."""
    return data[: rng.randrange(len(data))]


def moved(data: bytes, rng: random.Random) -> bytes:
    """A range left out, doubled, zeroed, or put elsewhere."""
    start = rng.randrange(len(data))
    stop = min(len(data), start + rng.choice((1, 8, 64, 256, 4096)))
    piece, at = data[start:stop], rng.randrange(len(data))
    forms = (
        data[:start] + data[stop:],
        data[:stop] + piece + data[stop:],
        data[:start] + bytes(len(piece)) + data[stop:],
        data[:at] + piece + data[at + len(piece) :],
    )
    return rng.choice(forms)


def grown(data: bytes, rng: random.Random) -> bytes:
    """Zeros, noise, itself, or a magic behind it."""
    tails = (bytes(rng.randrange(5000)), rng.randbytes(rng.randrange(200)), data, b"CCOB", b"__CLANG_OFFLOAD_BUNDLE__")
    return data + rng.choice(tails)


def field(data: bytes, rng: random.Random) -> bytes:
    """One to three fields of its tables set to something."""
    fields = list(_fields(data))
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at, nbytes = rng.choice(fields)
        if at + nbytes <= len(changed):
            changed[at : at + nbytes] = _value(changed, at, nbytes, fields, rng)
    return bytes(changed)


def _value(changed: bytearray, at: int, nbytes: int, fields: list[Field], rng: random.Random) -> bytes:
    """An edge, a neighbour of what was there, the file's size, another field's value, or noise."""
    old = int.from_bytes(changed[at : at + nbytes], "little")
    other = rng.choice(fields)
    values = (
        rng.choice(_EDGES),
        rng.choice(_EDGES),
        -rng.choice(_EDGES),
        old + rng.choice((-8, -1, 1, 8, 64)),
        old << rng.choice((1, 8)),
        len(changed) + rng.choice((-64, -1, 0, 1)),
        int.from_bytes(changed[other[0] : sum(other)], "little"),
        rng.getrandbits(8 * nbytes),
    )
    return (rng.choice(values) & (1 << 8 * nbytes) - 1).to_bytes(nbytes, "little")


def rows(data: bytes, rng: random.Random) -> bytes:
    """Two rows of one table exchanged, or one written over the other."""
    tables = list(_tables(data))
    start, size, count, _ = rng.choice(tables)
    changed = bytearray(data)
    one, two = (start + size * rng.randrange(count) for _ in range(2))
    first, second = changed[one : one + size], changed[two : two + size]
    changed[two : two + size] = first
    if rng.random() < 0.5:
        changed[one : one + size] = second
    return bytes(changed)


def _tables(data: bytes) -> Iterator[tuple[int, int, int, tuple[Field, ...]]]:
    """Start, row size, rows and fields of every table with rows."""
    elf = e.Elf(data)
    header = e.EHDR.unpack_from(data)
    if elf.segments:
        yield header[5], e.PHDR.size, len(elf.segments), _PHDR
    yield header[6], e.SHDR.size, len(elf.sections), _SHDR
    for section in elf.sections:
        layout = {e.SHT_SYMTAB: _SYM, e.SHT_DYNSYM: _SYM, e.SHT_RELA: _RELA}.get(section.type)
        if layout and section.entry_bytes:
            yield section.offset, section.entry_bytes, section.nbytes // section.entry_bytes, layout


def _fields(data: bytes) -> Iterator[Field]:
    yield from _EHDR + _EHDR_END
    for start, size, count, layout in _tables(data):
        for row in range(count):
            yield from ((start + size * row + at, nbytes) for at, nbytes in layout)
    elf = e.Elf(data)
    for section in elf.sections:
        if section.type == e.SHT_NOTE:
            yield from ((section.offset + at, 4) for at in (0, 4, 8))
        if section.type == e.SHT_SYMTAB:
            yield from _descriptor_fields(elf, section)


def _descriptor_fields(elf: e.Elf, table: e.Section) -> Iterator[Field]:
    """Of every kernel descriptor: twice, since they are few and decide most."""
    for symbol in elf.symbols(table):
        if symbol.name.endswith(".kd") and symbol.section < len(elf.sections):
            section = elf.sections[symbol.section]
            start = section.offset + symbol.value - section.address
            yield from ((start + at, nbytes) for at, nbytes in _DESCRIPTOR * 2)


def document(data: bytes, rng: random.Random) -> bytes:
    """The metadata changed as a document, and its note moved to the file's end where it has room."""
    elf = e.Elf(data)
    tree = msgpack.unpackb(elf.notes()[0].payload)
    for _ in range(rng.choice((1, 1, 2, 4))):
        _change_node(tree, rng)
    return with_note(data, msgpack.packb(tree))


def _change_node(tree: Any, rng: random.Random) -> None:
    """Change one of all the places there are; most of them belong to arguments."""
    places = list(_places(tree))
    if places:
        _change_item(*rng.choice(places), rng)


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every map and list with each of its keys."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield node, key
        yield from _places(node[key])


_WORDS = ("", "x" * 20000, "\0", "\N{GRINNING FACE}", "hidden_heap_v1", "hidden_group_size_x", "dynamic_shared_pointer")
_OTHERS: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    1 << 20,
    (1 << 64) - 1,
    1.5,
    "",
    "by_value",
    b"\xff",
    [],
    {},
    [[[]]],
    {"": {}},
)


def _change_item(node: Any, key: Any, rng: random.Random) -> None:
    action, old = rng.randrange(6), node[key]
    if action == 0:
        del node[key]
    elif action == 1 and isinstance(node, list):
        node.extend([old] * rng.choice((1, 2, 300)))
    elif isinstance(old, int) and action < 5:
        node[key] = max(-(1 << 63), min((1 << 64) - 1, old + rng.choice((-64, -1, 1, 4, 8, 1 << 31, -old, 1 - old))))
    elif isinstance(old, str) and action < 5:
        node[key] = rng.choice((*_WORDS, old + ".kd", old.upper()))
    else:
        node[key] = copy.deepcopy(rng.choice(_OTHERS))  # a later change must not reach the list


def with_note(data: bytes, payload: bytes) -> bytes:
    """The object with another metadata note behind everything else."""
    note = e.NHDR.pack(7, len(payload), e.NT_AMDGPU_METADATA) + b"AMDGPU\0\0" + payload + bytes(-len(payload) % 4)
    elf, header = e.Elf(data), e.EHDR.unpack_from(data)
    changed = bytearray(data + note)
    for index, segment in enumerate(elf.segments):
        if segment.type == e.PT_NOTE:
            struct.pack_into("<Q", changed, header[5] + index * e.PHDR.size + 8, len(data))
            struct.pack_into("<Q", changed, header[5] + index * e.PHDR.size + 32, len(note))
    for section in elf.sections:
        if section.type == e.SHT_NOTE:
            struct.pack_into("<QQ", changed, header[6] + section.index * e.SHDR.size + 24, len(data), len(note))
    return bytes(changed)


def container_field(data: bytes, rng: random.Random) -> bytes:
    """A number in the first bytes of a bundle, compressed or not, set to something."""
    places = [(at, nbytes) for nbytes in (1, 2, 4, 8) for at in range(4, min(len(data), 320) - 8)]
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2))):
        at, nbytes = rng.choice(places)
        changed[at : at + nbytes] = _value(changed, at, nbytes, places, rng)
    return bytes(changed)


ANYWHERE: tuple[Mutation, ...] = (random_bytes, random_bit, cut, moved, grown)
OF_OBJECTS: tuple[Mutation, ...] = (*ANYWHERE, field, field, field, rows, document, document, document)
OF_RELOCATABLES: tuple[Mutation, ...] = (*ANYWHERE, field, field, field, rows, document)
OF_CONTAINERS: tuple[Mutation, ...] = (*ANYWHERE, container_field, container_field)
