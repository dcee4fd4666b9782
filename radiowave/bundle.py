# SPDX-License-Identifier: Apache-2.0
"""Clang offload bundles: which code objects a fat binary holds, and the one for a target.

Reads plain bundles, compressed ones (`compressed.py`), several back to back with padding between, and the section
`.hip_fatbin` of a host's ELF file, where HIP puts them. Where a bundle ends is computed from its own table and never
found by looking for the next magic, which may occur inside a payload. Does not read the code objects themselves;
`code_object.py` does.

Layout and ids: LLVM, `clang/docs/ClangOffloadBundler.rst`, "Bundled Binary File Layout", "Bundle Entry ID" and
"Target ID".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from radiowave import compressed
from radiowave import elf as e
from radiowave.compressed import MAX_UNPACKED_BYTES, damaged
from radiowave.errors import CodeObjectError
from radiowave.targets import check_target

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
FATBIN_SECTION = ".hip_fatbin"
PLAIN = "clang offload bundle"

_COUNT = struct.Struct("<Q")
_ENTRY = struct.Struct("<QQQ")  # offset, size, length of the id

# A library for every GPU of a generation has some dozens in each of some hundred bundles.
MAX_ENTRIES = 1 << 16
MAX_ID_BYTES = 1024

_E_MACHINE = slice(18, 20)
_NOT_ZERO = re.compile(rb"[^\0]")
# kind "-" triple "-" target id. Older clang leaves the environment of the triple out, newer writes it empty.
_AMDGPU_ID = re.compile(
    r"[a-z0-9]+-amdgcn-amd-amdhsa(-(?!gfx)[a-z0-9]*)?-(?P<target>gfx[0-9a-z-]*)(?P<features>(:[a-z]+[+-])*)"
)
_TARGET_ID = re.compile(r"(?P<target>[0-9a-z-]+)(?P<features>(:[a-z]+[+-])*)")


@dataclass(frozen=True)
class BundleEntry:
    """One device code object of a bundle, and what its id says about it.

    `target` is None where the id names no AMD GPU (SPIR-V, another vendor). `features` are as in the id, such as
    ("xnack-",); one that is not there may be on or off. `bundle` counts the bundles of the file from 0.
    """

    id: str
    target: str | None
    features: tuple[str, ...]
    data: bytes = field(repr=False)
    bundle: int = 0


def container_of(data: bytes) -> str | None:
    """What kind of container this is, in words; None for everything that is not one, code objects included."""
    if data.startswith(MAGIC):
        return PLAIN
    if data.startswith(compressed.MAGIC):
        return compressed.read_header(data).container
    if data.startswith(e.MAGIC) and _fatbin(data) is not None:
        return f"host ELF file with section {FATBIN_SECTION}"
    return None


def unbundle(data: bytes) -> tuple[BundleEntry, ...]:
    """The device code objects of an offload bundle, of several back to back, or of a host's ELF file with them inside.

    Entries for the host are left out. Raises `CodeObjectError` for anything that is not whole, and for zstd where this
    Python has no decompressor for it. Unpacks at most `MAX_UNPACKED_BYTES` (1 GiB) in all.
    """
    data = bytes(data)
    if len(data) > e.MAX_FILE_BYTES:
        raise _too_much("file", f"{len(data):,} bytes", f"up to {e.MAX_FILE_BYTES:,}")
    section = _fatbin(data) if data.startswith(e.MAGIC) else None
    if section is not None:
        data = section
    if not data.startswith((MAGIC, compressed.MAGIC)):
        seen = f"bytes {data[:4].hex(' ') or 'none'}"
        raise damaged("file offset 0", seen, f"an offload bundle, or an ELF file with section {FATBIN_SECTION}")
    return tuple(entry for entry in _entries(data) if entry.id.partition("-")[0] != "host")


def select(entries: Iterable[BundleEntry], target: str | None) -> BundleEntry:
    """The entry for a target id such as "gfx1201" or "gfx1010:xnack-"; without one, the only entry there is.

    A feature that only one of the two names fits either way. Raises `CodeObjectError` that lists what there is when
    none fits, or several do.
    """
    entries = tuple(entries)
    fitting = entries if target is None else tuple(entry for entry in entries if _fits(entry, *split_target(target)))
    if len(fitting) == 1:
        return fitting[0]
    where = "offload bundle" if target is None else f"offload bundle, target {target}"
    if not fitting:
        raise _unclear(where, _listed(entries), "a code object for the target", "name one that is there, or compile it")
    distinct = len({entry.id for entry in fitting}) > 1
    do = "name the target, with its features" if distinct else "take one out of radiowave.unbundle(data)"
    raise _unclear(where, f"{len(fitting)} code objects: {_listed(fitting)}", "one", do)


def split_target(target: str) -> tuple[str, tuple[str, ...]]:
    """Processor and features of a target id; `UnsupportedTarget` for a processor that is not on the list."""
    match = _TARGET_ID.fullmatch(target)
    check_target(match["target"] if match else target, where="target")
    assert match is not None  # whatever is on the list matches
    return match["target"], _features(match["features"])


def _fits(entry: BundleEntry, target: str, features: tuple[str, ...]) -> bool:
    wanted = {feature[:-1]: feature for feature in features}
    return entry.target == target and all(wanted.get(f[:-1], f) == f for f in entry.features)


def _features(text: str) -> tuple[str, ...]:
    return tuple(text.split(":")[1:])


def _listed(entries: tuple[BundleEntry, ...]) -> str:
    """Ids for a message, each once."""
    several = len({entry.bundle for entry in entries}) > 1
    names = [f"{entry.id} (bundle {entry.bundle})" if several else entry.id for entry in entries]
    shown = ", ".join(dict.fromkeys(names[:30]))
    return f"{shown} and {len(names) - 30} more" if len(names) > 30 else shown or "no device code object"


def _entries(data: bytes) -> Iterator[BundleEntry]:
    """The entries of every bundle in turn, those for the host included."""
    at, index, count, left = 0, 0, 0, MAX_UNPACKED_BYTES
    while at < len(data):
        if data.startswith(compressed.MAGIC, at):
            unpacked, at = compressed.unpack(data, at, left)
            left -= len(unpacked)
            entries = _whole_bundle(unpacked, index)
        else:
            entries, at = _bundle(data, at, index)
        count += len(entries)
        if count > MAX_ENTRIES:
            raise _too_much("bundles", f"more than {MAX_ENTRIES:,} entries", f"{MAX_ENTRIES:,}")
        yield from entries
        at, index = _behind_padding(data, at), index + 1


def _whole_bundle(data: bytes, index: int) -> list[BundleEntry]:
    """The entries of what was packed, which is one bundle and nothing else."""
    entries, end = _bundle(data, 0, index)
    if _behind_padding(data, end) != len(data):
        raise damaged(f"unpacked bundle {index}", f"more bytes behind its end at {end:#x}", "one bundle")
    return entries


def _behind_padding(data: bytes, at: int) -> int:
    """The next byte that is not zero, or the end."""
    found = _NOT_ZERO.search(data, at)
    return found.start() if found else len(data)


def _bundle(data: bytes, start: int, index: int) -> tuple[list[BundleEntry], int]:
    """The entries of the plain bundle at `start`, and where it ends."""
    where = f"offload bundle {index} at {start:#x}"
    if not data.startswith(MAGIC, start):
        raise damaged(where, f"bytes {data[start : start + 4].hex(' ')}", "a bundle's magic, or zeros up to the next")
    rows, end = _table(data, start, where)
    entries = []
    for offset, nbytes, name in sorted(rows):
        if nbytes and offset < end - start:
            raise damaged(where, f"entry {name!r} at {offset:#x}", f"at or behind {end - start:#x}")
        if nbytes and start + offset + nbytes > len(data):
            seen = f"entry {name!r} of {nbytes:,} bytes at {offset:#x}"
            raise damaged(where, seen, f"inside the {len(data) - start:,} bytes that are there")
        end = start + offset + nbytes if nbytes else end
        entries.append(_entry(name, data[start + offset : start + offset + nbytes], index))
    order = {name: place for place, (_, _, name) in enumerate(rows)}
    return sorted(entries, key=lambda entry: order[entry.id]), end


def _table(data: bytes, start: int, where: str) -> tuple[list[tuple[int, int, str]], int]:
    """Offset, size and id of each entry, and where the table ends."""
    at = start + len(MAGIC) + _COUNT.size
    (count,) = _COUNT.unpack(_take(data, at - _COUNT.size, _COUNT.size, where))
    if not 0 < count <= MAX_ENTRIES:
        raise damaged(where, f"{count:,} entries", f"1..{MAX_ENTRIES:,}")
    rows: list[tuple[int, int, str]] = []
    for _ in range(count):
        offset, nbytes, id_bytes = _ENTRY.unpack(_take(data, at, _ENTRY.size, where))
        if id_bytes > MAX_ID_BYTES:
            raise damaged(where, f"an entry id of {id_bytes:,} bytes", f"up to {MAX_ID_BYTES}")
        name = _take(data, at + _ENTRY.size, id_bytes, where).decode("utf-8", errors="backslashreplace")
        at += _ENTRY.size + id_bytes
        rows.append((offset, nbytes, name))
    if len({name for _, _, name in rows}) != count:
        raise damaged(where, "two entries with one id", "ids that differ")
    return rows, at


def _take(data: bytes, at: int, nbytes: int, where: str) -> bytes:
    if at + nbytes > len(data):
        raise damaged(where, f"a table up to {at + nbytes:#x}", f"inside the file of {len(data):#x} bytes")
    return data[at : at + nbytes]


def _entry(name: str, data: bytes, index: int) -> BundleEntry:
    match = _AMDGPU_ID.fullmatch(name)
    if match is None:
        return BundleEntry(name, None, (), data, index)
    return BundleEntry(name, match["target"], _features(match["features"]), data, index)


def _fatbin(data: bytes) -> bytes | None:
    """The bundles inside a host's ELF file; None for an AMDGPU object and for a host file without any."""
    if data[_E_MACHINE] == e.EM_AMDGPU.to_bytes(2, "little"):
        return None
    elf = e.Elf(data)
    section = next((s for s in elf.sections if s.name == FATBIN_SECTION and s.type != e.SHT_NOBITS), None)
    return None if section is None else elf.section_bytes(section)


def _too_much(where: str, seen: str, allowed: str) -> CodeObjectError:
    do = "take the code object of one target out of it with clang-offload-bundler --unbundle"
    return CodeObjectError("RW0313", where=where, seen=seen, allowed=allowed, do=do)


def _unclear(where: str, seen: str, allowed: str, do: str) -> CodeObjectError:
    return CodeObjectError("RW0317", where=where, seen=seen, allowed=allowed, do=do)
