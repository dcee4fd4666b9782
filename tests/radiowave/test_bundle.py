# SPDX-License-Identifier: Apache-2.0
"""Offload bundles: what is in them, the one for a target, and damage of every kind."""

from __future__ import annotations

import random
import struct
import sys
import tracemalloc
import types
import zlib
from collections.abc import Callable
from typing import Any

import pytest
import zstandard
from redline_fuzz.bundles import HOST, bundle, compress, device_id, host_elf

from radiowave import CodeObject, CodeObjectError, UnsupportedTarget, unbundle
from radiowave import bundle as reader
from radiowave.compressed import read_header

ONE, TWO = device_id("gfx1201"), device_id("gfx1010:xnack-")
# The magics stand in payloads too. Bytes that do not compress, so that they also stand in the compressed ones.
NOISE = random.Random(11).randbytes(3000)
TRAP = NOISE[:1500] + b"CCOB\x03\x00\x01\x00__CLANG_OFFLOAD_BUNDLE__" + NOISE[1500:]

Pack = Callable[[bytes], bytes]
PACKERS: dict[str, Pack] = {
    "plain": lambda data: data,
    **{
        f"v{version} {method}": lambda data, v=version, m=method: compress(data, version=v, method=m)  # type: ignore[misc]
        for version in (1, 2, 3)
        for method in ("zlib", "zstd")
    },
}


@pytest.fixture(params=PACKERS, ids=list(PACKERS))
def pack(request: pytest.FixtureRequest) -> Pack:
    """Every way to write a bundle."""
    return PACKERS[request.param]


def test_entries(pack: Pack) -> None:
    """Device entries in the table's order, with their bytes; the host's is left out."""
    found = unbundle(pack(bundle([(ONE, b"first" + TRAP), (TWO, b"second")])))
    assert [(entry.id, entry.target, entry.features, entry.bundle) for entry in found] == [
        (ONE, "gfx1201", (), 0),
        (TWO, "gfx1010", ("xnack-",), 0),
    ]
    assert [entry.data for entry in found] == [b"first" + TRAP, b"second"]


@pytest.mark.parametrize("padding", [0, 1, 4096])
def test_back_to_back(pack: Pack, padding: int) -> None:
    """Case 51: a bundle ends where its own table or header says, not at the next magic; zeros may follow it."""
    whole = pack(bundle([(ONE, TRAP)])) + bytes(padding) + pack(bundle([(TWO, b"second")])) + bytes(padding)
    assert [(e.id, e.data, e.bundle) for e in unbundle(whole)] == [(ONE, TRAP, 0), (TWO, b"second", 1)]


def test_stored_payload_with_the_magic() -> None:
    """Case 51 again, with the magic in the clear inside a compressed payload."""
    packed = compress(bundle([(ONE, TRAP)]), version=2, method="zlib", level=0)
    assert packed.count(b"CCOB") == 2
    assert [e.data for e in unbundle(packed + packed)] == [TRAP, TRAP]


def test_sixty_four_bundles() -> None:
    """Case 51: as in ROCm's libraries, one after another, each kind of container among them."""
    kinds = list(PACKERS.values())
    parts = [kinds[n % len(kinds)](bundle([(ONE, b"%d" % n)])) for n in range(64)]
    assert [e.data for e in unbundle(b"".join(parts))] == [b"%d" % n for n in range(64)]


@pytest.mark.parametrize(
    ("name", "target", "features"),
    [
        ("hipv4-amdgcn-amd-amdhsa--gfx1201", "gfx1201", ()),
        ("hip-amdgcn-amd-amdhsa-gfx1030", "gfx1030", ()),
        ("hip-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", "gfx90a", ("sramecc+", "xnack-")),
        ("hipv4-amdgcn-amd-amdhsa-unknown-gfx1100", "gfx1100", ()),
        ("hipv4-amdgcn-amd-amdhsa--gfx10-3-generic", "gfx10-3-generic", ()),
        ("openmp-amdgcn-amd-amdhsa--gfx1151", "gfx1151", ()),
        ("hip-spirv64-amd-amdhsa--amdgcnspirv", None, ()),
        ("openmp-nvptx64-nvidia-cuda--sm_70", None, ()),
        ("hipv4-amdgcn-amd-amdhsa--gfx1201:xnack", None, ()),
        ("\udcff not an id", None, ()),
    ],
)
def test_ids(name: str, target: str | None, features: tuple[str, ...]) -> None:
    """Kinds, triples with and without an environment, features; an id that names no AMD GPU has no target."""
    raw = name.encode("utf-8", "surrogateescape")
    data = bundle([("x" * len(raw), b"code")]).replace(b"x" * len(raw), raw)
    (entry,) = unbundle(data)
    assert (entry.target, entry.features, entry.data) == (target, features, b"code")


