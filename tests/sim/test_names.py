# SPDX-License-Identifier: Apache-2.0
"""One name for an instruction, whichever generation printed it."""

from __future__ import annotations

import pytest

from redline.sim.names import ALIASES, normalise, split_suffix
from redline.sim.salu_float import SALU_FLOAT
from redline.sim.valu import VALU

# gfx10, gfx11 and gfx12 spelling of the same instruction, from LLVM's listings of the same kernels.
SPELLINGS = """
v_ffbh_u32_e32            v_clz_i32_u32_e32         v_clz_i32_u32_e32
v_ffbl_b32_e32            v_ctz_i32_b32_e32         v_ctz_i32_b32_e32
v_ffbh_i32_e32            v_cls_i32_e32             v_cls_i32_e32
v_mad_u64_u32             v_mad_u64_u32             v_mad_co_u64_u32
v_lshlrev_b64             v_lshlrev_b64             v_lshlrev_b64_e32
v_add_f64                 v_add_f64                 v_add_f64_e32
v_cvt_pkrtz_f16_f32       v_cvt_pk_rtz_f16_f32_e32  v_cvt_pk_rtz_f16_f32
v_mul_legacy_f32_e32      v_mul_dx9_zero_f32_e64    v_dual_mul_dx9_zero_f32
v_mov_b32_dpp             v_mov_b32_e64_dpp         v_dual_mov_b32
v_dot2c_f32_f16           v_dot2acc_f32_f16_e32     v_dual_dot2acc_f32_f16
s_add_u32                 s_add_u32                 s_add_co_u32
s_subb_u32                s_subb_u32                s_sub_co_ci_u32
s_andn2_saveexec_b32      s_and_not1_saveexec_b32   s_and_not1_saveexec_b32
s_ff1_i32_b64             s_ctz_i32_b64             s_ctz_i32_b64
s_load_dwordx4            s_load_b128               s_load_b128
global_load_dwordx3       global_load_b96           global_load_b96
global_load_short_d16_hi  global_load_d16_hi_b16    global_load_d16_hi_b16
global_store_byte         global_store_b8           global_store_b8
buffer_load_ubyte         buffer_load_u8            buffer_load_u8
global_atomic_add_x2      global_atomic_add_u64     global_atomic_add_u64
global_atomic_smax        global_atomic_max_i32     global_atomic_max_i32
global_atomic_cmpswap     global_atomic_cmpswap_b32 global_atomic_cmpswap_b32
ds_read2st64_b32          ds_load_2addr_stride64_b32 ds_load_2addr_stride64_b32
ds_write_b64              ds_store_b64              ds_store_b64
"""


@pytest.mark.parametrize("line", SPELLINGS.strip().splitlines())
def test_three_generations_one_name(line: str) -> None:
    """All spellings of a line become the same name."""
    assert len({normalise(spelling) for spelling in line.split()}) == 1


def test_newest_spelling_stays() -> None:
    """A name never leads to another alias, so normalising twice changes nothing."""
    assert [name for name in ALIASES.values() if normalise(name) != name] == []


def test_different_meanings_stay_apart() -> None:
    """Spellings that look related but compute something else."""
    apart = [("v_max_f32", "v_max_num_f32"), ("ds_cmpst_b32", "ds_cmpstore_b32"), ("v_dot4_i32_i8", "v_dot4_i32_iu8")]
    apart += [("v_dual_cndmask_b32", "v_cndmask_b32"), ("v_mad_f32", "v_fma_f32"), ("v_fma_mix_f32", "v_fma_f32")]
    for left, right in apart:
        assert normalise(left) != normalise(right)


def test_vector_and_scalar_float_tables_use_normal_names() -> None:
    """No table row hides behind a spelling that is translated away."""
    assert [name for name in {**VALU, **SALU_FLOAT} if normalise(name) != name] == []
    assert [new for old, new in ALIASES.items() if old in VALU and new != old] == []


def test_suffixes_in_printed_order() -> None:
    """Encoding suffixes are told apart from type suffixes."""
    assert split_suffix("v_add_f32_e64_dpp") == ("v_add_f32", ("e64", "dpp"))
    assert split_suffix("v_mov_b32_sdwa") == ("v_mov_b32", ("sdwa",))
    assert split_suffix("v_mov_b32_dpp8") == ("v_mov_b32", ("dpp8",))
    assert split_suffix("v_cvt_f32_f16") == ("v_cvt_f32_f16", ())
