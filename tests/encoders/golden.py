# SPDX-License-Identifier: Apache-2.0
"""What the tables must give, from `tests/answers/pm4`, in the shape that the tests compare.

`answers`, `facts` and `named_values` come from the files alone. `emitted`, `declared` and `declared_values` come from a
table: the shipped one, or one with a constant changed. Nothing here knows a constant of its own, but for names of files
and the numbers of the example.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from redline.encoders.dispatch import DispatchWords, operation
from redline.encoders.emit import FENCE_DRAIN, FENCE_ZERO, RELOC, emit_program, max_dwords, max_relocs
from redline.encoders.stream import Pm4Stream
from redline.encoders.table import FamilyTable, Word

PM4 = Path(__file__).parent.parent / "answers" / "pm4"

# The target of `launches.json` that stands for each family.
EXAMPLES = {
    "gfx10.1": "gfx1010",
    "gfx10.3": "gfx1030",
    "gfx11.0": "gfx1100",
    "gfx11.5": "gfx1151",
    "gfx12.0": "gfx1201",
}
ENTRY = {"a": 0x7F0012345600, "b": 0x7F0012349A00}
KERNARG = {"a": 0x7F00ABCD0040, "b": 0x7F00ABCD0140}
IB_VA = 0x7F00CAFE1000
FENCE_VA = 0x7F00DEAD0008

Words = list[int]
Bits = dict[str, tuple[int, int]]


@cache
def load(name: str) -> Any:
    """One file of answers."""
    return json.loads((PM4 / f"{name}.json").read_text())


def hexes(text: str) -> Words:
    """Words written in hexadecimal, separated by blanks."""
    return [int(word, 16) for word in text.split()]


def listed(words: list[str]) -> Words:
    """Words of a JSON list."""
    return [int(word, 16) for word in words]


def of_family(rows: dict[str, Any], family: str) -> Any:
    """The row whose key lists this family."""
    return next(row for families, row in rows.items() if family in families.split())


def kernel(target: str, which: str = "a", *, wave: int = 32) -> DispatchWords:
    """Kernel A or B of the example, as LLVM describes it for this target."""
    row = load("launches")["targets"][target]
    rsrc1, rsrc2, rsrc3 = listed(row["rsrc"])
    properties = int(row["properties"], 16)
    return DispatchWords(
        entry=ENTRY[which],
        rsrc1=rsrc1,
        rsrc2=rsrc2,
        rsrc3=rsrc3,
        properties=properties if wave == 32 else properties & ~0x400,
        group_bytes=1024,
        private_bytes=0,
        kernarg=KERNARG[which],
    )


def example_stream(target: str, table: FamilyTable | None = None, *, elide: bool = False) -> Words:
    """The canonical stream: entry, A, barrier, B, release."""
    stream = Pm4Stream(table or target, elide=elide)
    stream.acquire_system()
    stream.dispatch(kernel(target, "a"), global_size=(1024, 1, 1), block=(256, 1, 1))
    stream.barrier()
    stream.dispatch(kernel(target, "b"), global_size=(1024, 1, 1), block=(256, 1, 1))
    stream.release_system()
    return [int(word) for word in stream.words]


def one_launch(target: str, table: FamilyTable, *, size: int, wave: int) -> Words:
    """Kernel A alone."""
    stream = Pm4Stream(table)
    stream.dispatch(kernel(target, wave=wave), global_size=(size,), block=(256,))
    return [int(word) for word in stream.words]


def fence_words(table: FamilyTable) -> Words:
    """The fence word's zero and two drains."""
    rows = [operation(FENCE_ZERO, fence=FENCE_VA)]
    rows += [operation(FENCE_DRAIN, fence=FENCE_VA, value=k) for k in (1, 2)]
    ops = np.array(rows)
    words, relocs = np.zeros(max_dwords(ops), np.uint32), np.zeros(max_relocs(ops), RELOC)
    count, _ = emit_program(ops, words, relocs, table.family(), False)
    return [int(word) for word in words[: int(count)]]


