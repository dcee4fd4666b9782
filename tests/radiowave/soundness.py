# SPDX-License-Identifier: Apache-2.0
"""Judge certificates by running the kernels: no executed load may go where its certificate says that none goes.

Assembles random kernels of `scalar_programs.py`, certifies them, runs each on several placements of memory, and
compares every access with its site and with the verdict. Certificates rest on C's rule that pointer plus index stays in
its object; memory is laid out so that it holds (`scalar_memory.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from radiowave import CodeObject, Disassembler, KernelCertificate, Site, certify
from radiowave import elf as e
from tests.radiowave.assemble import Kernel, assemble_many, object_text
from tests.radiowave.scalar_machine import EXEC, LANES, Access, Machine, Number, Step, run, steps_of
from tests.radiowave.scalar_memory import CODE, FROM_ARGUMENT, FROM_KERNARG, FROM_MEMORY, Memory, Object, object_at
from tests.radiowave.scalar_programs import write
from tests.radiowave.traps import DATA

PLACEMENTS, FUEL = 3, 160
PER_OBJECT = 125


@dataclass
class Tally:
    """What was looked at, and what was found. `programs` by verdict, `loads` executed scalar loads by class."""

    programs: Counter[str] = field(default_factory=Counter)
    back_edges: int = 0
    runs: int = 0
    loads: Counter[str] = field(default_factory=Counter)
    vector: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Count another's."""
        self.programs += other.programs
        self.loads += other.loads
        self.vector += other.vector
        self.back_edges += other.back_edges
        self.runs += other.runs
        self.found += other.found


def judge_seeds(seeds: Sequence[int], target: str, disassembler: Disassembler) -> Tally:
    """Write, assemble, certify and run the programs of these seeds."""
    tally = Tally()
    groups = [
        [write(seed, target) for seed in seeds[first : first + PER_OBJECT]]
        for first in range(0, len(seeds), PER_OBJECT)
    ]
    jobs = [(object_text(group, target, 32, DATA), target, 32) for group in groups]
    for group, linked in zip(groups, assemble_many(jobs), strict=True):
        tally.add(judge_object(group, linked, disassembler))
    return tally


def judge_object(kernels: Sequence[Kernel], linked: bytes, disassembler: Disassembler) -> Tally:
    """Certify and run every kernel of an object."""
    tally = Tally()
    code_object = CodeObject.parse(linked)
    certificates = certify(code_object, disassembler)
    loaded = Loaded.of(code_object, disassembler)
    for kernel in kernels:
        certificate = certificates[kernel.name]
        judge = Judge(kernel, certificate, loaded)
        tally.programs[certificate.verdict] += 1
        tally.back_edges += _has_back_edge(kernel)
        for placement in range(PLACEMENTS):
            judge.run(placement, code_object.kernels[kernel.name].entry_va, tally)
    return tally


def _has_back_edge(kernel: Kernel) -> bool:
    seen: set[str] = set()
    for line in kernel.body.split("\n"):
        if line.endswith(":"):
            seen.add(line[:-1])
        elif line.startswith(("s_cbranch_", "s_branch")) and line.split()[-1] in seen:
            return True
    return False


@dataclass(frozen=True)
class Loaded:
    """An object as the machine sees it: its memory by ELF address, its code, and the places that nothing writes."""

    image: bytes
    steps: dict[int, tuple[Step, int]]
    fixed: tuple[range, ...]

    @classmethod
    def of(cls, code_object: CodeObject, disassembler: Disassembler) -> Loaded:
        """From the file."""
        elf = e.Elf(code_object.data)
        kept = [section for section in elf.sections if section.flags & e.SHF_ALLOC and section.address]
        image = bytearray(max(section.address + section.nbytes for section in kept))
        for section in kept:
            if section.type != e.SHT_NOBITS:
                place = slice(section.address, section.address + section.nbytes)
                image[place] = code_object.data[section.offset : section.offset + section.nbytes]
        (text,) = [section for section in kept if section.name == ".text"]
        code = bytes(image[text.address : text.address + text.nbytes])
        steps = steps_of(disassembler.decode(code, text.address, code_object.target, 32))
        fixed = [range(s.address, s.address + s.nbytes) for s in kept if not s.flags & e.SHF_WRITE]
        return cls(bytes(image), steps, tuple(fixed))

    def is_fixed(self, address: int, nbytes: int) -> bool:
        """Whether nothing writes these bytes, by their real address."""
        first, last = address - CODE, address - CODE + nbytes - 1
        return all(any(place in section for section in self.fixed) for place in (first, last))


