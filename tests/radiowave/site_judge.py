# SPDX-License-Identifier: Apache-2.0
"""Say whether an access that was executed contradicts a certificate: its sites at that place, or its verdict.

A certificate rests on C's rules that a pointer plus an index stays in its object and that null is not followed. Where
a program breaks them, nothing is said about what comes behind. Several sites at one place are one for each call of a
function: one must fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from radiowave import KernelCertificate, Site
from tests.radiowave.assemble import Kernel
from tests.radiowave.scalar_machine import Access
from tests.radiowave.scalar_memory import (
    CODE,
    FARTHEST,
    FROM_ARGUMENT,
    FROM_KERNARG,
    FROM_MEMORY,
    FROM_NUMBER,
    SHIFT,
    Memory,
    Object,
)


@dataclass(frozen=True)
class Where:
    """Where an access really went: inside the slot, anywhere near it, into or beside the code object but to no variable
    of it, behind which argument."""

    in_kernarg: bool
    near_kernarg: bool
    fixed: bool
    argument: int | None


@dataclass
class Judge:
    """One kernel and its certificate; `variables` are the ELF addresses of what kernels may write in their object."""

    kernel: Kernel
    certificate: KernelCertificate
    variables: Sequence[range]
    sites: dict[int, tuple[Site, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self.sites = {}
        for site in self.certificate.sites:
            self.sites[site.address] = (*self.sites.get(site.address, ()), site)

    def wrong(self, access: Access, memory: Memory) -> str:
        """What the certificate says falsely about an access; "" when it says nothing false."""
        if any(site.path == "none" for site in self.certificate.sites):
            return "" if self.certificate.verdict == "scalar_or_unknown" else "it lost its way and certifies"
        path = "scalar" if access.is_scalar else "vector"
        sites = [site for site in self.sites.get(access.pc, ()) if site.path == path]
        if not sites:
            return "it has no such site"
        where = self._where(access, memory)
        if self.broke_c(access, memory) and not where.near_kernarg:
            return ""
        if not access.is_scalar and not self._follows_c(access, where):
            return ""
        wrongs = [self._wrong_site(access, site, where) for site in sites]
        if all(wrongs):
            return wrongs[0]
        return self._wrong_verdict(where) if access.is_scalar else self._wrong_vector(sites[0], where)

    def broke_c(self, access: Access, memory: Memory) -> bool:
        """Whether null was followed, or an index led out of its object: what was loaded there may be anything. A number
        argument in an upper half is part of an index, too, and too large a one for these objects."""
        where = self._where(access, memory)
        if abs(access.address - (access.address >> 63 << 64)) < FARTHEST:
            return True
        if access.is_scalar and access.high & FROM_NUMBER and where.argument is None:
            return True
        return where.near_kernarg and not where.in_kernarg

    def _follows_c(self, access: Access, where: Where) -> bool:
        """Whether a vector access went where one of its pointers leads. For these the certifier takes all sources
        together and does not prove that halves belong together, as C would not let them be mixed."""
        if where.argument is not None:
            return bool(access.taint & FROM_ARGUMENT << self.kernel.pointers.index(where.argument))
        pointers = access.taint & ~(FROM_MEMORY | FROM_NUMBER)
        if where.near_kernarg:
            return bool(pointers & FROM_KERNARG)
        return not pointers and bool(access.high & FROM_MEMORY)

    def _where(self, access: Access, memory: Memory) -> Where:
        """Where an access really went."""
        owner, first = memory.owner(access.address), access.address - memory.kernarg
        padded = -(-self.kernel.kernarg_bytes // 16) * 16
        argument, place = owner - Object.ARGUMENT, access.address - CODE
        return Where(
            in_kernarg=0 <= first <= padded - access.nbytes,
            near_kernarg=owner == Object.KERNARG,
            fixed=access.address >> SHIFT == Object.CODE
            and not any(part.start < place + access.nbytes and place < part.stop for part in self.variables),
            argument=self.kernel.pointers[argument] if 0 <= argument < len(self.kernel.pointers) else None,
        )

    def _wrong_site(self, access: Access, site: Site, where: Where) -> str:
        pointers = {o for n, o in enumerate(self.kernel.pointers) if access.taint & FROM_ARGUMENT << n}
        match site.reach:
            case "kernarg":
                return "" if where.in_kernarg and not pointers else "it is not in the kernel's arguments"
            case "kernarg_indexed":
                mixed = access.is_scalar and pointers  # a lane's index may come from anything
                return "" if where.near_kernarg and not mixed else "it is not among the kernel's arguments"
            case "constant":
                return "" if where.fixed else "it is not constant"
            case "argument":
                if site.beside_kernarg and where.near_kernarg:
                    return ""
                if where.argument not in site.arguments:
                    return "it is behind none of the site's arguments"
                return "" if pointers and pointers <= set(site.arguments) else "it comes from another pointer"
        return ""

    def _wrong_verdict(self, where: Where) -> str:
        if self.certificate.verdict == "scalar_or_unknown" or where.near_kernarg or where.fixed:
            return ""
        if self.certificate.verdict == "scalar_args" and where.argument in self.certificate.scalar_args:
            return ""
        return "the verdict says that no scalar load goes there"

    def _wrong_vector(self, site: Site, where: Where) -> str:
        if site.reads and where.near_kernarg and not self.certificate.kernarg_vector_loads:
            return "no vector load of kernargs is certified"
        if where.argument is None and not where.near_kernarg and not where.fixed and not self.certificate.undeclared:
            return "no access outside of the arguments is certified"
        if site.reads and where.argument in self.certificate.l2_args and not site.at_l2:
            return "this argument is certified to be read at L2 alone"
        return ""
