# SPDX-License-Identifier: Apache-2.0
"""Random kernels of scalar code: what compilers write about pointers, and the same with something wrong in it.

A program is a chain of idioms with branches back and forth between them. The writer keeps in mind what each register
pair probably holds, so that most loads mean something, and forgets it where paths meet. Every program is a function of
its seed, the same in every process. Does not run or judge them; `scalar_machine.py` and `soundness.py` do.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.radiowave.assemble import Kernel

#: Pairs that programs compute pointers in, and single registers for numbers.
PAIRS = ("s[0:1]", "s[2:3]", "s[4:5]", "s[6:7]", "s[8:9]", "s[10:11]", "s[12:13]", "vcc")
NUMBERS = tuple(f"s{n}" for n in range(14, 24))
RETURN, CALL = "s[30:31]", "s[34:35]"
POINTERS = {24: (0, 8), 32: (0, 8), 40: (0, 8, 24)}
CONDITIONS = ("scc0", "scc1", "scc0", "scc1", "vccz", "vccnz", "execz", "execnz")
SMALL = ("4", "8", "16", "0x40", "-4", "-8", "0")


def halves(pair: str) -> tuple[str, str]:
    """The two registers of a pair."""
    if pair == "vcc":
        return "vcc_lo", "vcc_hi"
    low, high = pair[2:-1].split(":")
    return f"s{low}", f"s{high}"


@dataclass
class Writer:
    """One program while it is written. `holds` is what pairs probably hold: kernarg, argument, memory, index."""

    rng: random.Random
    wild: float  # how often something is wrong
    kernarg_bytes: int
    gfx12: bool
    lines: list[str] = field(default_factory=list)
    holds: dict[str, str] = field(default_factory=lambda: {"s[0:1]": "kernarg"})
    indices: set[str] = field(default_factory=set)

    def add(self, *lines: str) -> None:
        """Append; now and then with something else in between."""
        for line in lines:
            if self.rng.random() < self.wild * 0.12:
                self.lines.append(self.rng.choice(NOISE)(self))
            self.lines.append(line)

    def is_wrong(self) -> bool:
        """Whether to do something else than a compiler would."""
        return self.rng.random() < self.wild

    def pair(self, *kinds: str) -> str:
        """A pair that probably holds one of these, else any."""
        fitting = [pair for pair, kind in self.holds.items() if kind in kinds]
        return self.rng.choice(PAIRS) if not fitting or self.is_wrong() else self.rng.choice(fitting)

    def target(self, kind: str) -> str:
        """A pair to write to; mostly not the kernarg pointer's."""
        pair = self.rng.choice(PAIRS if self.rng.random() < 0.1 else PAIRS[1:])
        self.holds[pair] = kind
        return pair

    def number(self) -> str:
        """A register with a number."""
        if self.indices and not self.is_wrong():
            return self.rng.choice(sorted(self.indices))
        return self.rng.choice(NUMBERS)


def kernarg_pointer(w: Writer) -> None:
    """Load a pointer argument."""
    base, offset = w.pair("kernarg"), w.rng.choice(POINTERS[w.kernarg_bytes])
    offset += w.rng.choice((4, -4, 8, 16, w.kernarg_bytes)) if w.is_wrong() else 0
    w.add(f"s_load_b64 {w.target('argument')}, {base}, {offset:#x}")


def kernarg_number(w: Writer) -> None:
    """Load a number argument."""
    base, to = w.pair("kernarg"), w.rng.choice(NUMBERS)
    offset = w.rng.randrange(-2, 12) * 4 if w.is_wrong() else w.rng.choice((16, 20))
    w.indices.add(to)
    w.add(f"s_load_b32 {to}, {base}, {offset:#x}")


def kernarg_wide(w: Writer) -> None:
    """Load both pointers, or both numbers as well."""
    base = w.pair("kernarg")
    if w.rng.random() < 0.5:
        w.holds.update({"s[4:5]": "argument", "s[6:7]": "argument"})
        w.add(f"s_load_b128 s[4:7], {base}, 0x0")
    else:
        w.holds.update({"s[4:5]": "argument", "s[6:7]": "argument", "s[8:9]": "index", "s[10:11]": "memory"})
        w.add(f"s_load_b256 s[4:11], {base}, 0x0")


