# SPDX-License-Identifier: Apache-2.0
"""Damaged and forged manifests: each is refused, or no kernel gets a narrower certificate than its code deserves.

A forger knows the format: in half of the cases the document's own hash is made right again.
"""

from __future__ import annotations

import copy
import json
from functools import cache
from random import Random
from typing import Any

from radiowave import Disassembler, Manifest, RadiowaveError, make_manifest, verify
from radiowave.documents import canonical
from radiowave.manifest import own_hash
from redline.kernels import build
from redline_fuzz import bounded
from redline_fuzz.hostile_mutations import cut, moved, random_bit, random_bytes

_KERNEL, _TARGET = "q8dot", "gfx1201"
#: What a forger would write in the place of anything.
_VALUES: tuple[Any, ...] = (None, True, False, 0, -1, 4, 8, 1 << 70, 0.5, "", "vmem_only", [], [0], [[]], {}, "\ud800")
_TEXT_DAMAGE = (random_bytes, random_bit, cut, moved)


@cache
def _honest() -> tuple[bytes, Manifest, Disassembler]:
    """A code object with a kernel that makes scalar loads, its manifest, and one disassembler for the process."""
    data, disassembler = build(_KERNEL, _TARGET, 32), Disassembler(seconds=10)
    return data, make_manifest(data, path="k.co", disassembler=disassembler), disassembler


def judge(seed: int, index: int) -> tuple[str, str]:
    """One damaged manifest, read and held against the right bytes."""
    random = Random(f"{seed} manifests {index}")
    data, honest, disassembler = _honest()
    forged = _forged(random, honest) if random.random() < 0.5 else _damaged(random, honest)
    try:
        found = verify(Manifest.parse(forged), data, disassembler)
    except RadiowaveError as error:
        return error.code, ""
    for name, certificate in found.certificates.items():
        weakest = certificate.weaker(honest.certificates[name])
        if weakest.as_json() | {"deciding": 0, "sites": 0} != certificate.as_json() | {"deciding": 0, "sites": 0}:
            return "accepted", f"{name} is certified {certificate.verdict}, its code {weakest.verdict}"
    return "accepted", ""


def _damaged(random: Random, honest: Manifest) -> bytes:
    data = honest.to_bytes()
    for _ in range(random.choice((1, 1, 3))):
        data = random.choice(_TEXT_DAMAGE)(data, random) or b" "  # nothing left cannot be damaged further
    return data


def _forged(random: Random, honest: Manifest) -> bytes:
    document = json.loads(honest.to_bytes())
    is_flattered = random.random() < 0.3
    if is_flattered:
        _flatter(random, document)
    for _ in range(random.choice((0 if is_flattered else 1, 1, 2, 5))):
        _edit(random, document)
    document["manifest_sha256"] = own_hash(document)
    return canonical(document)


def _flatter(random: Random, document: dict[str, Any]) -> None:
    """A narrower certificate for a kernel, well formed."""
    flattery = {"verdict": random.choice(("vmem_only", "scalar_args")), "scalar_args": [], "l2_args": [0, 8, 16]}
    document["kernels"][0]["certificate"] |= flattery


def _edit(random: Random, document: dict[str, Any]) -> None:
    """Somewhere in the tree a value is replaced, left out, doubled, or put under another key."""
    at: Any = document
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return
        key = random.choice(keys)
        if not isinstance(at[key], dict | list) or random.random() < 0.2:
            break
        at = at[key]
    how = random.randrange(4)
    if how == 0:
        del at[key]
    elif how == 1 and isinstance(at, list):
        at.insert(random.randrange(len(at) + 1), copy.deepcopy(at[key]))
    elif how == 2 and isinstance(at, dict):
        at[f"{key}x"] = copy.deepcopy(at[key])
    else:
        at[key] = copy.deepcopy(random.choice(_VALUES))


def run(count: int, seed: int = 1) -> dict[str, Any]:
    """`count` manifests."""
    return bounded.run(judge, count, seed)
