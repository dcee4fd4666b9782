# SPDX-License-Identifier: Apache-2.0
"""Kernel and Module: what a code object says about its kernels, without any address.

`load` reads a code object (through radiowave, the only ELF reader) and needs no device. A `Kernel` is the facts of one
symbol: target, wave size, descriptor words, arguments, code hash. Where a kernel lies in a device's memory is known to
`replay.py` only.

Source of what descriptors and metadata mean: LLVM AMDGPUUsage, "Kernel Descriptor" and "Code Object Metadata".
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

from .encoders.limits import BLOCK_LIMIT
from .errors import CodeObjectError, RecordError, UnsupportedKernel, UnsupportedTarget

if TYPE_CHECKING:
    from radiowave import CodeObject, InstructionCheck, KernelFacts, Manifest

    from .encoders import DispatchWords

#: Value kinds of code object metadata (LLVM AMDGPUUsage, "Code Object V5 Kernel Argument Metadata Map").
POINTER_KINDS: Final = frozenset({"global_buffer"})
VALUE_KINDS: Final = frozenset({"by_value"})
POINTER_BYTES: Final = 8

#: Arguments of one kind that a synthetic kernel may have.
MOST_ARGUMENTS: Final = 4096

#: Slots of the kernarg arena begin at multiples of this, so no kernel may ask for more.
KERNARG_SLOT_BYTES: Final = 64

#: Hidden arguments that a dispatch can fill by itself (facts: block and group sizes, grid, LDS size).
FILLED_HIDDEN: Final = frozenset(
    {f"hidden_{what}_{axis}" for what in ("block_count", "group_size", "remainder", "global_offset") for axis in "xyz"}
    | {"hidden_grid_dims", "hidden_dynamic_lds_size", "hidden_none"}
)

Reads = Literal["vmem_only", "scalar_args", "scalar_or_unknown"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One kernel argument as the metadata states it: byte offset and size in the kernarg segment, and value kind."""

    name: str
    offset: int
    size: int
    kind: str
    access: str = ""
    type_name: str = ""

    @property
    def hidden(self) -> bool:
        """Whether the dispatcher fills it, not the launch."""
        return self.kind.startswith("hidden_")


@dataclass(frozen=True, slots=True)
class Certificate:
    """How a kernel reads memory that may change: vector loads only, scalar loads through some arguments, or unknown.

    `scalar_args` holds the kernarg offsets (bytes) of pointers that scalar loads go through, `l2_args` of those whose
    memory is touched by atomics and device-scope loads only, which read at L2. `kernarg_vector_loads`: whether the
    kernel may read its own arguments by vector loads. `undeclared`: whether it may reach memory that no pointer
    argument carries, such as a variable of the module; it is then launched only with `accesses=`. Without a certificate
    everything counts as read through both caches.

    Raises RecordError for words or offsets that certificates do not have. Source of the classes: LLVM AMDGPUUsage,
    "Memory Model gfx10-gfx11" and "gfx12".
    """

    reads: Reads = "scalar_or_unknown"
    scalar_args: frozenset[int] = frozenset()
    l2_args: frozenset[int] = frozenset()
    kernarg_vector_loads: bool = True
    undeclared: bool = False

    def __post_init__(self) -> None:
        offsets = all(
            isinstance(args, frozenset) and all(isinstance(at, int) for at in args)
            for args in (self.scalar_args, self.l2_args)
        )
        flags = isinstance(self.kernarg_vector_loads, bool) and isinstance(self.undeclared, bool)
        if self.reads not in get_args(Reads) or not offsets or not flags:
            raise RecordError(
                "RL0136",
                where="Certificate",
                seen=str(self),
                allowed=f"reads: {', '.join(get_args(Reads))}; frozensets of kernarg offsets; True or False",
                do="take certificates from radiowave",
            )