def test_host_elf(pack: Pack) -> None:
    """HIP puts its bundles into .hip_fatbin of the program or library."""
    data = host_elf(pack(bundle([(ONE, b"a")])) + bytes(100) + pack(bundle([(ONE, b"b")])))
    assert [(e.data, e.bundle) for e in unbundle(data)] == [(b"a", 0), (b"b", 1)]


def test_header_of_the_report() -> None:
    """Case 11 (a): the bytes of the report, field by field."""
    raw = bytes.fromhex("43434f42 0300 0100 4b0d000000000000 d02e000000000000 8877665544332211 28b52ffd")
    header = read_header(raw)
    assert (header.version, header.method, header.header_bytes) == (3, 1, 0x20)
    assert (header.total_bytes, header.unpacked_bytes, header.hash) == (0xD4B, 0x2ED0, 0x1122334455667788)
    assert raw[header.header_bytes :] == bytes.fromhex("28b52ffd")


@pytest.mark.parametrize(("version", "nbytes"), [(1, 20), (2, 24), (3, 32)])
def test_header_sizes(version: int, nbytes: int) -> None:
    """Version 1 states no total size; version 3 has wider fields."""
    packed = compress(b"bundle", version=version)
    header = read_header(b"before" + packed, 6)
    assert (header.header_bytes, header.unpacked_bytes) == (nbytes, 6)
    assert header.total_bytes == (None if version == 1 else len(packed))


def test_without_zstd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 11 (b): the error names the container and what to do; zlib still works."""
    plain = bundle([(ONE, b"code")])
    packed = compress(plain)
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(CodeObjectError, match=r"RW0316 compressed clang offload bundle \(CCOB v3, zstd\).*pip install"):
        unbundle(packed)
    assert unbundle(compress(plain, method="zlib"))[0].data == b"code"
    with pytest.raises(CodeObjectError, match="or compile with --no-offload-compress"):
        CodeObject.read(packed, "gfx1201")


def test_zstd_of_the_standard_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.14's module comes first; its decompressor needs no second object."""
    packed = compress(bundle([(ONE, b"code")]))
    standard: Any = types.ModuleType("compression.zstd")
    standard.ZstdDecompressor = lambda: zstandard.ZstdDecompressor().decompressobj()
    standard.ZstdError = zstandard.ZstdError
    monkeypatch.setitem(sys.modules, "compression", types.ModuleType("compression"))
    monkeypatch.setitem(sys.modules, "compression.zstd", standard)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert unbundle(packed)[0].data == b"code"


def test_plain_object_is_read_as_it_is(globals_object: bytes) -> None:
    """Case 11 (c): byte for byte, with and without its target's name."""
    assert CodeObject.read(globals_object).data == globals_object
    assert CodeObject.read(globals_object, "gfx1201") == CodeObject.parse(globals_object)


def test_object_of_a_bundle(pack: Pack, globals_object: bytes, saxpy: dict[tuple[str, int], bytes]) -> None:
    """The object for the target, byte for byte; without a target only when there is but one."""
    other = saxpy["gfx1100", 32]
    two = pack(bundle([(ONE, globals_object), (device_id("gfx1100"), other)]))
    assert CodeObject.read(two, "gfx1201").data == globals_object
    assert CodeObject.read(two, "gfx1100").data == other
    assert CodeObject.read(pack(bundle([(ONE, globals_object)]))).data == globals_object
    with pytest.raises(CodeObjectError, match=f"RW0317 .*2 code objects: {ONE}, .*gfx1100; .*name the target"):
        CodeObject.read(two)
    with pytest.raises(CodeObjectError, match=f"RW0317 offload bundle, target gfx1030: {ONE}, "):
        CodeObject.read(two, "gfx1030")
    with pytest.raises(UnsupportedTarget, match="RW0201 target: target 'gfx1250'"):
        CodeObject.read(two, "gfx1250")


def test_several_objects_for_one_target(globals_object: bytes) -> None:
    """Two translation units have one id: the places are listed, nothing is chosen."""
    whole = bundle([(ONE, globals_object)]) * 2
    with pytest.raises(CodeObjectError, match=r"gfx1201 \(bundle 0\), .*gfx1201 \(bundle 1\); .*radiowave.unbundle"):
        CodeObject.read(whole, "gfx1201")


