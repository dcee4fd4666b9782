# SPDX-License-Identifier: Apache-2.0
"""One name for each instruction, whatever generation and encoding the disassembler printed it for.

`normalise("v_add_f32_e32") == "v_add_f32"`; a gfx10 name becomes the gfx11 or gfx12 one. Only spellings
that mean the same are joined: gfx12's `v_max_num_f32` treats NaN otherwise than `v_max_f32`, so both keep
their names.
"""

from __future__ import annotations

SUFFIXES = ("_e32", "_e64", "_dpp8", "_dpp", "_sdwa")

ALIASES: dict[str, str] = {}


def split_suffix(mnemonic: str) -> tuple[str, tuple[str, ...]]:
    """The name as printed without its encoding suffixes, and those suffixes, last printed last.

    >>> split_suffix("v_add_f32_e64_dpp")
    ('v_add_f32', ('e64', 'dpp'))
    """
    found: list[str] = []
    while suffix := next((s for s in SUFFIXES if mnemonic.endswith(s)), ""):
        mnemonic = mnemonic.removesuffix(suffix)
        found.insert(0, suffix[1:])
    return mnemonic, tuple(found)


def normalise(mnemonic: str) -> str:
    """The one name that the tables of this package use.

    >>> normalise("v_lshlrev_b64_e32")
    'v_lshlrev_b64'
    """
    bare = split_suffix(mnemonic)[0]
    return ALIASES.get(bare, bare)
