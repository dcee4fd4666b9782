# SPDX-License-Identifier: Apache-2.0
"""Judge certificates by running the kernels: no executed load may go where its certificate says that none goes.

Assembles random kernels of `scalar_programs.py`, certifies them, runs each on several placements of memory, and
compares every access with its certificate (`site_judge.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from radiowave import CodeObject, Disassembler, certify
from radiowave import elf as e
from tests.radiowave.assemble import Kernel, assemble_many, object_text
from tests.radiowave.scalar_machine import EXEC, LANES, Access, Machine, Number, Step, run, steps_of
from tests.radiowave.scalar_memory import FROM_KERNARG, Memory
from tests.radiowave.scalar_programs import write
from tests.radiowave.site_judge import Judge
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

    def __str__(self) -> str:
        count, loads = max(self.programs.total(), 1), max(self.loads.total(), 1)
        verdicts = ", ".join(f"{number / count:.0%} {word}" for word, number in self.programs.most_common())
        classes = ", ".join(f"{number / loads:.1%} {word}" for word, number in self.loads.most_common())
        return (
            f"{self.programs.total():,} programs ({self.back_edges / count:.0%} with a back edge; {verdicts}), "
            f"{self.runs:,} runs with {self.loads.total() / max(self.runs, 1):.1f} scalar and "
            f"{self.vector.total() / max(self.runs, 1):.1f} vector accesses on average; scalar loads: {classes}"
        )


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
        judge = Judge(kernel, certificate, loaded.variables)
        tally.programs[certificate.verdict] += 1
        tally.back_edges += _has_back_edge(kernel)
        for placement in range(PLACEMENTS):
            memory, accesses = loaded.run(kernel, code_object.kernels[kernel.name].entry_va, placement)
            tally.runs += 1
            tally.found += _judged(judge, accesses, memory, placement, tally)
    return tally


def _judged(judge: Judge, accesses: Sequence[Access], memory: Memory, placement: int, tally: Tally) -> Iterator[str]:
    """What is wrong about the accesses of one run, each told once; counts them by class."""
    seen: set[str] = set()
    for access in accesses:
        sites = judge.sites.get(access.pc, ())
        (tally.loads if access.is_scalar else tally.vector)[sites[0].reach if sites else "lost"] += 1
        wrong = judge.wrong(access, memory)
        if wrong and wrong not in seen:
            seen.add(wrong)
            text = judge.kernel.body.replace("\n", "; ")
            head = f"{judge.kernel.name} placement {placement}: {wrong}"
            yield f"{head}: {access} {sites} {judge.certificate.verdict}: {text}"
        if judge.broke_c(access, memory):
            return


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
    """An object as the machine sees it: its memory by ELF address, its code, and where kernels may write to it."""

    image: bytes
    steps: dict[int, tuple[Step, int]]
    variables: tuple[range, ...]

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
        (table,) = [section for section in elf.sections if section.type == e.SHT_SYMTAB]
        writable = {section.index for section in kept if section.flags & e.SHF_WRITE}
        objects = [s for s in elf.symbols(table) if s.type == e.STT_OBJECT and s.section in writable]
        return cls(bytes(image), steps, tuple(range(s.value, s.value + s.nbytes) for s in objects))

    def run(self, kernel: Kernel, entry: int, placement: int) -> tuple[Memory, list[Access]]:
        """One wave of a kernel on one placement of memory: the accesses in order."""
        seed = int(kernel.name[1:]) * PLACEMENTS + placement
        memory = Memory(seed, kernel.pointers, kernel.numbers, kernel.kernarg_bytes, self.image)
        machine = Machine(memory)
        machine.scalars[:108] = [Number(memory.word(4 * n)) for n in range(108)]  # what an earlier wave left
        machine.write(0, Number(memory.kernarg, FROM_KERNARG), 2)
        machine.write(EXEC, Number((1 << LANES) - 1))
        for lane in range(LANES):
            machine.vectors[lane][:6] = [Number(4 * lane)] + [Number(memory.word(64 * lane)) for _ in range(5)]
        run(self.steps, machine, entry, FUEL)
        return memory, machine.accesses


def programs_to_find(target: str, disassembler: Disassembler, most: int) -> int | None:
    """How many programs it takes to find something, in steps of an object; None when `most` find nothing."""
    for first in range(0, most, PER_OBJECT):
        if judge_seeds(range(first, first + PER_OBJECT), target, disassembler).found:
            return first + PER_OBJECT
    return None