def kernarg_indexed(w: Writer) -> None:
    """Load from a computed place among the arguments."""
    base, index = w.pair("kernarg"), w.number()
    if w.rng.random() < 0.4:
        w.add(f"s_load_b32 {w.rng.choice(NUMBERS)}, {base}, {index}{w.rng.choice(('', ' offset:0x10'))}")
        return
    low, high = halves(base)
    to = w.target("kernarg")
    to_low, to_high = halves(to)
    w.add(f"s_add_u32 {to_low}, {low}, {index}", f"s_addc_u32 {to_high}, {high}, 0")
    w.add(f"s_load_b32 {w.rng.choice(NUMBERS)}, {to}, 0x0")


def kernarg_moved(w: Writer) -> None:
    """Move the kernarg pointer by a constant, with the right high half or another."""
    low, high = halves(w.pair("kernarg"))
    constant = w.rng.choice(SMALL)
    extension = "-1" if constant.startswith("-") else "0"
    if w.is_wrong():
        extension = w.rng.choice(("0", "-1", "1"))
    to_low, to_high = halves(w.target("kernarg"))
    if w.rng.random() < 0.75:
        w.add(f"s_add_u32 {to_low}, {low}, {constant}", f"s_addc_u32 {to_high}, {high}, {extension}")
    else:
        w.add(f"s_sub_u32 {to_low}, {low}, {constant}", f"s_subb_u32 {to_high}, {high}, {extension}")
    if w.is_wrong():
        w.add(f"s_mov_b32 {to_high}, {high}")


def read(w: Writer) -> None:
    """A number through a pointer argument; small ones become indices."""
    base, to = w.pair("argument"), w.rng.choice(NUMBERS)
    offset = w.rng.choice(("0x0", "0x4", "0x40", "-0x8", w.number()))
    w.indices.add(to)
    w.add(f"s_load_b32 {to}, {base}, {offset}")


def read_pointer(w: Writer) -> None:
    """A pointer out of memory."""
    base = w.pair("argument", "memory")
    to = base if w.rng.random() < 0.2 else w.target("memory")
    w.holds[to] = "memory"
    w.add(f"s_load_b64 {to}, {base}, {w.rng.choice(('0x0', '0x8', '0x18'))}")


def read_through_memory(w: Writer) -> None:
    """A number through a pointer out of memory."""
    w.add(f"s_load_b32 {w.rng.choice(NUMBERS)}, {w.pair('memory')}, 0x0")


def read_buffer(w: Writer) -> None:
    """A number through a buffer resource made from a pointer."""
    low, high = halves(w.pair("argument"))
    w.add(f"s_mov_b32 s24, {low}", f"s_mov_b32 s25, {high}")
    if w.is_wrong():
        w.add("s_and_b32 s25, s25, 0xffff")
    w.add("s_mov_b32 s26, -1", "s_mov_b32 s27, 0x31014000")
    w.add(f"s_buffer_load_b32 {w.rng.choice(NUMBERS)}, s[24:27], {w.rng.choice(('0x0', '0x10', w.number()))}")


def index(w: Writer) -> None:
    """Add an index to a pointer: unsigned, signed, scaled or constant."""
    base = w.pair("argument", "argument", "kernarg")
    kind = w.holds.get(base, "memory")
    low, high = halves(base)
    to_low, to_high = halves(base if w.rng.random() < 0.4 else w.target(kind))
    number = w.number()
    match w.rng.randrange(5):
        case 0:
            more = "0"
        case 1:
            w.add(f"s_ashr_i32 s29, {number}, 31")
            more = "s29"
        case 2:
            w.add(f"s_mov_b32 s28, {number}", "s_mov_b32 s29, 0", "s_lshl_b64 s[28:29], s[28:29], 2")
            number, more = "s28", "s29"
        case 3:
            number = w.rng.choice(SMALL)
            more = "-1" if number.startswith("-") else "0"
        case _:
            w.add(f"s_ashr_i32 s29, {number}, 31", f"s_mov_b32 s28, {number}", "s_lshl_b64 s[28:29], s[28:29], 3")
            number, more = "s28", "s29"
    if w.is_wrong():
        more = w.rng.choice(("0", "-1", "1", "s29", w.number(), high))
    w.add(f"s_add_u32 {to_low}, {low}, {number}", f"s_addc_u32 {to_high}, {high}, {more}")
    if w.is_wrong():
        w.add(f"s_mov_b32 {to_high}, {high}")