def emitted(table: FamilyTable, family: str) -> dict[str, Words]:
    """Every word that this table decides, for the example target of the family."""
    target = EXAMPLES[family]
    launches = {
        f"{size} work-items, wave{wave}": one_launch(target, table, size=size, wave=wave)
        for size in (1024, 1000)
        for wave in (32, 64)
    }
    vmem_only = Pm4Stream(table)
    vmem_only.barrier(vmem_only=True)
    gcr = [table.acquire_gcr(k=k, v=v) for k, v in ((True, False), (False, True), (True, True))]
    ib = table.form(
        "indirect_buffer",
        IB_BASE_LO=(IB_VA & 0xFFFFFFFF) >> 2,
        IB_BASE_HI=IB_VA >> 32,
        IB_SIZE=load("launches")["targets"][target]["dwords"],
    )
    return {
        "stream": example_stream(target, table),
        "elided stream": example_stream(target, table, elide=True),
        **launches,
        "vmem-only barrier": [int(word) for word in vmem_only.words],
        "fence": fence_words(table),
        "gcr": [table.entry_gcr, *gcr, table.release_gcr],
        "indirect buffer": ib,
        "pad": [table.packet["NOP"].pad()],
        **further_forms(table, target),
    }


def further_forms(table: FamilyTable, target: str) -> dict[str, Words]:
    """One call of the builder for each row of `forms.json`."""

    def built(call: Callable[[Pm4Stream], None]) -> Words:
        stream = Pm4Stream(table)
        call(stream)
        return [int(word) for word in stream.words]

    calls: dict[str, Callable[[Pm4Stream], None]] = {
        "timestamp_top": lambda s: s.timestamp_top(FENCE_VA),
        "timestamp_bottom": lambda s: s.timestamp_bottom(FENCE_VA),
        "release_fence 100000002": lambda s: s.release_fence(FENCE_VA, 0x100000002),
        "wait_memory >= 7": lambda s: s.wait_memory(FENCE_VA, 7),
        "wait_memory == 7": lambda s: s.wait_memory(FENCE_VA, 7, "=="),
        "wait_memory64 >= 100000002": lambda s: s.wait_memory64(FENCE_VA, 0x100000002),
        "write_data": lambda s: s.write_data(FENCE_VA, [0x11111111, 0x22222222]),
        "copy_data 32": lambda s: s.copy_data(IB_VA, FENCE_VA),
        "copy_data 64": lambda s: s.copy_data(IB_VA, FENCE_VA, bits=64),
        "dispatch_indirect": lambda s: s.dispatch_indirect(kernel(target), args_va=FENCE_VA + 8, block=256),
        "nop 1": lambda s: s.nop(1),
        "nop 2": lambda s: s.nop(2),
        "nop 5": lambda s: s.nop(5),
        "chain 92": lambda s: s.chain(IB_VA, 92),
    }
    return {name: built(call) for name, call in calls.items()}


def answers(family: str) -> dict[str, Words]:
    """The same from the files."""
    rows, target = load("launches"), EXAMPLES[family]
    row, gcr, initiator = rows["targets"][target], of_family(rows["gcr"], family), rows["initiator"]
    drain, acquire = hexes(rows["drain"]), hexes(rows["entry"])

    def setup(which: str) -> Words:
        parts = (rows["threads"], rows["program"][which], row["resources"], rows["limits"], row["rsrc3"])
        return hexes(" ".join((*parts, row["user"][which])))

    def go(size: int, wave: int) -> Words:
        partial = size % 256
        name = f"wave{wave}{'_work_items' if partial else ''}"
        return [*hexes(rows["work_items_1000" if partial else "groups"]), int(initiator[name], 16)]

    def fenced(name: str) -> Words:
        return [*drain, *acquire, int(gcr[name], 16)]

    head = [*acquire, int(gcr["entry"], 16), *setup("a"), *go(1024, 32), *fenced("kv")]
    tail = [*go(1024, 32), *fenced("release")]
    return {
        "stream": head + setup("b") + tail,
        "elided stream": head + hexes(row["delta_b"]) + tail,
        **{f"{size} work-items, wave{wave}": setup("a") + go(size, wave) for size in (1024, 1000) for wave in (32, 64)},
        "vmem-only barrier": fenced("v"),
        "fence": hexes(" ".join([rows["fence"]["zero"], *rows["fence"]["drain"].values()])),
        "gcr": [int(gcr[name], 16) for name in ("entry", "k", "v", "kv", "release")],
        "indirect buffer": hexes(f"{rows['ib']} {row['ib_control']}"),
        "pad": listed(load("snippets")["snippets"]["nop_single_dword_pad"]["hex"]),
        **{
            name: (setup("a") if name == "dispatch_indirect" else [])
            + hexes(row if isinstance(row, str) else of_family(row, family))
            for name, row in load("forms")["forms"].items()
        },
    }