@pytest.mark.parametrize(
    ("target", "there", "chosen"),
    [
        ("gfx1010", ["gfx1010"], 0),
        ("gfx1010", ["gfx1010:xnack-"], 0),
        ("gfx1010:xnack-", ["gfx1010"], 0),
        ("gfx1010:xnack-", ["gfx1010:xnack+", "gfx1010:xnack-"], 1),
        ("gfx1010:xnack+", ["gfx1010:xnack-"], None),
        ("gfx1010", ["gfx1010:xnack+", "gfx1010:xnack-"], None),
        ("gfx1011", ["gfx1010"], None),
    ],
)
def test_features_of_a_target_id(target: str, there: list[str], chosen: int | None) -> None:
    """A feature that is not named may be on or off; two that are named must be the same."""
    entries = unbundle(bundle([(device_id(name), name.encode()) for name in there]))
    if chosen is not None:
        assert reader.select(entries, target) is entries[chosen]
        return
    with pytest.raises(CodeObjectError, match="RW0317"):
        reader.select(entries, target)


@pytest.mark.parametrize("target", ["gfx1201 ", "gfx1201:", "", "gfx12-generic", "gfx1201:xnack", "GFX1201"])
def test_names_that_are_no_target(target: str) -> None:
    """Checked against the list, never repaired."""
    with pytest.raises(UnsupportedTarget, match="RW0201"):
        reader.select(unbundle(bundle([(ONE, b"")])), target)


def test_entry_that_is_another_object(globals_object: bytes) -> None:
    """An id and the ELF header that say different things: both names in the message."""
    wrong = bundle([(device_id("gfx1151"), globals_object)])
    with pytest.raises(CodeObjectError, match="RW0317 entry .*gfx1151: gfx1201; allowed: gfx1151"):
        CodeObject.read(wrong)


def test_bundle_without_device_objects() -> None:
    """Host entries alone hold nothing to load."""
    assert unbundle(bundle([])) == ()
    with pytest.raises(CodeObjectError, match="RW0317 offload bundle: no device code object"):
        CodeObject.read(bundle([]))


def _put(at: int, layout: str, value: int) -> Pack:
    def change(data: bytes) -> bytes:
        changed = bytearray(data)
        struct.pack_into(layout, changed, at, value)
        return bytes(changed)

    return change


# Where the fields of the second table row of `bundle([(ONE, code), (TWO, code)])` stand.
ROW = 32 + 24 + len(HOST)
NEXT = ROW + 24 + len(ONE)

DAMAGED: list[tuple[str, Pack, str]] = [
    ("empty", lambda data: b"", "bytes none"),
    ("text", lambda data: b"# __CLANG_OFFLOAD_BUNDLE____START__ host", "bytes 23 20 5f 5f"),
    ("no entries", _put(24, "<Q", 0), "0 entries; allowed: 1..65,536"),
    ("too many entries", _put(24, "<Q", 1 << 60), "1,152,921,504,606,846,976 entries"),
    ("more entries than table", _put(24, "<Q", 4000), "inside the file of|of 0 bytes at|id of|two entries"),
    ("long id", _put(ROW + 16, "<Q", 1 << 40), "an entry id of 1,099,511,627,776 bytes; allowed: up to 1024"),
    ("entry in the table", _put(ROW, "<Q", 40), f"entry '{ONE}' at 0x28; allowed: at or behind"),
    ("entry past the end", _put(ROW + 8, "<Q", 1 << 62), "inside the 8,"),
    ("entries overlap", _put(NEXT, "<Q", 4097), f"entry '{TWO}' at 0x1001; allowed: at or behind 0x1004"),
    ("one id twice", lambda data: bundle([(ONE, b"1"), (ONE, b"2")]), "two entries with one id"),
    ("garbage behind it", lambda data: data + b"\0\0garbage", "bytes 67 61 72 62"),
    ("magic behind it", lambda data: data + b"CCOB", "4 bytes; allowed: a header of at least 8"),
    ("version 4", lambda data: b"CCOB\x04" + bytes(40), "CCOB version 4; allowed: versions 1, 2 and 3"),
    ("header cut", lambda data: compress(data)[:31], "31 bytes; allowed: a header of 32"),
    ("method 2", lambda data: compress(data, method_number=2), "compression method 2; allowed: 0 (zlib) or 1 (zstd)"),
    ("wrong method", lambda data: compress(data, method="zlib", method_number=1), "a whole compressed stream"),
    ("total too small", lambda data: compress(data, total=31), "a total of 31 bytes"),
    ("total too large", lambda data: compress(data, total=1 << 40), "up to the"),
    ("total cuts the stream", lambda data: compress(data, total=len(compress(data)) - 1), "stream cut after"),
    ("total past the stream", lambda data: compress(data, total=len(compress(data)) + 9) + bytes(9), "9 bytes early"),
    ("unpacks to more", lambda data: compress(data, unpacked=100), "more than 100 unpacked bytes"),
    ("unpacks to less", lambda data: compress(data, unpacked=9000), "8,199 unpacked bytes; allowed: 9,000"),
    ("hash", lambda data: compress(data, hash=5), "another hash; allowed: MD5 that begins as 0x0000000000000005"),
    ("two bundles in one", lambda data: compress(data + data), "more bytes behind its end at 0x2007"),
    ("packed twice", lambda data: compress(compress(data)), "unpacked|bytes 43 43 4f 42"),
    ("zlib cut", lambda data: compress(data, version=1, method="zlib")[:-5], "stream cut after"),
    ("zstd damaged", lambda data: compress(data)[:40] + b"\xff" * 20 + compress(data)[60:], "ZstdError"),
    ("zlib damaged", lambda data: compress(data, method="zlib")[:-1] + b"\xff", "error: Error -3"),
]