def index_at_once(w: Writer) -> None:
    """gfx12 adds 64 bits in one instruction."""
    if not w.gfx12:
        return index(w)
    base, number = w.pair("argument", "kernarg"), w.number()
    w.add(f"s_mov_b32 s28, {number}", w.rng.choice(("s_mov_b32 s29, 0", f"s_ashr_i32 s29, {number}, 31")))
    w.add(f"s_{w.rng.choice(('add', 'add', 'sub'))}_nc_u64 {w.target(w.holds.get(base, 'memory'))}, {base}, s[28:29]")
    return None


def copy(w: Writer) -> None:
    """Move a pointer, at once or half by half."""
    base = w.pair("argument", "kernarg", "memory")
    to = w.target(w.holds.get(base, "memory"))
    (low, high), (to_low, to_high) = halves(base), halves(to)
    if w.rng.random() < 0.5:
        w.add(f"s_mov_b64 {to}, {base}")
        return
    if w.is_wrong():
        same = halves(w.pair(w.holds.get(base, "memory")))
        low, high = w.rng.choice(
            ((high, low), (low, halves(w.pair("argument"))[1]), (low, same[1]), (w.number(), high))
        )
    w.add(f"s_mov_b32 {to_low}, {low}", f"s_mov_b32 {to_high}, {high}")


def select(w: Writer) -> None:
    """One of two pointers."""
    one, other = w.pair("argument", "kernarg"), w.pair("argument", "kernarg")
    to = w.target(w.holds.get(one, "memory"))
    compare(w)
    if w.rng.random() < 0.3:
        w.add(f"s_cselect_b64 {to}, {one}, {other}")
        return
    (low, high), (other_low, other_high), (to_low, to_high) = halves(one), halves(other), halves(to)
    w.add(f"s_cselect_b32 {to_low}, {low}, {other_low}")
    if w.is_wrong():
        compare(w)
    w.add(f"s_cselect_b32 {to_high}, {high}, {other_high}")


def conditional(w: Writer) -> None:
    """Overwrite a pointer, or half of it, sometimes."""
    pair = w.pair("argument", "kernarg")
    compare(w)
    line = f"s_cmov_b64 {pair}, {w.pair('argument')}"
    if w.is_wrong():
        line = f"s_cmov_b32 {w.rng.choice(halves(pair))}, {w.number()}"
    w.add(line)


def compare(w: Writer) -> None:
    """Set SCC."""
    w.add(
        w.rng.choice(
            (
                f"s_cmp_eq_u32 {w.number()}, {w.rng.choice(('0', '1', w.number()))}",
                f"s_cmp_gt_i32 {w.number()}, {w.number()}",
                f"s_bitcmp1_b32 {w.number()}, {w.rng.randrange(4)}",
                f"s_cmp_lg_u64 {w.rng.choice(PAIRS)}, {w.rng.choice(PAIRS)}",
            )
        )
    )


def arithmetic(w: Writer) -> None:
    """Numbers from numbers."""
    to, a, b = w.rng.choice(NUMBERS), w.number(), w.number()
    w.indices.add(to)
    names = ("s_add_i32", "s_mul_i32", "s_or_b32", "s_xor_b32", "s_lshl_b32", "s_lshr_b32", "s_bfe_u32", "s_sub_i32")
    w.lines += [f"{w.rng.choice(names)} {to}, {a}, {w.rng.choice((b, '2', '7', '12'))}", f"s_and_b32 {to}, {to}, 0xfff"]


def constant_table(w: Writer) -> None:
    """A load of the object's own constants or variables, by the program counter."""
    to = w.target("memory")
    low, high = halves(to)
    name = "counter" if w.is_wrong() else "fixed"
    w.add(f"s_getpc_b64 {to}")
    w.lines += [f"s_add_u32 {low}, {low}, {name}@rel32@lo+4", f"s_addc_u32 {high}, {high}, {name}@rel32@hi+12"]
    offset = w.rng.choice(("0x0", "0x4", "0xc", "0x10", "s28"))
    if offset == "s28":
        w.lines.append(f"s_and_b32 s28, {w.number()}, 12")
    w.add(f"s_load_b32 {w.rng.choice(NUMBERS)}, {to}, {offset}")


