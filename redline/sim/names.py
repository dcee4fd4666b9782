# SPDX-License-Identifier: Apache-2.0
"""One name for each instruction, whatever generation and encoding the disassembler printed it for.

The name used is the newest spelling (gfx12 where gfx12 has the instruction, else gfx11), without encoding
suffix. Only spellings that mean the same are joined. Kept apart on purpose: gfx12's `v_max_num_f32` from
`v_max_f32` (other NaN rule), gfx10's `ds_cmpst_b32` from `ds_cmpstore_b32` (data operands the other way
round), `v_dot4_i32_i8` from `v_dot4_i32_iu8` (signs in a modifier). This file knows spellings only, not
what an instruction does.

Sources: the instruction definitions of LLVM 22 for GFX10, GFX11 and GFX12 as its disassembler prints them.
"""

from __future__ import annotations

SUFFIXES = ("_e32", "_e64", "_dpp8", "_dpp", "_sdwa")

_SCALAR: dict[str, str] = {
    "s_add_u32": "s_add_co_u32",
    "s_addc_u32": "s_add_co_ci_u32",
    "s_sub_u32": "s_sub_co_u32",
    "s_subb_u32": "s_sub_co_ci_u32",
    "s_add_i32": "s_add_co_i32",
    "s_sub_i32": "s_sub_co_i32",
    "s_addk_i32": "s_addk_co_i32",
    "s_flbit_i32_b32": "s_clz_i32_u32",
    "s_flbit_i32_b64": "s_clz_i32_u64",
    "s_flbit_i32": "s_cls_i32",
    "s_flbit_i32_i64": "s_cls_i32_i64",
    "s_inst_prefetch": "s_set_inst_prefetch_distance",
}

_VECTOR: dict[str, str] = {
    "v_ffbh_u32": "v_clz_i32_u32",
    "v_ffbh_i32": "v_cls_i32",
    "v_ffbl_b32": "v_ctz_i32_b32",
    "v_mad_u64_u32": "v_mad_co_u64_u32",
    "v_mad_i64_i32": "v_mad_co_i64_i32",
    "v_mul_legacy_f32": "v_mul_dx9_zero_f32",
    "v_fma_legacy_f32": "v_fma_dx9_zero_f32",
    "v_fmac_legacy_f32": "v_fmac_dx9_zero_f32",
    "v_dot2c_f32_f16": "v_dot2acc_f32_f16",
    "v_cvt_pkrtz_f16_f32": "v_cvt_pk_rtz_f16_f32",
    "v_cvt_pknorm_i16_f32": "v_cvt_pk_norm_i16_f32",
    "v_cvt_pknorm_u16_f32": "v_cvt_pk_norm_u16_f32",
    "v_cvt_rpi_i32_f32": "v_cvt_nearest_i32_f32",
    "v_cvt_flr_i32_f32": "v_cvt_floor_i32_f32",
}

_LOADS: dict[str, str] = {
    "dword": "b32",
    "dwordx2": "b64",
    "dwordx3": "b96",
    "dwordx4": "b128",
    "ubyte": "u8",
    "sbyte": "i8",
    "ushort": "u16",
    "sshort": "i16",
    "short_d16": "d16_b16",
    "short_d16_hi": "d16_hi_b16",
    "ubyte_d16": "d16_u8",
    "ubyte_d16_hi": "d16_hi_u8",
    "sbyte_d16": "d16_i8",
    "sbyte_d16_hi": "d16_hi_i8",
}

_STORES: dict[str, str] = {
    "dword": "b32",
    "dwordx2": "b64",
    "dwordx3": "b96",
    "dwordx4": "b128",
    "byte": "b8",
    "short": "b16",
    "byte_d16_hi": "d16_hi_b8",
    "short_d16_hi": "d16_hi_b16",
}

# gfx10 spelling -> newer spelling without its width; _x2 is the 64-bit form.
_ATOMICS: dict[str, str] = {
    "add": "add_u",
    "sub": "sub_u",
    "smin": "min_i",
    "umin": "min_u",
    "smax": "max_i",
    "umax": "max_u",
    "and": "and_b",
    "or": "or_b",
    "xor": "xor_b",
    "inc": "inc_u",
    "dec": "dec_u",
    "swap": "swap_b",
    "cmpswap": "cmpswap_b",
    "fmin": "min_f",
    "fmax": "max_f",
}