@pytest.mark.parametrize(("damage", "words"), [row[1:] for row in DAMAGED], ids=[row[0] for row in DAMAGED])
def test_damage(damage: Pack, words: str) -> None:
    """Each fault says where, what was seen and what is allowed."""
    damaged = damage(bundle([(ONE, b"code"), (TWO, b"more of")]))
    with pytest.raises(CodeObjectError) as caught:
        unbundle(damaged)
    assert caught.value.code == "RW0315"
    assert any(part in str(caught.value) for part in words.split("|"))


def test_every_truncation_is_refused(pack: Pack) -> None:
    """Case 11 (d): no prefix of a bundle is a bundle, nor of two in a row but the first alone."""
    first = pack(bundle([(ONE, NOISE[:200])], align=64))
    unbundle(first + first)
    for length in set(range(2 * len(first))) - {len(first)}:
        with pytest.raises(CodeObjectError):
            unbundle((first + first)[:length])


def test_bomb_is_refused_by_its_header() -> None:
    """More than a file may unpack to: refused before anything is unpacked, whatever the stream holds."""
    with pytest.raises(CodeObjectError, match=r"RW0313 .*1,073,741,825 bytes unpacked; allowed: 1,073,741,824"):
        unbundle(compress(b"", unpacked=(1 << 30) + 1))


@pytest.mark.parametrize("method", ["zlib", "zstd"])
def test_bomb_that_hides_its_size(method: str) -> None:
    """128 MiB of zeros behind a header that says 100 bytes: stopped near what one step may bring, in little memory."""
    bomb = compress(bytes(128 << 20), method=method, unpacked=100)
    assert len(bomb) < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(CodeObjectError, match="more than 100 unpacked bytes"):
            unbundle(bomb)
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()


def test_one_limit_for_all_bundles_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small bombs are one large one."""
    packed = compress(bundle([(ONE, bytes(10_000))]))
    monkeypatch.setattr(reader, "MAX_UNPACKED_BYTES", 70_000)
    assert len(unbundle(packed * 4)) == 4
    with pytest.raises(CodeObjectError, match="RW0313"):
        unbundle(packed * 6)


def test_many_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries are counted over all bundles of a file."""
    monkeypatch.setattr(reader, "MAX_ENTRIES", 10)
    one = bundle([(ONE, b"")])
    assert len(unbundle(one * 5)) == 5
    with pytest.raises(CodeObjectError, match="RW0313 bundles: more than 10 entries"):
        unbundle(one * 6)


def test_zlib_checks_its_own_sum() -> None:
    """The reader of zlib is the one of the standard library; its errors come out as ours."""
    packed = bytearray(compress(bundle([(ONE, b"code")]), method="zlib"))
    packed[-4] ^= 1
    with pytest.raises(zlib.error):
        zlib.decompress(bytes(packed[32:]))
    with pytest.raises(CodeObjectError, match="RW0315 compressed clang offload bundle"):
        unbundle(bytes(packed))
