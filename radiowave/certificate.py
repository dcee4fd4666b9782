# SPDX-License-Identifier: Apache-2.0
"""What a certificate says: how one kernel reads memory, and the instruction that each answer rests on.

Data only. `certifier.py` makes certificates; `redline` turns them into cache classes; manifests store them as JSON.
Meaning of the verdicts: a kernel that is "vmem_only" reads memory that may change by vector loads alone; "scalar_args"
by scalar loads too, but only through the pointer arguments listed; "scalar_or_unknown" is everything else.
Source of which loads pass which caches: LLVM AMDGPUUsage, "Memory Model gfx10-gfx11" and "gfx12".
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, get_args

Verdict = Literal["vmem_only", "scalar_args", "scalar_or_unknown"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)  # from narrow to wide

#: What a memory access reaches, as far as its address tells.
#:
#: kernarg: the kernel's own arguments, at a known place. kernarg_indexed: at a computed place among them.
#: constant: bytes of the object that nothing writes. argument: memory behind pointer arguments, by number or by the
#: resource descriptor made from one. variable: the module's own writable memory. loaded: through a pointer that was
#: itself read from memory. abi: what the dispatcher owns (AQL packet, queue, hidden pointers). private: scratch.
#: unknown: none of these can be shown.
Reach = Literal["kernarg", "kernarg_indexed", "constant", "argument", "variable", "loaded", "abi", "private", "unknown"]


@dataclass(frozen=True)
class Site:
    """One instruction that reads or writes memory, or that ended the proof.

    `address` is the ELF address in bytes, `text` LLVM's text. `path` is "scalar" or "vector", or "none" for an
    instruction that is no access but stopped the proof (an unknown jump). `arguments` are the kernarg offsets in bytes
    of the pointers that the address may come from, `variables` the module's symbols; `beside_kernarg`: it may also lie
    in the kernel's own arguments. `at_l2`: an atomic, or a load of device scope or wider, which no
    cache in front of L2 serves. `why` says in words what the class rests on.
    """

    address: int
    text: str
    path: Literal["scalar", "vector", "none"]
    reach: Reach
    arguments: tuple[int, ...] = ()
    reads: bool = True
    writes: bool = False
    at_l2: bool = False
    why: str = ""
    variables: tuple[str, ...] = ()
    beside_kernarg: bool = False

    def as_json(self) -> dict[str, Any]:
        """Ready for `json.dumps`; the address as a number of bytes."""
        return {
            "address": self.address,
            "text": self.text,
            "path": self.path,
            "reach": self.reach,
            "arguments": list(self.arguments),
            "reads": self.reads,
            "writes": self.writes,
            "at_l2": self.at_l2,
            "variables": list(self.variables),
            "beside_kernarg": self.beside_kernarg,
            "why": self.why,
        }


@dataclass(frozen=True)
class KernelCertificate:
    """How one kernel reads memory; the evidence is `sites`, in order of address.

    `scalar_args` are kernarg offsets (bytes) of pointers that scalar loads go through; `l2_args` of pointers whose
    memory this kernel touches by atomics and device-scope loads only. `kernarg_vector_loads`: whether it may read its
    own arguments by vector loads. `undeclared`: whether it reaches memory that no pointer argument carries;
    `variables` are the symbols of the module that it addresses. `refused` are texts of instructions that no fence can
    order. `deciding` is the first site that made the verdict wider than "vmem_only", None for that one.
    """

    name: str
    symbol: str
    verdict: Verdict
    scalar_args: frozenset[int] = frozenset()
    l2_args: frozenset[int] = frozenset()
    kernarg_vector_loads: bool = True
    undeclared: bool = False
    variables: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    deciding: Site | None = None
    sites: tuple[Site, ...] = field(default=(), repr=False)

    def weaker(self, other: KernelCertificate) -> KernelCertificate:
        """What both certificates of one kernel allow: of each answer the one that promises less.

        Evidence and deciding site are those of the wider verdict.
        """
        wide = max(self, other, key=lambda c: VERDICTS.index(c.verdict))
        scalar = wide.verdict == "scalar_args"
        return replace(
            wide,
            scalar_args=self.scalar_args | other.scalar_args if scalar else frozenset(),
            l2_args=self.l2_args & other.l2_args,
            kernarg_vector_loads=self.kernarg_vector_loads or other.kernarg_vector_loads,
            undeclared=self.undeclared or other.undeclared,
            variables=tuple(sorted({*self.variables, *other.variables})),
            refused=tuple(sorted({*self.refused, *other.refused})),
        )

    def as_json(self) -> dict[str, Any]:
        """Ready for `json.dumps`; sets are sorted lists, so the same certificate gives the same bytes."""
        return {
            "name": self.name,
            "symbol": self.symbol,
            "verdict": self.verdict,
            "scalar_args": sorted(self.scalar_args),
            "l2_args": sorted(self.l2_args),
            "kernarg_vector_loads": self.kernarg_vector_loads,
            "undeclared": self.undeclared,
            "variables": list(self.variables),
            "refused": list(self.refused),
            "deciding": None if self.deciding is None else self.deciding.as_json(),
            "sites": [site.as_json() for site in self.sites],
        }