@dataclass
class Judge:
    """One kernel and its certificate."""

    kernel: Kernel
    certificate: KernelCertificate
    loaded: Loaded
    sites: dict[int, Site] = field(init=False)

    def __post_init__(self) -> None:
        self.sites = {site.address: site for site in self.certificate.sites}

    def run(self, placement: int, entry: int, tally: Tally) -> None:
        """On one placement of memory."""
        kernel = self.kernel
        seed = hash((kernel.kernarg_bytes, placement)) ^ len(kernel.body) * 1000003
        memory = Memory(seed, kernel.pointers, kernel.numbers, kernel.kernarg_bytes, self.loaded.image)
        machine = Machine(memory)
        machine.scalars[:108] = [Number(memory.word(4 * n), 0) for n in range(108)]  # what an earlier wave left
        machine.write(0, Number(memory.kernarg, FROM_KERNARG), 2)
        machine.write(EXEC, Number((1 << LANES) - 1))
        for lane in range(LANES):
            machine.vectors[lane][:6] = [Number(4 * lane)] + [Number(memory.word(64 * lane)) for _ in range(5)]
        run(self.loaded.steps, machine, entry, FUEL)
        tally.runs += 1
        for access in dict.fromkeys(machine.accesses):
            site = self.sites.get(access.pc)
            wrong = self.wrong(access, site, memory)
            if wrong:
                tally.found.append(self._finding(access, site, placement, wrong))
        for access in machine.accesses:
            site = self.sites.get(access.pc)
            (tally.loads if access.is_scalar else tally.vector)[site.reach if site else "lost"] += 1

    def wrong(self, access: Access, site: Site | None, memory: Memory) -> str:
        """What the certificate says falsely about an access; "" when it says nothing false."""
        if any(site.path == "none" for site in self.certificate.sites):
            return "" if self.certificate.verdict == "scalar_or_unknown" else "it lost its way and certifies"
        if site is None or site.path != ("scalar" if access.is_scalar else "vector"):
            return "it has no such site"
        where = self._where(access, memory)
        if access.is_scalar:
            return self._wrong_site(access, site, where) or self._wrong_verdict(where)
        if not self._follows_c(access, where):
            return ""
        return self._wrong_site(access, site, where) or self._wrong_vector(site, where)

    def _follows_c(self, access: Access, where: Where) -> bool:
        """Whether a vector access went where one of its pointers leads. For these the certifier takes all sources
        together and does not prove that halves belong together, as C would not let them be mixed."""
        if where.argument is not None:
            return bool(access.taint & FROM_ARGUMENT << self._number(where.argument))
        pointers = access.taint & ~FROM_MEMORY
        return bool(pointers & FROM_KERNARG) if where.near_kernarg else not pointers

    def _number(self, argument: int) -> int:
        return self.kernel.pointers.index(argument)

    def _where(self, access: Access, memory: Memory) -> Where:
        """Where an access really went."""
        owner, first = object_at(access.address), access.address - memory.kernarg
        padded = -(-self.kernel.kernarg_bytes // 16) * 16
        argument = owner - Object.ARGUMENT
        return Where(
            in_kernarg=0 <= first <= padded - access.nbytes,
            near_kernarg=owner == Object.KERNARG,
            past_object=owner == Object.CODE and access.address - CODE not in range(len(self.loaded.image)),
            fixed=self.loaded.is_fixed(access.address, access.nbytes),
            argument=self.kernel.pointers[argument] if 0 <= argument < len(self.kernel.pointers) else None,
        )

    def _wrong_site(self, access: Access, site: Site, where: Where) -> str:
        pointers = {o for n, o in enumerate(self.kernel.pointers) if access.taint & FROM_ARGUMENT << n}
        match site.reach:
            case "kernarg":
                return "" if where.in_kernarg and not pointers else "it is not in the kernel's arguments"
            case "kernarg_indexed":
                return "" if where.near_kernarg and not pointers else "it is not among the kernel's arguments"
            case "constant":
                return "" if where.fixed or where.past_object else "it is not constant"
            case "argument":
                if site.beside_kernarg and where.near_kernarg:
                    return ""
                if where.argument not in site.arguments:
                    return "it is behind none of the site's arguments"
                return "" if pointers and pointers <= set(site.arguments) else "it comes from another pointer"
        return ""

    def _wrong_verdict(self, where: Where) -> str:
        if self.certificate.verdict == "scalar_or_unknown" or where.near_kernarg or where.fixed or where.past_object:
            return ""
        if self.certificate.verdict == "scalar_args" and where.argument in self.certificate.scalar_args:
            return ""
        return "the verdict says that no scalar load goes there"

    def _wrong_vector(self, site: Site, where: Where) -> str:
        if where.near_kernarg and not self.certificate.kernarg_vector_loads and site.reads:
            return "no vector load of kernargs is certified"
        if where.argument is None and not where.near_kernarg and not where.fixed and not self.certificate.undeclared:
            return "no access outside of the arguments is certified"
        if where.argument in self.certificate.l2_args and not site.at_l2:
            return "this argument is certified to be touched at L2 alone"
        return ""

    def _finding(self, access: Access, site: Site | None, placement: int, wrong: str) -> str:
        text = self.kernel.body.replace("\n", "; ")
        return f"{self.kernel.name} placement {placement}: {wrong}: {access} {site} {self.certificate.verdict}: {text}"


@dataclass(frozen=True)
class Where:
    """Where an access really went: inside the slot, anywhere near it, beside the code object (an index too large), into
    its constant bytes, behind which argument."""

    in_kernarg: bool
    near_kernarg: bool
    past_object: bool
    fixed: bool
    argument: int | None
