# SPDX-License-Identifier: Apache-2.0
"""Turn a kernel descriptor and a launch geometry into one checked OPERATION row; and a table into a `Family`.

Everything that can be wrong with a launch is refused here, before the first word. What a raw dispatch does
not supply (dispatch and queue pointers, scratch, a dynamic stack, preloaded arguments) is refused, not
guessed.

Does not write words (`emit.py`), order operations (`stream.py`) or read code objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from redline.encoders.emit import DISPATCH, NO_KERNARG, OPERATION, USER_DATA_LIMIT, Family
from redline.encoders.limits import (
    ENTRY_ALIGN,
    KERNARG_ALIGN,
    LDS_LIMIT_BYTES,
    LDS_UNIT_BYTES,
    Size,
    check_address,
    geometry,
)
from redline.encoders.table import FamilyTable, Word, flag
from redline.errors import EncodeError, UnsupportedKernel

# kernel_code_properties of the 64-byte descriptor. L AMDGPUUsage.rst:5261-5420.
PROPERTIES = Word(
    "KERNEL_CODE_PROPERTIES",
    (
        flag("PRIVATE_SEGMENT_BUFFER", 0),
        flag("DISPATCH_PTR", 1),
        flag("QUEUE_PTR", 2),
        flag("KERNARG_SEGMENT_PTR", 3),
        flag("DISPATCH_ID", 4),
        flag("FLAT_SCRATCH_INIT", 5),
        flag("PRIVATE_SEGMENT_SIZE", 6),
        flag("WAVEFRONT_SIZE32", 10),
        flag("USES_DYNAMIC_STACK", 11),
    ),
)
NOT_SUPPLIED = ("DISPATCH_PTR", "QUEUE_PTR", "DISPATCH_ID", "FLAT_SCRATCH_INIT", "PRIVATE_SEGMENT_SIZE")
# User SGPRs in the order of the ABI, as far as we supply them: L 6154-6215.
PRIVATE_SEGMENT_BUFFER_DWORDS = 4
KERNARG_DWORDS = 2
# LLVM pads the count of gfx1100 and gfx1102 in wave32 to 13 or more, also where nothing is asked for.
LEAST_PADDED_SGPRS = 13


@dataclass(frozen=True, kw_only=True)
class DispatchWords:
    """What a launch takes from a kernel's descriptor, and the two addresses that it needs.

    Addresses are what the GPU sees: `entry` is the first instruction, 256-byte aligned; `kernarg` is 16-byte
    aligned. `group_bytes` is the static LDS size of the descriptor, `dynamic_group_bytes` what the launch
    adds, both in bytes. The register words are the descriptor's, verbatim. `name` appears in errors.

    Checks nothing by itself: the launch does, with EncodeError and UnsupportedKernel. Source of the layout: LLVM
    AMDGPUUsage, "Kernel Descriptor".
    """

    entry: int
    rsrc1: int
    rsrc2: int
    rsrc3: int
    properties: int
    group_bytes: int
    private_bytes: int
    kernarg: int = 0
    preload: int = 0
    dynamic_group_bytes: int = 0
    name: str = "kernel"

    @property
    def wave(self) -> int:
        """Lanes of a wave: 32 or 64."""
        return 32 if self.properties & PROPERTIES.by_name["WAVEFRONT_SIZE32"].mask else 64

    @property
    def takes_kernarg(self) -> bool:
        """Whether the kernel asks for the kernarg address."""
        return bool(self.properties & PROPERTIES.by_name["KERNARG_SEGMENT_PTR"].mask)


def _check_properties(table: FamilyTable, words: DispatchWords) -> dict[str, int]:
    properties = PROPERTIES.unpack(words.properties, f"{words.name}.properties")
    refused = NOT_SUPPLIED if table.has_private_segment_buffer else (*NOT_SUPPLIED, "PRIVATE_SEGMENT_BUFFER")
    asked = [name for name in refused if properties[name]]
    if asked:
        raise UnsupportedKernel(
            "RL0401",
            where=words.name,
            seen=f"the kernel asks for {', '.join(asked)}",
            allowed="KERNARG_SEGMENT_PTR, and on gfx10 PRIVATE_SEGMENT_BUFFER",
            do="compile it without what needs these values",
        )
    if properties["USES_DYNAMIC_STACK"]:
        raise UnsupportedKernel(
            "RL0403",
            where=words.name,
            seen="the kernel uses a dynamic stack",
            allowed="kernels without one",
            do="avoid recursion and indirect calls",
        )
    return properties


def _check_scratch(words: DispatchWords, rsrc2: dict[str, int]) -> None:
    if words.private_bytes or rsrc2["SCRATCH_EN"]:
        raise UnsupportedKernel(
            "RL0402",
            where=words.name,
            seen=f"{words.private_bytes} bytes of scratch, SCRATCH_EN {rsrc2['SCRATCH_EN']}",
            allowed="0 bytes and SCRATCH_EN 0",
            do="avoid arrays that do not fit in registers",
        )


def _user_sgprs(words: DispatchWords, properties: dict[str, int], rsrc2: dict[str, int]) -> tuple[int, int]:
    """(USER_DATA words to write, index of the kernarg word). LLVM pads the count on gfx1100 and gfx1102, and a kernel
    without arguments may still have a private segment buffer.
    """
    if words.preload:
        raise UnsupportedKernel(
            "RL0404",
            where=words.name,
            seen=f"kernarg preload {words.preload:#x}",
            allowed="0",
            do="compile it without kernarg preloading",
        )
    count, has_kernarg = rsrc2["USER_SGPR"], properties["KERNARG_SEGMENT_PTR"]
    before = PRIVATE_SEGMENT_BUFFER_DWORDS * properties["PRIVATE_SEGMENT_BUFFER"]
    required = before + KERNARG_DWORDS * has_kernarg
    unexplained = not has_kernarg and count != before and count < LEAST_PADDED_SGPRS
    if not required <= count <= USER_DATA_LIMIT or unexplained:
        raise UnsupportedKernel(
            "RL0405",
            where=f"{words.name}.rsrc2",
            seen=f"USER_SGPR {count}, properties {words.properties:#x}",
            allowed=f"{required}..{USER_DATA_LIMIT}; without a kernarg pointer {before} or {LEAST_PADDED_SGPRS}..",
            do="give the descriptor's own words",
        )
    return count, before if has_kernarg else NO_KERNARG


def _lds_units(words: DispatchWords, rsrc2: dict[str, int]) -> int:
    """RSRC2.LDS_SIZE, which the descriptor leaves 0."""
    total = words.group_bytes + words.dynamic_group_bytes
    if min(words.group_bytes, words.dynamic_group_bytes) < 0 or total > LDS_LIMIT_BYTES:
        raise EncodeError(
            "RL0506",
            where=f"{words.name}.group_bytes",
            seen=f"{words.group_bytes} static + {words.dynamic_group_bytes} dynamic = {total} bytes of LDS",
            allowed=f"0..{LDS_LIMIT_BYTES}",
            do="use less LDS",
        )
    units = -(-total // LDS_UNIT_BYTES)
    if rsrc2["LDS_SIZE"] not in (0, units):
        raise EncodeError(
            "RL0506",
            where=f"{words.name}.rsrc2",
            seen=f"LDS_SIZE {rsrc2['LDS_SIZE']}",
            allowed=f"0, or {units} for {total} bytes in units of {LDS_UNIT_BYTES}",
            do="give the descriptor's own word",
        )
    return units


def _register_words(table: FamilyTable, words: DispatchWords, rsrc2: dict[str, int]) -> dict[str, int]:
    """The three resource words, with LDS_SIZE; a bit that is reserved on the family is refused."""
    register = table.register
    register["COMPUTE_PGM_RSRC1"].unpack(words.rsrc1, f"{words.name}.rsrc1")
    register["COMPUTE_PGM_RSRC3"].unpack(words.rsrc3, f"{words.name}.rsrc3")
    with_lds = register["COMPUTE_PGM_RSRC2"].pack(**{**rsrc2, "LDS_SIZE": _lds_units(words, rsrc2)})
    return {"rsrc1": words.rsrc1, "rsrc2": with_lds, "rsrc3": words.rsrc3}


def operation(code: int, **values: int | Sequence[int]) -> np.void:
    """An OPERATION row of any code. Its relocation indices are -1: addresses are real."""
    row: np.void = np.zeros(1, OPERATION)[0]
    row["entry_reloc"] = row["kernarg_reloc"] = row["fence_reloc"] = -1
    row["code"] = code
    for name, value in values.items():
        row[name] = value
    return row


def dispatch_operation(
    table: FamilyTable, words: DispatchWords, global_size: int | Sequence[int], block: int | Sequence[int]
) -> np.void:
    """One OPERATION row for a launch of `global_size` work-items in workgroups of `block`.

    Sizes that divide evenly are encoded as workgroup counts, others as work-items. The relocation indices are -1; a
    caller with relocations sets them and leaves the addresses 0. The row is the caller's own.
    """
    check_address(f"{words.name}.entry", words.entry, ENTRY_ALIGN)
    check_address(f"{words.name}.kernarg", words.kernarg, KERNARG_ALIGN)
    placeless = replace(words, entry=0, kernarg=0) if words.entry or words.kernarg else words
    size, group = geometry(words.name, global_size, block)
    # A structured copy goes field by field; bytes do not.
    row: np.void = np.frombuffer(bytearray(_launch(table, placeless, size, group)), OPERATION)[0]
    row["entry"], row["kernarg"] = words.entry, words.kernarg
    return row


@lru_cache(maxsize=4096)
def _launch(table: FamilyTable, words: DispatchWords, size: Size, group: Size) -> bytes:
    """The row's bytes, without addresses. Graphs launch few kernels often, so a shape is checked once."""
    properties = _check_properties(table, words)
    rsrc2 = table.register["COMPUTE_PGM_RSRC2"].unpack(words.rsrc2, f"{words.name}.rsrc2")
    _check_scratch(words, rsrc2)
    user_count, kernarg_at = _user_sgprs(words, properties, rsrc2)
    partial = any(n % m for n, m in zip(size, group, strict=True))
    threads = [
        table.register[f"COMPUTE_NUM_THREAD_{axis}"].pack(NUM_THREAD_FULL=n)
        for axis, n in zip("XYZ", group, strict=True)
    ]
    return operation(
        DISPATCH,
        threads=threads,
        dims=size if partial else [n // m for n, m in zip(size, group, strict=True)],
        initiator=table.initiator_word(wave=words.wave, work_items=partial),
        user_count=user_count,
        kernarg_at=kernarg_at,
        **_register_words(table, words, rsrc2),
    ).tobytes()


def family_of(table: FamilyTable) -> Family:
    """The numbers that the emitters take, packed from the table."""
    register, acquire, drain = table.register, table.form("acquire"), table.form("drain")
    zero, release, wait = table.form("write_data", [0]), table.form("fence_release"), table.form("wait_memory")
    return Family(
        set_sh_reg=table.packet["SET_SH_REG"].header(),
        num_thread_x=register["COMPUTE_NUM_THREAD_X"].offset,
        pgm_lo=register["COMPUTE_PGM_LO"].offset,
        pgm_rsrc1=register["COMPUTE_PGM_RSRC1"].offset,
        resource_limits=register["COMPUTE_RESOURCE_LIMITS"].offset,
        pgm_rsrc3=register["COMPUTE_PGM_RSRC3"].offset,
        user_data_0=register["COMPUTE_USER_DATA_0"].offset,
        dispatch_direct=table.form("dispatch")[0],
        event_write=drain[0],
        cs_partial_flush=drain[1],
        acquire_mem=acquire[0],
        coher_size=acquire[2],
        coher_size_hi=acquire[3],
        poll_interval=acquire[6],
        write_data=zero[0],
        write_data_control=zero[1],
        release_mem=release[0],
        release_event=release[1],
        release_select=release[2],
        wait_reg_mem=wait[0],
        wait_control=wait[1],
        wait_mask=wait[5],
        wait_poll_interval=wait[6],
    )