def through_lanes(w: Writer) -> None:
    """A pair out of vector registers."""
    pair = w.pair("argument", "memory")
    low, high = halves(pair)
    to_low, to_high = halves(w.target("memory"))
    w.add(f"v_mov_b32 v1, {low}", f"v_mov_b32 v2, {high}")
    lane = w.rng.choice(("v_readfirstlane_b32 {}, {}", "v_readlane_b32 {}, {}, 0"))
    w.add(lane.format(to_low, "v1"), lane.format(to_high, "v2"))


def vector_load(w: Writer) -> None:
    """A load or store by lanes, whose address may be a pair's or a lane's."""
    pair = w.pair("argument", "argument", "kernarg")
    low, high = halves(pair)
    match w.rng.randrange(5):
        case 0:
            w.add(f"v_mov_b32 v4, {low}", f"v_mov_b32 v5, {high}", "global_load_b32 v1, v[4:5], off")
        case 1:
            w.add(f"global_store_b32 v0, v3, {pair}")
        case 2:
            w.add(f"global_atomic_add_u32 v1, v0, v3, {pair} RETURNED")
        case 3:
            w.add(f"global_load_b64 v[4:5], v0, {pair}", "global_load_b32 v3, v[4:5], off")
        case _:
            w.add(f"global_load_b32 v{w.rng.randrange(1, 6)}, v0, {pair}")


#: Lines that harm: writes of single registers and pairs that compilers keep clear of live pointers.
NOISE: tuple[Callable[[Writer], str], ...] = (
    lambda w: f"s_mov_b32 {w.rng.choice(halves(w.rng.choice(PAIRS)))}, {w.number()}",
    lambda w: f"s_bfm_b64 {w.rng.choice(PAIRS)}, {w.number()}, {w.number()}",
    lambda w: f"s_bitset{w.rng.randrange(2)}_b32 {w.rng.choice(halves(w.rng.choice(PAIRS)))}, {w.rng.randrange(32)}",
    lambda w: f"s_bitset{w.rng.randrange(2)}_b64 {w.rng.choice(PAIRS)}, {w.number()}",
    lambda w: f"s_cmovk_i32 {w.rng.choice(halves(w.rng.choice(PAIRS)))}, {w.rng.randrange(64):#x}",
    lambda w: f"s_movk_i32 {w.rng.choice(halves(w.rng.choice(PAIRS)))}, {w.rng.randrange(64):#x}",
    lambda w: f"s_addk_i32 {w.rng.choice(halves(w.rng.choice(PAIRS)))}, {w.rng.choice((1, 8, 0xFFF8)):#x}",
    lambda w: f"s_mulk_i32 {w.rng.choice(halves(w.rng.choice(PAIRS)))}, 0x3",
    lambda w: f"v_cmp_{w.rng.choice(('eq', 'ne'))}_u32 {w.rng.choice(halves(w.rng.choice(PAIRS)))}, v0, v1",
    lambda w: f"v_add_co_u32 v3, {w.rng.choice(halves(w.rng.choice(PAIRS)))}, v1, v2",
    lambda w: f"s_{w.rng.choice(('and', 'or'))}_saveexec_b32 {w.rng.choice(halves(w.rng.choice(PAIRS)))}, {w.number()}",
    lambda w: f"v_readlane_b32 {w.rng.choice(halves(w.rng.choice(PAIRS)))}, v{w.rng.randrange(6)}, 1",
    lambda w: f"v_writelane_b32 v1, {w.rng.choice(halves(w.rng.choice(PAIRS)))}, 0",
    lambda w: f"s_mov_b32 m0, {w.rng.randrange(8)}\ns_movreld_b{w.rng.choice((32, 64))} s2, s4".replace(
        "b64 s2, s4", "b64 s[2:3], s[4:5]"
    ),
    lambda w: f"s_mov_b32 m0, {w.rng.choice((0, 2, 4))}\ns_movrels_b64 {w.rng.choice(PAIRS[1:-1])}, s[4:5]",
    lambda w: f"s_lshl_b64 {w.rng.choice(PAIRS)}, {w.rng.choice(PAIRS)}, 1",
    lambda w: f"s_bfe_i64 {w.rng.choice(PAIRS)}, {w.rng.choice(PAIRS)}, 0x200000",
    lambda w: f"s_not_b64 {w.rng.choice(PAIRS)}, {w.rng.choice(PAIRS)}",
    lambda w: f"s_pack_lh_b32_b16 {w.rng.choice(halves(w.rng.choice(PAIRS)))}, {w.number()}, {w.number()}",
    lambda w: f"s_sub_u32 {w.rng.choice(halves(w.rng.choice(PAIRS)))}, {w.number()}, {w.number()}",
    lambda w: f"s_getpc_b64 {w.rng.choice(PAIRS)}",
    lambda w: f"s_mov_b64 {w.rng.choice(PAIRS)}, 0",
    lambda w: f"s_load_b32 {w.rng.choice(halves(w.rng.choice(PAIRS)))}, {w.rng.choice(PAIRS)}, 0x0",
    lambda w: f"s_load_b64 {w.rng.choice(PAIRS)}, {w.rng.choice(PAIRS)}, {w.rng.randrange(-8, 48):#x}",
    lambda w: f"s_swappc_b64 {RETURN}, {w.rng.choice(PAIRS)}" if w.rng.random() < 0.1 else "s_nop 0",
)

