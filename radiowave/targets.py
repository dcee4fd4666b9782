# SPDX-License-Identifier: Apache-2.0
"""The GPU targets that Radiowave compiles for and reads, and the machine number each has in an ELF header.

An explicit list: a name is on it or it is refused, and nothing is guessed from a prefix. Names are checked
here before they reach LLVM, because LLVM ends the process at a CPU name it does not know. What a family's
registers and packets are is not known here; the encoders have that.

Source of the machine numbers: LLVM 22, `llvm/include/llvm/BinaryFormat/ELF.h`, enumerators
`EF_AMDGPU_MACH_AMDGCN_*`; the newest of the refused ones LLVM 23, `llvm/test/CodeGen/AMDGPU/elf-header-flags-mach.ll`.
"""

from __future__ import annotations

from radiowave.errors import UnsupportedTarget

EF_AMDGPU_MACH = 0x0FF

#: Every target that is compiled for and read, with its EF_AMDGPU_MACH value in e_flags.
TARGETS: dict[str, int] = {
    "gfx1010": 0x33,
    "gfx1011": 0x34,
    "gfx1012": 0x35,
    "gfx1013": 0x42,
    "gfx1030": 0x36,
    "gfx1031": 0x37,
    "gfx1032": 0x38,
    "gfx1033": 0x39,
    "gfx1034": 0x3E,
    "gfx1035": 0x3D,
    "gfx1036": 0x45,
    "gfx1100": 0x41,
    "gfx1101": 0x46,
    "gfx1102": 0x47,
    "gfx1103": 0x44,
    "gfx1150": 0x43,
    "gfx1151": 0x4A,
    "gfx1152": 0x55,
    "gfx1153": 0x58,
    "gfx1200": 0x48,
    "gfx1201": 0x4E,
}

# Real GPUs and generic targets that are refused; the table only lets a refusal say which one it met.
REFUSED: dict[str, int] = {
    "gfx900": 0x2C,
    "gfx906": 0x2F,
    "gfx908": 0x30,
    "gfx90a": 0x3F,
    "gfx90c": 0x32,
    "gfx942": 0x4C,
    "gfx950": 0x4F,
    "gfx1154": 0x57,
    "gfx1170": 0x5D,
    "gfx1171": 0x5E,
    "gfx1172": 0x5C,
    "gfx1250": 0x49,
    "gfx1251": 0x5A,
    "gfx1310": 0x50,
    "gfx9-generic": 0x51,
    "gfx9-4-generic": 0x5F,
    "gfx10-1-generic": 0x52,
    "gfx10-3-generic": 0x53,
    "gfx11-generic": 0x54,
    "gfx11-7-generic": 0x62,
    "gfx12-generic": 0x59,
    "gfx12-5-generic": 0x5B,
    "gfx13-generic": 0x63,
}

# The only targets of the list with a selectable XNACK mode (LLVM AMDGPUUsage, table of processors).
XNACK_TARGETS = frozenset({"gfx1010", "gfx1011", "gfx1012", "gfx1013"})

WAVES = (32, 64)

# code object version -> EI_ABIVERSION (LLVM AMDGPUUsage, "ELF Header": ELFABIVERSION_AMDGPU_HSA_V4..V6)
CODE_OBJECT_VERSIONS: dict[int, int] = {4: 2, 5: 3, 6: 4}

# EI_ABIVERSION of what LLVM writes no longer: read by ROCr, refused here. Their headers say less (v3 has no `any` for a
# feature, and no target in the metadata), and no compiler that could be tested writes them.
OLD_ABI_VERSIONS: dict[int, str] = {
    0: "0 (code object v2, which LLVM gave up in release 18)",
    1: "1 (code object v3, which LLVM gave up in release 18)",
}

_TARGET_OF_MACH = {mach: name for name, mach in TARGETS.items()}
_REFUSED_OF_MACH = {mach: name for name, mach in REFUSED.items()}


def check_target(target: str, *, where: str) -> None:
    """Refuse a name that is not on the list."""
    if target not in TARGETS:
        raise UnsupportedTarget(
            "RW0201",
            where=where,
            seen=f"target {target!r}",
            allowed=" ".join(TARGETS),
            do="name one of these targets exactly",
        )


def check_wave(wave: int, *, where: str) -> None:
    """Refuse a wave size that is neither 32 nor 64."""
    if wave not in WAVES:
        raise UnsupportedTarget(
            "RW0202",
            where=where,
            seen=f"wave size {wave!r}",
            allowed="32 or 64",
            do="pass wave=32 or wave=64",
        )


def check_code_object_version(version: int, *, where: str) -> None:
    """Refuse a code object version that no supported loader reads."""
    if version not in CODE_OBJECT_VERSIONS:
        raise UnsupportedTarget(
            "RW0203",
            where=where,
            seen=f"code object version {version!r}",
            allowed=", ".join(str(known) for known in CODE_OBJECT_VERSIONS),
            do="leave code_object_version at its default of 5",
        )


def target_of_mach(mach: int) -> str | None:
    """The supported target with this machine number, or None."""
    return _TARGET_OF_MACH.get(mach)


def why_refused(mach: int) -> str:
    """Why a machine number that LLVM knows is refused, as the end of a message; empty where the list says it all."""
    if _REFUSED_OF_MACH.get(mach, "").endswith("-generic"):
        return ": a generic target stands for several GPUs, and code is accepted only for a GPU that it names"
    return ""


def name_of_mach(mach: int) -> str:
    """What to call a machine number in a message.

    >>> name_of_mach(0x49)
    'gfx1250 (machine 0x49)'
    """
    name = _TARGET_OF_MACH.get(mach) or _REFUSED_OF_MACH.get(mach) or "unknown GPU"
    return f"{name} (machine {mach:#04x})"
