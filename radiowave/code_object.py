# SPDX-License-Identifier: Apache-2.0
"""Read a linked AMDGPU code object: its target, its kernels, their descriptors and arguments.

The only reader of linked objects in the project but the software device's own loader. Believes nothing: the
ELF header, the metadata note, the symbols, the segments and the descriptors must agree, and every
disagreement is a `CodeObjectError` that says where. It never runs the bytes, and needs no GPU. `CodeObject.parse`
takes one object and names whatever else it meets; `CodeObject.read` takes it out of an offload bundle first.

Sources: LLVM AMDGPUUsage, "ELF Code Object" and "Kernel Descriptor"; `elf.py`, `metadata.py`,
`descriptor.py`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from radiowave import elf as e
from radiowave.bundle import BundleEntry, container_of, select, split_target, unbundle
from radiowave.descriptor import DESCRIPTOR_ALIGN, DESCRIPTOR_BYTES, ENTRY_ALIGN, Descriptor, reserved_bits
from radiowave.errors import CodeObjectError
from radiowave.image import LoadImage
from radiowave.metadata import Argument, KernelMetadata, Metadata, parse_metadata
from radiowave.mistaken import mistaken_for_code
from radiowave.targets import (
    CODE_OBJECT_VERSIONS,
    EF_AMDGPU_MACH,
    OLD_ABI_VERSIONS,
    TARGETS,
    XNACK_TARGETS,
    name_of_mach,
    target_of_mach,
    why_refused,
)

# EF_AMDGPU_FEATURE_XNACK_V4 and EF_AMDGPU_FEATURE_SRAMECC_V4 (LLVM ELF.h)
_XNACK_SHIFT, _SRAMECC_SHIFT = 8, 10
_MODES = ("unsupported", "any", "off", "on")
_KNOWN_FLAGS = EF_AMDGPU_MACH | 3 << _XNACK_SHIFT | 3 << _SRAMECC_SHIFT

# amdhsa.version of the metadata for each code object version (LLVM AMDGPUMetadata.h,
# VersionMajor/MinorV4..V6)
_METADATA_VERSIONS = {4: (1, 1), 5: (1, 2), 6: (1, 2)}


@dataclass(frozen=True)
class KernelFacts:
    """One kernel. Addresses (`_va`) are ELF addresses: the loader adds where it put the object.

    `code_sha256` covers the bytes from the entry to the end of the kernel's symbol; functions that it calls
    may lie outside. `kernarg_bytes` is the metadata's; the descriptor may leave it at 0. `wave` is 32 or 64 lanes;
    workgroups (`max_workgroup`, `required_workgroup`, `workgroup_hint`) are in work-items, `_count` counts registers,
    `kernarg_align` is bytes.
    """

    name: str
    symbol: str
    wave: int
    descriptor: Descriptor
    descriptor_va: int
    entry_va: int
    code_bytes: int
    code_sha256: str
    arguments: tuple[Argument, ...]
    kernarg_bytes: int
    kernarg_align: int
    uses_dynamic_stack: bool
    max_workgroup: int
    required_workgroup: tuple[int, int, int] | None
    has_uniform_workgroups: bool
    vgpr_count: int
    sgpr_count: int
    vgpr_spill_count: int
    sgpr_spill_count: int
    language: str
    kind: str
    workgroup_hint: tuple[int, int, int] | None


@dataclass(frozen=True)
class CodeObject:
    """One linked AMDGPU code object and everything that its kernels state about themselves.

    `xnack` and `sramecc` are "unsupported", "any", "off" or "on", as the ELF header says.
    """

    target: str
    code_object_version: int
    metadata_version: tuple[int, int]
    xnack: str
    sramecc: str
    sha256: str
    kernels: dict[str, KernelFacts]
    data: bytes = field(repr=False)

    @classmethod
    def parse(cls, data: bytes) -> CodeObject:
        """Read and check one linked object. Any fault, and any container, raises `CodeObjectError`."""
        data = bytes(data)
        _refuse_other_files(data)
        elf = e.Elf(data)
        version = _version(elf)
        target, xnack, sramecc = _target(elf)
        metadata = _metadata(elf, version, _target_id(target, xnack, sramecc))
        image = LoadImage(elf)
        symbols = _Symbols(elf)
        kernels: dict[str, KernelFacts] = {}
        for row in metadata.kernels:
            if row.name in kernels:
                raise _refused("RW0308", "metadata", f"two kernels named {row.name!r}", "names that differ")
            kernels[row.name] = _kernel(row, image, symbols)
        return cls(
            target=target,
            code_object_version=version,
            metadata_version=metadata.version,
            xnack=xnack,
            sramecc=sramecc,
            sha256=hashlib.sha256(data).hexdigest(),
            kernels=kernels,
            data=data,
        )

    @classmethod
    def read(cls, data: bytes, target: str | None = None) -> CodeObject:
        """Read the object for a target (a target id such as "gfx1201" or "gfx1010:xnack-") out of any container.

        A container is a clang offload bundle, compressed or not, several of them, or a host's ELF file that holds
        them; without a target there must be exactly one code object in it. An object by itself is read as it is.
        Raises `CodeObjectError`, and `UnsupportedTarget` for a target that is not on the list.
        """
        data = bytes(data)
        if container_of(data) is None:
            found = cls.parse(data)
            if target is not None:
                found.check_target(target, "code object")
            return found
        entry = select(unbundle(data), target)
        found = cls.parse(entry.data)
        found.check_entry(entry)
        return found

    def check_entry(self, entry: BundleEntry) -> None:
        """Raise `CodeObjectError` when a bundle's entry calls the object something that it is not.

        And `UnsupportedTarget` when what it calls it is no target of the list.
        """
        if entry.target is not None:
            named = ":".join((entry.target, *entry.features))
            self.check_target(named, f"entry {entry.id}")

    def check_target(self, target: str, where: str) -> None:
        """Raise `CodeObjectError` unless the object is for this target id; a feature not named may be on or off.

        And `UnsupportedTarget` for a target that is not on the list.
        """
        wanted, features = split_target(target)
        mine = {"xnack": self.xnack, "sramecc": self.sramecc}
        differing = [f for f in features if mine.get(f[:-1]) not in ("any", "on" if f[-1] == "+" else "off")]
        if wanted != self.target or differing:
            raise _refused("RW0317", where, self.target_id, target, f"compile for {target}, or name the right target")

    @property
    def target_id(self) -> str:
        """Target and the features that are fixed, such as "gfx1010:xnack-"."""
        return _target_id(self.target, self.xnack, self.sramecc)

    def kernel(self, name: str) -> KernelFacts:
        """A kernel by name, with or without `.kd`. Raises CodeObjectError (RW0314) for a name that it does not have."""
        found = self.kernels.get(name) or self.kernels.get(name.removesuffix(".kd"))
        if found is None:
            known = ", ".join(self.kernels) or "none: this object has no kernels"
            raise _refused("RW0314", "code object", f"no kernel {name!r}", known, "name one of these kernels")
        return found

    def code(self, kernel: KernelFacts) -> bytes:
        """The machine code of a kernel, from its entry to the end of its symbol, in bytes.

        Raises CodeObjectError when the kernel is another object's and lies outside this one.
        """
        image = LoadImage(e.Elf(self.data))
        return image.bytes_at(kernel.entry_va, kernel.code_bytes, f"kernel {kernel.name!r}")


class _Symbols:
    """The defined symbols, by name for descriptors and by address for functions."""

    def __init__(self, elf: e.Elf) -> None:
        tables = [s for s in elf.sections if s.type == e.SHT_SYMTAB]
        tables = tables or [s for s in elf.sections if s.type == e.SHT_DYNSYM]
        self.named: dict[str, e.Symbol] = {}
        self.functions: dict[int, e.Symbol] = {}
        for symbol in elf.symbols(tables[0]) if tables else ():
            if symbol.section == e.SHN_UNDEF:
                continue
            if symbol.type == e.STT_FUNC:
                self.functions[symbol.value] = symbol
            if symbol.binding != e.STB_LOCAL or symbol.name not in self.named:
                self.named[symbol.name] = symbol


def _refuse_other_files(data: bytes) -> None:
    container = container_of(data)
    if container is not None:
        do = "take one code object out of it: radiowave.unbundle, or CodeObject.read with a target"
        raise _refused("RW0312", "file offset 0", container, "one linked ELF code object", do)
    mistake = mistaken_for_code(data)
    if mistake is not None:
        raise _refused("RW0301", "file offset 0", mistake[0], "one linked ELF code object", mistake[1])


def _version(elf: e.Elf) -> int:
    if elf.machine != e.EM_AMDGPU:
        seen = f"machine {elf.machine}: not an AMDGPU object"
        do = "pass the code object for the GPU, not the host's program or library"
        raise _refused("RW0303", "ELF header e_machine", seen, f"{e.EM_AMDGPU} (AMDGPU)", do)
    # Byte 7 itself: ELF readers know 64 under the name of another system.
    if elf.ident[7] != e.ELFOSABI_AMDGPU_HSA:
        allowed = f"{e.ELFOSABI_AMDGPU_HSA} (HSA)"
        raise _refused("RW0303", "ELF header byte 7 (OSABI)", str(elf.ident[7]), allowed)
    if elf.type == e.ET_REL:
        do = "link it: radiowave.link, or ld.lld -shared"
        raise _refused("RW0306", "ELF header e_type", "a relocatable object, not linked", "a linked one", do)
    if elf.type != e.ET_DYN:
        raise _refused("RW0302", "ELF header e_type", str(elf.type), f"{e.ET_DYN} (shared object)")
    for version, abi_version in CODE_OBJECT_VERSIONS.items():
        if elf.ident[8] == abi_version:
            return version
    allowed = ", ".join(f"{abi} (v{version})" for version, abi in CODE_OBJECT_VERSIONS.items())
    seen = OLD_ABI_VERSIONS.get(elf.ident[8], str(elf.ident[8]))
    do = "compile with -mcode-object-version=5"
    raise _refused("RW0304", "ELF header byte 8 (ABI version)", seen, allowed, do)


def _target(elf: e.Elf) -> tuple[str, str, str]:
    """The GPU, and the modes of its XNACK and SRAMECC."""
    mach = elf.flags & EF_AMDGPU_MACH
    target = target_of_mach(mach)
    if target is None:
        seen = f"{name_of_mach(mach)}{why_refused(mach)}"
        raise _refused("RW0305", "ELF header e_flags", seen, " ".join(TARGETS), "compile for one of these targets")
    if elf.flags & ~_KNOWN_FLAGS:
        raise _refused("RW0305", "ELF header e_flags", f"{elf.flags:#x}", f"bits {_KNOWN_FLAGS:#x} alone")
    xnack, sramecc = (_MODES[elf.flags >> shift & 3] for shift in (_XNACK_SHIFT, _SRAMECC_SHIFT))
    has_xnack = target in XNACK_TARGETS
    if sramecc != "unsupported" or (xnack != "unsupported" and not has_xnack):
        seen = f"xnack {xnack}, sramecc {sramecc} for {target}"
        allowed = f"sramecc unsupported{'' if has_xnack else ', xnack unsupported'}: {target} lacks it"
        raise _refused("RW0318", "ELF header e_flags", seen, allowed)
    return target, xnack, sramecc


def _target_id(target: str, xnack: str, sramecc: str) -> str:
    signs = {"on": "+", "off": "-"}
    modes = (("sramecc", sramecc), ("xnack", xnack))
    return target + "".join(f":{name}{signs[mode]}" for name, mode in modes if mode in signs)


def _metadata(elf: e.Elf, version: int, target_id: str) -> Metadata:
    notes = [n for n in elf.notes() if n.owner == b"AMDGPU" and n.type == e.NT_AMDGPU_METADATA]
    if len(notes) != 1:
        raise _refused("RW0308", "notes", f"{len(notes)} AMDGPU metadata notes", "one")
    metadata = parse_metadata(notes[0].payload)
    if metadata.version != _METADATA_VERSIONS[version]:
        seen = f"{metadata.version[0]}.{metadata.version[1]}"
        wanted = "{}.{}".format(*_METADATA_VERSIONS[version])
        raise _refused("RW0308", "metadata amdhsa.version", seen, f"{wanted} (code object v{version})")
    # The triple "amdgcn-amd-amdhsa-", an environment that is mostly empty, "-", the target id.
    if metadata.target and metadata.target.split("-", 4)[-1] != target_id:
        seen = metadata.target[:200]
        raise _refused("RW0308", "metadata amdhsa.target", seen, f"{target_id}, as the ELF header says")
    return metadata


def _kernel(row: KernelMetadata, image: LoadImage, symbols: _Symbols) -> KernelFacts:
    where = f"kernel {row.name[:200]!r}"
    symbol = symbols.named.get(row.symbol)
    if symbol is None:
        seen = f"no symbol {row.symbol[:200]!r}"
        raise _refused("RW0309", where, seen, "the descriptor's symbol in .symtab or .dynsym", "do not strip it")
    descriptor = _descriptor(symbol.value, image, where)
    _cross_check(row, descriptor, where)
    entry = symbol.value + descriptor.entry_offset
    code = _code(entry, image, symbols, where)
    dynamic = descriptor.uses_dynamic_stack or bool(row.uses_dynamic_stack)
    return KernelFacts(
        name=row.name,
        symbol=row.symbol,
        wave=row.wave,
        descriptor=descriptor,
        descriptor_va=symbol.value,
        entry_va=entry,
        code_bytes=len(code),
        code_sha256=hashlib.sha256(code).hexdigest(),
        arguments=row.arguments,
        kernarg_bytes=row.kernarg_bytes,
        kernarg_align=row.kernarg_align,
        uses_dynamic_stack=dynamic,
        max_workgroup=row.max_workgroup,
        required_workgroup=row.required_workgroup,
        has_uniform_workgroups=row.has_uniform_workgroups,
        vgpr_count=row.vgpr_count,
        sgpr_count=row.sgpr_count,
        vgpr_spill_count=row.vgpr_spill_count,
        sgpr_spill_count=row.sgpr_spill_count,
        language=row.language,
        kind=row.kind,
        workgroup_hint=row.workgroup_hint,
    )


def _descriptor(address: int, image: LoadImage, where: str) -> Descriptor:
    if address % DESCRIPTOR_ALIGN:
        raise _refused("RW0309", where, f"descriptor at {address:#x}", f"a multiple of {DESCRIPTOR_ALIGN}")
    raw = image.bytes_at(address, DESCRIPTOR_BYTES, f"descriptor of {where}")
    reserved = reserved_bits(raw)
    if reserved:
        raise _refused("RW0309", f"descriptor of {where}", f"{reserved} not zero", "zero in reserved places")
    return Descriptor.unpack(raw)


def _cross_check(row: KernelMetadata, descriptor: Descriptor, where: str) -> None:
    """The loader believes the metadata, the hardware the descriptor: they must say the same."""
    pairs = [
        ("wave size", f"wave{descriptor.wave}", f"wave{row.wave}"),
        ("group segment", descriptor.group_bytes, row.group_bytes),
        ("private segment", descriptor.private_bytes, row.private_bytes),
        ("kernarg segment", descriptor.kernarg_bytes or row.kernarg_bytes, row.kernarg_bytes),
    ]
    if row.uses_dynamic_stack is not None:
        pairs.append(("dynamic stack", descriptor.uses_dynamic_stack, row.uses_dynamic_stack))
    for what, hardware, loader in pairs:
        if hardware != loader:
            seen = f"descriptor says {hardware}, metadata says {loader}"
            raise _refused("RW0310", f"{what} of {where}", seen, "the same in both")


def _code(entry: int, image: LoadImage, symbols: _Symbols, where: str) -> bytes:
    if entry % ENTRY_ALIGN:
        raise _refused("RW0311", where, f"entry at {entry:#x}", f"a multiple of {ENTRY_ALIGN}")
    function = symbols.functions.get(entry)
    if function is None or not function.nbytes:
        seen = f"entry at {entry:#x}, where no function of known size begins"
        raise _refused("RW0311", where, seen, "a function symbol at the entry")
    return image.executable_bytes(entry, function.nbytes, where)


def _refused(code: str, where: str, seen: str, allowed: str, do: str = "") -> CodeObjectError:
    return CodeObjectError(
        code,
        where=where,
        seen=seen,
        allowed=allowed,
        do=do or "rebuild the object, or copy it again if it was damaged",
    )