#: Idioms and how often each comes: about the arguments alone, and all.
ARGUMENTS_ALONE = {
    kernarg_number: 6,
    kernarg_pointer: 2,
    kernarg_wide: 1,
    kernarg_indexed: 2,
    kernarg_moved: 4,
    constant_table: 1,
    arithmetic: 1,
    compare: 1,
    vector_load: 2,
}
EVERYTHING = {
    **ARGUMENTS_ALONE,
    kernarg_pointer: 8,
    read: 9,
    read_pointer: 1,
    read_through_memory: 1,
    read_buffer: 2,
    index: 7,
    index_at_once: 1,
    copy: 4,
    select: 4,
    conditional: 1,
    through_lanes: 1,
}


def write(seed: int, target: str) -> Kernel:
    """The program of a seed, spelled for any target but for what gfx12 alone has."""
    rng = random.Random(f"{seed} {target.startswith('gfx12')}")
    kernarg_bytes = rng.choice(tuple(POINTERS))
    w = Writer(rng, rng.choice((0.0, 0.0, 0.04, 0.1, 0.3)), kernarg_bytes, target.startswith("gfx12"))
    name = f"k{seed}"
    idioms = rng.choice((ARGUMENTS_ALONE, EVERYTHING, EVERYTHING, EVERYTHING))
    w.add(f"s_load_b64 s[4:5], s[0:1], {rng.choice((0, 8)):#x}", "s_load_b32 s14, s[0:1], 0x10")
    w.holds["s[4:5]"] = "argument"
    w.indices.add("s14")
    sections = rng.randrange(2, 6)
    has_callee = rng.random() < 0.15
    for section in range(sections):
        w.lines.append(f"{name}_{section}:")
        for idiom in rng.choices(list(idioms), list(idioms.values()), k=rng.randrange(1, 5)):
            idiom(w)
        _branch(w, name, section, sections)
        if has_callee and rng.random() < 0.5:
            _call(w, name, section)
    w.lines += [f"{name}_{sections}:"]
    if has_callee:
        w.lines += ["s_endpgm", f"{name}_callee:"]
        for idiom in rng.choices(list(idioms), list(idioms.values()), k=rng.randrange(1, 4)):
            idiom(w)
        w.lines += [f"s_setpc_b64 {RETURN}"]
    pointers = POINTERS[kernarg_bytes]
    return Kernel(name, "\n".join(w.lines), pointers, (16, 20), kernarg_bytes)


def _branch(w: Writer, name: str, section: int, sections: int) -> None:
    """Back, forth or nowhere, mostly on a condition."""
    choice = w.rng.random()
    if choice < 0.35:
        place = w.rng.randrange(section + 1)
    elif choice < 0.6:
        place = w.rng.randrange(section + 1, sections + 1)
    else:
        return
    if w.rng.random() < 0.05:
        w.lines.append(f"s_branch {name}_{place}")
        return
    if w.rng.random() < 0.7:
        compare(w)
    w.lines.append(f"s_cbranch_{w.rng.choice(CONDITIONS)} {name}_{place}")


def _call(w: Writer, name: str, section: int) -> None:
    here = f"{name}_call{section}"
    low, high = halves(CALL)
    if w.rng.random() < 0.3:
        w.lines.append(f"s_call_b64 {RETURN}, {name}_callee")
        return
    w.lines += [f"s_getpc_b64 {CALL}", f"{here}:", f"s_add_u32 {low}, {low}, {name}_callee-{here}"]
    w.lines.append(f"s_addc_u32 {high}, {high}, ({name}_callee-{here})>>32")
    w.add(f"s_swappc_b64 {RETURN}, {CALL}")