def _boolean_aliases() -> dict[str, str]:
    """s_andn2_b32 and its kin: the digit says which operand is inverted."""
    aliases: dict[str, str] = {}
    for width in ("b32", "b64"):
        for old, new in (("andn2", "and_not1"), ("orn2", "or_not1"), ("andn1", "and_not0"), ("orn1", "or_not0")):
            aliases[f"s_{old}_{width}"] = f"s_{new}_{width}"
            aliases[f"s_{old}_saveexec_{width}"] = f"s_{new}_saveexec_{width}"
            aliases[f"s_{old}_wrexec_{width}"] = f"s_{new}_wrexec_{width}"
        aliases[f"s_ff1_i32_{width}"] = f"s_ctz_i32_{width}"
    return aliases


def _memory_aliases() -> dict[str, str]:
    aliases: dict[str, str] = {}
    for unit in ("global", "flat", "scratch", "buffer"):
        aliases |= {f"{unit}_load_{old}": f"{unit}_load_{new}" for old, new in _LOADS.items()}
        aliases |= {f"{unit}_store_{old}": f"{unit}_store_{new}" for old, new in _STORES.items()}
        for old, new in _ATOMICS.items():
            aliases[f"{unit}_atomic_{old}"] = f"{unit}_atomic_{new}32"
            aliases[f"{unit}_atomic_{old}_x2"] = f"{unit}_atomic_{new}64"
    for unit in ("s_load", "s_buffer_load"):
        for count, width in (("", 32), ("x2", 64), ("x4", 128), ("x8", 256), ("x16", 512)):
            aliases[f"{unit}_dword{count}"] = f"{unit}_b{width}"
    return aliases


def _lds_aliases() -> dict[str, str]:
    aliases: dict[str, str] = {}
    bytes_and_halves = ("u8", "i8", "u16", "u8_d16", "u8_d16_hi", "i8_d16", "i8_d16_hi", "u16_d16", "u16_d16_hi")
    for kind in ("b32", "b64", "b96", "b128", "i16", *bytes_and_halves):
        aliases[f"ds_read_{kind}"] = f"ds_load_{kind}"
    for kind in ("b8", "b16", "b8_d16_hi", "b16_d16_hi", "b32", "b64", "b96", "b128"):
        aliases[f"ds_write_{kind}"] = f"ds_store_{kind}"
    for kind in ("b32", "b64"):
        for old, new in (("read", "load"), ("write", "store")):
            aliases[f"ds_{old}2_{kind}"] = f"ds_{new}_2addr_{kind}"
            aliases[f"ds_{old}2st64_{kind}"] = f"ds_{new}_2addr_stride64_{kind}"
        aliases[f"ds_wrxchg_rtn_{kind}"] = f"ds_storexchg_rtn_{kind}"
        aliases[f"ds_wrxchg2_rtn_{kind}"] = f"ds_storexchg_2addr_rtn_{kind}"
        aliases[f"ds_wrxchg2st64_rtn_{kind}"] = f"ds_storexchg_2addr_stride64_rtn_{kind}"
    return aliases


def _compare_aliases() -> dict[str, str]:
    kinds = ("f16", "f32", "f64")
    return {f"v_{form}_tru_{kind}": f"v_{form}_t_{kind}" for form in ("cmp", "cmpx") for kind in kinds}


ALIASES: dict[str, str] = (
    _SCALAR | _VECTOR | _boolean_aliases() | _memory_aliases() | _lds_aliases() | _compare_aliases()
)

# Half of a VOPD whose text lacks an operand that the single instruction prints (VCC): it keeps its own name.
_DUAL_ONLY = frozenset({"v_dual_cndmask_b32"})


def split_suffix(mnemonic: str) -> tuple[str, tuple[str, ...]]:
    """The name as printed without its encoding suffixes, and those suffixes in printed order.

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

    >>> normalise("v_ffbh_u32_e32"), normalise("s_load_dwordx4"), normalise("v_dual_add_f32")
    ('v_clz_i32_u32', 's_load_b128', 'v_add_f32')
    """
    bare = split_suffix(mnemonic)[0]
    if bare.startswith("v_dual_") and bare not in _DUAL_ONLY:
        bare = "v_" + bare.removeprefix("v_dual_")
    return ALIASES.get(bare, bare)
