# SPDX-License-Identifier: Apache-2.0
"""Which instructions the software device executes, by name, read off the tables that execute them.

Names are the newest spelling (`names.py`). Used by the documentation and by tests that must reach every entry; nothing
here executes anything.
"""

from __future__ import annotations

from .atomics import ATOMICS
from .control import BRANCHES, OTHERS
from .control import NO_EFFECT as NO_EFFECT
from .lds import ATOMIC_NAMES, PERMUTES
from .lds import LOADS as LDS_LOADS
from .lds import STORES as LDS_STORES
from .salu import SCALAR
from .valu import VALU
from .vmem import LOADS, STORES

SPACES = ("global", "flat", "buffer")


def scalar_loads() -> list[str]:
    """Scalar loads, plain and through a buffer descriptor."""
    wide = [f"{unit}_b{bits}" for unit in ("s_load", "s_buffer_load") for bits in (32, 64, 96, 128, 256, 512)]
    return wide + [f"s_load_{kind}{bits}" for bits in (8, 16) for kind in "iu"]


def vector_memory(space: str) -> list[str]:
    """Loads, stores and atomics of one address space."""
    names = [f"load_{what}" for what in LOADS] + [f"store_{what}" for what in STORES]
    return [f"{space}_{name}" for name in (*names, *(f"atomic_{what}" for what in ATOMICS))]


def lds_atomics() -> list[str]:
    """DS spellings of the atomics, without and with a result."""
    spelled = {meaning: verb for verb, meaning in ATOMIC_NAMES.items() if verb != "cmpst"}
    found = []
    for name in ATOMICS:
        verb, _, kind = name.rpartition("_")
        verb = spelled.get(verb, verb)
        plain = [] if verb == "storexchg" else [f"ds_{verb}_{kind}"]  # an exchange without a result is a store
        found += [*plain, f"ds_{verb}_rtn_{kind}"]
    return found + [f"ds_cmpst_{form}b{bits}" for bits in (32, 64) for form in ("", "rtn_")]


def lds() -> list[str]:
    """Loads, stores, pairs, atomics and permutations of the DS unit."""
    names = [f"ds_load_{what}" for what in LDS_LOADS] + [f"ds_store_{what}" for what in LDS_STORES]
    for verb in ("load", "store"):
        names += [f"ds_{verb}_2addr_{far}b{bits}" for far in ("", "stride64_") for bits in (32, 64)]
    return [*names, *lds_atomics(), *PERMUTES, "ds_swizzle_b32"]


def entries() -> dict[str, list[str]]:
    """Every name by group, sorted."""
    groups = {
        "Vector ALU": list(VALU),
        "Scalar ALU": list(SCALAR),
        "Scalar loads": scalar_loads(),
        "Global memory": vector_memory("global"),
        "Flat memory": vector_memory("flat"),
        "Buffers": vector_memory("buffer"),
        "LDS and lane permutations": lds(),
        "Jumps, calls, barriers, end": [*BRANCHES, *OTHERS],
        "Without effect here": list(NO_EFFECT),
    }
    return {title: sorted(names) for title, names in groups.items()}