def declared(table: FamilyTable) -> dict[str, Any]:
    """What a table says about bits, offsets, opcodes and named values."""
    registers = {item.name: (item.offset, bits_of(item)) for item in table.registers}
    packets = {
        item.name: (item.opcode, item.shader_type, item.tail, [(word.name, bits_of(word)) for word in item.words])
        for item in table.packets
    }
    return {
        "targets": list(table.targets),
        "partial_flush_is_trusted": table.partial_flush_is_trusted,
        "l2_kinds": list(table.l2_kinds),
        "processor_reads_past_l2": table.processor_reads_past_l2,
        "private_segment_buffer": table.has_private_segment_buffer,
        "registers": registers,
        "queue-owned": dict(table.queue_owned),
        "not needed": dict(table.not_needed),
        "packets": packets,
        table.gcr.name: bits_of(table.gcr),
        table.initiator.name: bits_of(table.initiator),
    }


def declared_values(table: FamilyTable) -> dict[str, dict[str, int]]:
    """The named values of every field, by "PACKET.FIELD"."""
    words = [(item.name, word) for item in table.packets for word in item.words]
    words += [("REGISTER", word) for word in (*table.registers, table.gcr, table.initiator)]
    return {f"{where}.{item.name}": dict(item.names) for where, word in words for item in word.fields if item.names}


def facts(family: str) -> dict[str, Any]:
    """The same from the files."""
    registers, fields = load("registers"), load("fields")

    def offset(name: str) -> int:
        return int(registers["registers"][name][family], 16)

    def bits(name: str) -> Bits:
        key = "COMPUTE_USER_DATA" if name.startswith("COMPUTE_USER_DATA_") else name
        return _parse(of_family(fields["words"][key], family))

    def word(name: str, text: Any) -> Bits:
        return bits(name) if text == "words" else _parse(text if isinstance(text, str) else of_family(text, family))

    return {
        **fields["families"][family],
        "registers": {
            f"COMPUTE_{name}": (offset(name), bits(f"COMPUTE_{name}")) for name in registers["launch_writes"]
        },
        "queue-owned": {
            f"COMPUTE_{name}": offset(name)
            for name in registers["launch_must_not_write"]
            if family in registers["registers"][name]
        },
        "not needed": {f"COMPUTE_{name}": offset(name) for name in registers["launch_may_zero"]},
        "packets": {
            name: (
                int(row["opcode"], 16),
                row.get("shader_type", 0),
                row.get("tail", ""),
                [(item, word(item, text)) for item, text in row["words"].items()],
            )
            for name, row in fields["packets"].items()
        },
        "GCR_CNTL": bits("GCR_CNTL"),
        "COMPUTE_DISPATCH_INITIATOR": bits("COMPUTE_DISPATCH_INITIATOR"),
    }


def properties() -> Bits:
    """Bits of a kernel descriptor's properties, from the files."""
    return _parse(of_family(load("fields")["words"]["KERNEL_CODE_PROPERTIES"], "gfx12.0"))


def aql_layout(name: str) -> list[Bits]:
    """Bits of each dword of an AQL packet, from the files."""
    return [_parse(text) for text in load("fields")["aql"][name]]


def named_values(name: str) -> dict[str, int]:
    """The named values of a field, by "PACKET.FIELD", from the files."""
    rows = load("fields")["values"]
    text = rows.get(name) or rows[name.split(".")[1]]
    return {part.split(" ", 1)[1]: int(part.split(" ", 1)[0], 16) for part in text.split(", ")}


def bits_of(word: Word) -> Bits:
    return {item.name: (item.high, item.low) for item in word.fields}


def _parse(text: str) -> Bits:
    """ "NAME high:low, NAME bit" as a dictionary."""
    found = {}
    for part in filter(None, text.split(", ")):
        name, _, bits = part.rpartition(" ")
        high, _, low = bits.partition(":")
        found[name] = (int(high), int(low or high))
    return found