@dataclass(frozen=True, slots=True, repr=False)
class Kernel:
    """One kernel of a code object. Pure: compared by value, holds no address.

    `entry_offset` is the byte distance from the kernel descriptor (the "kernel object" of HSA) to the first
    instruction; the other words are the descriptor's own. `symbol` is the descriptor's in the symbol table ("name.kd").
    `wave` is 32 or 64 lanes; `group_bytes` (static LDS), `private_bytes` (scratch of one lane), `kernarg_bytes` and
    `kernarg_align` are bytes; `max_workgroup` and `required_block` count work-items.
    """

    name: str
    target: str
    wave: int
    group_bytes: int
    private_bytes: int
    kernarg_bytes: int
    rsrc1: int
    rsrc2: int
    rsrc3: int
    properties: int
    preload: int
    entry_offset: int
    arguments: tuple[Argument, ...]
    code_sha256: str
    max_workgroup: int = BLOCK_LIMIT
    required_block: tuple[int, int, int] | None = None
    uniform_workgroups: bool = False
    kernarg_align: int = 8
    symbol: str = ""
    certificate: Certificate | None = None
    module: Module | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        return f"<Kernel {self.name} {self.target} wave{self.wave} arguments={len(self.arguments)}>"

    @property
    def explicit_arguments(self) -> tuple[Argument, ...]:
        """The arguments that a launch gives, in order."""
        return tuple(argument for argument in self.arguments if not argument.hidden)

    def check_arguments(self, where: str) -> None:
        """Raise UnsupportedKernel for arguments that a raw dispatch cannot supply, such as a hostcall buffer.

        A hidden argument that is listed counts as used: only data flow through the machine code could tell, and what
        optimised builds do not use they do not list.
        """
        place = f"{where}, kernel {self.name!r} ({self.target})"
        known = POINTER_KINDS | VALUE_KINDS | FILLED_HIDDEN
        for argument in self.arguments:
            if argument.kind not in known:
                raise UnsupportedKernel(
                    "RL0406",
                    where=place,
                    seen=f"argument {argument.name or argument.offset!r} of kind {argument.kind}",
                    allowed=", ".join(sorted(known)),
                    do="avoid what needs it (printf, device-side enqueue, hostcalls), or compile with optimisation, "
                    "which drops hidden arguments that are not used",
                )
            if argument.kind in POINTER_KINDS and argument.size != POINTER_BYTES:
                raise UnsupportedKernel(
                    "RL0406",
                    where=place,
                    seen=f"argument {argument.name or argument.offset!r}, a pointer of {argument.size} bytes",
                    allowed=f"pointers of {POINTER_BYTES} bytes",
                    do="take a pointer to global or generic memory",
                )
        if self.kernarg_align > KERNARG_SLOT_BYTES:
            raise UnsupportedKernel(
                "RL0407",
                where=place,
                seen=f"kernel arguments aligned to {self.kernarg_align} bytes",
                allowed=f"up to {KERNARG_SLOT_BYTES}",
                do="pass the vector in a buffer, or in two halves",
            )

    def words(self, name: str, dynamic_lds: int = 0) -> DispatchWords:
        """The descriptor's words as the encoder takes them, without addresses; `name` appears in its errors.

        `dynamic_lds` is in bytes.
        """
        from .encoders import DispatchWords

        return DispatchWords(
            entry=0,
            rsrc1=self.rsrc1,
            rsrc2=self.rsrc2,
            rsrc3=self.rsrc3,
            properties=self.properties,
            preload=self.preload,
            group_bytes=self.group_bytes,
            dynamic_group_bytes=dynamic_lds,
            private_bytes=self.private_bytes,
            name=name,
        )

    @staticmethod
    def synthetic(
        name: str,
        *,
        pointers: int = 1,
        scalars: tuple[int, ...] = (),
        target: str = "gfx1201",
        wave: int = 32,
        certificate: Certificate | None = None,
    ) -> Kernel:
        """A kernel without code, for planning and encoding: `pointers` 8-byte arguments, then `scalars` sizes in bytes.

        It can be recorded, planned and lowered, never instantiated. `wave` is 32 or 64 lanes. Raises RecordError for
        another wave size and for arguments that no kernel has, UnsupportedTarget for a target outside the list.
        """
        _check_synthetic(name, pointers, scalars)
        arguments, offset = [], 0
        for index in range(pointers):
            arguments.append(Argument(f"p{index}", offset, 8, "global_buffer"))
            offset += 8
        for index, size in enumerate(scalars):
            offset = -(-offset // size) * size
            arguments.append(Argument(f"s{index}", offset, size, "by_value"))
            offset += size
        from .encoders import family_for

        if wave not in (32, 64):
            raise RecordError(
                "RL0134",
                where=f"Kernel.synthetic({name!r})",
                seen=f"wave={wave!r}",
                allowed="32 or 64",
                do="choose one",
            )
        # The shape of what LLVM builds: a private segment buffer before the kernarg pointer where the family has one.
        buffer = family_for(target).has_private_segment_buffer
        user_sgprs = 6 if buffer else 2
        properties = 0x8 | (0x1 if buffer else 0) | (0x400 if wave == 32 else 0)
        return Kernel(
            name=name,
            target=target,
            wave=wave,
            group_bytes=0,
            private_bytes=0,
            kernarg_bytes=offset,
            rsrc1=0xE00F0000,
            rsrc2=0x80 | user_sgprs << 1,
            rsrc3=0,
            properties=properties,
            preload=0,
            entry_offset=256,
            arguments=tuple(arguments),
            code_sha256=hashlib.sha256(f"synthetic {name}".encode()).hexdigest(),
            certificate=certificate,
        )


def _check_synthetic(name: object, pointers: object, scalars: object) -> None:
    """At most what a kernarg segment could hold: a typing error must not allocate until memory is gone."""
    counts = isinstance(pointers, int) and not isinstance(pointers, bool) and 0 <= pointers <= MOST_ARGUMENTS
    sizes = (
        isinstance(scalars, tuple) and len(scalars) <= MOST_ARGUMENTS and all(size in (1, 2, 4, 8) for size in scalars)
    )
    if not counts or not sizes:
        raise RecordError(
            "RL0145",
            where=f"Kernel.synthetic({name!r})",
            seen=f"pointers={pointers!r}, scalars={scalars!r}",
            allowed=f"0..{MOST_ARGUMENTS} pointers, and as many scalars of 1, 2, 4 or 8 bytes",
            do="give a count, and a tuple of sizes",
        )


class Module:
    """A loaded code object: its bytes and its kernels by name. `module["scale"]` is a Kernel.

    `data` is the code object itself and `sha256` its hash (hex), also when it came out of a bundle; `parsed`
    is what radiowave read of it. Made by `load`. Raises CodeObjectError and UnsupportedTarget as `load` does,
    RecordError for a name that is no kernel of it.
    """

    def __init__(
        self,
        source: bytes,
        label: str,
        target: str | None = None,
        certificates: Mapping[str, Certificate] | None = None,
    ) -> None:
        self.label = label
        parsed = _parse(source, label, target)
        self.parsed, self.data, self.sha256, self.target = parsed, parsed.data, parsed.sha256, parsed.target
        certified = certificates or {}
        self.kernels: Mapping[str, Kernel] = {
            name: _kernel(parsed.target, facts, self, certified.get(name)) for name, facts in parsed.kernels.items()
        }

    def __getitem__(self, name: str) -> Kernel:
        try:
            return self.kernels[name]
        except KeyError:
            raise RecordError(
                "RL0106",
                where=f"module {self.label}",
                seen=f"kernel {name!r}",
                allowed=", ".join(sorted(self.kernels)) or "no kernel at all",
                do="use a kernel's name without '.kd'",
            ) from None

    @cached_property
    def instruction_check(self) -> InstructionCheck:
        """Which instructions of its kernels no fence can order; made at the first launch, loading does not need it."""
        import radiowave

        return radiowave.InstructionCheck(self.parsed)

    def __repr__(self) -> str:
        return f"<Module {self.label} {self.target}: {', '.join(sorted(self.kernels))}>"


def load(
    source: str | PathLike[str] | bytes,
    target: str | None = None,
    *,
    sha256: str | None = None,
    manifest: str | PathLike[str] | bytes | Manifest | None = None,
) -> Module:
    """Read an AMDGPU code object from a path or from bytes. Needs no device.

    The file may also be a clang offload bundle, compressed or not, or a host program or library with such bundles
    inside. `target` (a target id such as "gfx1201" or "gfx1010:xnack-") says which code object to take; it may be left
    out where there is only one. `sha256` (hex), when given, is what the bytes of the whole file must hash to.
    `manifest` (a path, bytes, or one that radiowave made) gives the kernels their certificates, for exactly these
    bytes: where a disassembler exists they are certified again and the weaker certificate counts.

    Raises CodeObjectError for anything that is not whole, linked and for a supported GPU, and for a file that holds
    none or several for the target, or a manifest that is damaged or about other bytes; UnsupportedTarget for a target
    that is not on the list; RecordError for a certificate that Redline does not know; OSError when a file cannot be
    read.
    """
    data, label = (source, "<bytes>") if isinstance(source, bytes) else (Path(source).read_bytes(), str(source))
    seen = hashlib.sha256(data).hexdigest()
    if sha256 is not None and seen != sha256.lower():
        raise CodeObjectError(
            "RL0602",
            where=f"code object {label}",
            seen=f"sha256 {seen}",
            allowed=f"sha256 {sha256.lower()}",
            do="build it again, or give the hash of the bytes that you mean to load",
        )
    if manifest is None:
        return Module(data, label, target)
    from .certified import certificates

    found, target_id = certificates(manifest, data, label, target)
    return Module(data, label, target_id, found)


def _parse(source: bytes, label: str, target: str | None) -> CodeObject:
    import radiowave

    try:
        parsed = radiowave.CodeObject.read(source, target)
    except radiowave.UnsupportedTarget as error:
        raise UnsupportedTarget(
            "RL0301", where=f"load {label}", seen=error.seen, allowed=error.allowed, do=error.do
        ) from error
    except radiowave.CodeObjectError as error:
        place = f"code object {label}, {error.where}"
        if error.code == "RW0317":
            raise CodeObjectError("RL0603", where=place, seen=error.seen, allowed=error.allowed, do=error.do) from error
        raise CodeObjectError("RL0601", where=place, seen=error.seen, allowed=error.allowed, do=error.do) from error
    if parsed.xnack == "on":
        # Linux keeps XNACK off on every GPU from GC 10.1.1 on (kfd_process_xnack_mode), so no agent could run it.
        raise CodeObjectError(
            "RL0604",
            where=f"code object {label}",
            seen=parsed.target_id,
            allowed=f"{parsed.target} or {parsed.target}:xnack-: agents of this GPU run with XNACK off",
            do=f"compile for {parsed.target}",
        )
    return parsed


def _kernel(target: str, facts: KernelFacts, module: Module, certificate: Certificate | None) -> Kernel:
    words = facts.descriptor
    return Kernel(
        name=facts.name,
        target=target,
        wave=facts.wave,
        group_bytes=words.group_bytes,
        private_bytes=words.private_bytes,
        kernarg_bytes=facts.kernarg_bytes,
        rsrc1=words.rsrc1,
        rsrc2=words.rsrc2,
        rsrc3=words.rsrc3,
        properties=words.properties,
        preload=words.preload,
        entry_offset=words.entry_offset,
        arguments=tuple(
            Argument(a.name, a.offset, a.size, a.kind, a.access or "", a.type_name) for a in facts.arguments
        ),
        code_sha256=facts.code_sha256,
        max_workgroup=facts.max_workgroup,
        required_block=facts.required_workgroup,
        uniform_workgroups=facts.has_uniform_workgroups,
        kernarg_align=facts.kernarg_align,
        symbol=facts.symbol,
        certificate=certificate,
        module=module,
    )
