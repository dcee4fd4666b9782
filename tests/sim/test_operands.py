# SPDX-License-Identifier: Apache-2.0
"""Instruction text taken apart, and what the bits of a printed constant are."""

from __future__ import annotations

import pytest

from redline.sim.operands import EXEC, M0, TTMP, VCC, Operand, ParseError, constant_bits, operand, parse


def _places(text: str) -> list[tuple[str, int, int]]:
    (one,) = parse(text)
    return [(place.kind, place.first, place.count) for place in one.operands]


def test_registers_of_every_file_are_found_by_name() -> None:
    """Ranges, ttmp, the named scalars, and null, which is no register."""
    assert _places("v_mov_b32 v255, s105") == [("v", 255, 1), ("s", 105, 1)]
    assert _places("s_load_b128 s[4:7], s[0:1], null") == [("s", 4, 4), ("s", 0, 2), ("null", 0, 0)]
    assert _places("v_lshl_or_b32 v0, ttmp9, 8, v0")[1] == ("s", TTMP + 9, 1)
    names = {"vcc": (VCC, 2), "vcc_hi": (VCC + 1, 1), "exec": (EXEC, 2), "exec_lo": (EXEC, 1), "m0": (M0, 1)}
    for name, (first, count) in names.items():
        assert operand(name) == Operand(name, "s", first, count)


def test_modifiers_follow_the_last_operand() -> None:
    """With brackets and quotes that hold commas, and a modifier without a value."""
    (one,) = parse("v_pk_add_f16 v0, v1, v2 op_sel:[0,1] op_sel_hi:[1,0] neg_lo:[1,0] clamp")
    assert one.modifiers == {"op_sel": "[0,1]", "op_sel_hi": "[1,0]", "neg_lo": "[1,0]", "clamp": ""}
    (swizzle,) = parse('ds_swizzle_b32 v1, v2 offset:swizzle(BITMASK_PERM,"01pip")')
    assert swizzle.modifiers == {"offset": 'swizzle(BITMASK_PERM,"01pip")'}
    (load,) = parse("global_load_b32 v1, v[2:3], off offset:-28 th:TH_LOAD_NT scope:SCOPE_DEV")
    assert load.modifiers == {"offset": "-28", "th": "TH_LOAD_NT", "scope": "SCOPE_DEV"}
    (dpp,) = parse("v_mov_b32_dpp v0, v1 quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0x5 bound_ctrl:1")
    assert (dpp.name, dpp.suffixes) == ("v_mov_b32", ("dpp",))
    assert dpp.modifiers == {"quad_perm": "[3,2,1,0]", "row_mask": "0xf", "bank_mask": "0x5", "bound_ctrl": "1"}


def test_both_halves_of_a_dual_instruction_are_parsed() -> None:
    first, second = parse("v_dual_fmac_f32 v0, s1, v2 :: v_dual_mov_b32 v1, 0x1234")
    assert [o.token for o in first.operands] == ["v0", "s1", "v2"]
    assert [o.token for o in second.operands] == ["v1", "0x1234"]


@pytest.mark.parametrize(
    ("text", "neg", "absolute", "sext"),
    [
        ("-v1", True, False, False),
        ("|v1|", False, True, False),
        ("-|s[2:3]|", True, True, False),
        ("neg(1.0)", True, False, False),
        ("sext(v3)", False, False, True),
        ("-1", False, False, False),
        ("-4.0", False, False, False),
    ],
)
def test_sign_modifiers_are_told_from_negative_numbers(text: str, neg: bool, absolute: bool, sext: bool) -> None:
    found = operand(text)
    assert (found.neg, found.abs, found.sext) == (neg, absolute, sext)


def test_true16_names_say_the_half() -> None:
    assert [(o.high, o.halved) for o in map(operand, ("v1.l", "v1.h", "v1"))] == [
        (False, True),
        (True, True),
        (False, False),
    ]


# Bits by the IEEE formats and by the manuals' table of inline constants.
@pytest.mark.parametrize(
    ("token", "kind", "bits"),
    [
        ("1.0", "f16", 0x3C00),
        ("1.0", "f32", 0x3F800000),
        ("1.0", "f64", 0x3FF0000000000000),
        ("-4.0", "f16", 0xC400),
        ("-0.5", "f32", 0xBF000000),
        ("1.0", "b32", 0x3F800000),
        ("1.0", "b64", 0x3FF0000000000000),
        ("0.15915494", "f16", 0x3118),
        ("0.15915494", "f32", 0x3E22F983),
        ("0.15915494309189532", "f64", 0x3FC45F306DC9C882),
        ("5", "f32", 5),  # an integer in a float operand is its bits: a denormal
        ("-1", "f32", 0xFFFFFFFF),
        ("-1", "f16", 0xFFFF),
        ("-16", "f64", 0xFFFFFFFFFFFFFFF0),
        ("-1", "u64", 0xFFFFFFFFFFFFFFFF),
        ("0x3ff80000", "f64", 0x3FF8000000000000),  # the high half
        ("0x80000000", "u64", 0x80000000),
        ("0x80000000", "b64", 0x80000000),
        ("0x80000000", "i64", 0xFFFFFFFF80000000),
        ("0x80000001", "i64", 0xFFFFFFFF80000001),
        ("0x7fffffff", "i64", 0x7FFFFFFF),
        ("lit(0xffffffff)", "b32", 0xFFFFFFFF),
        ("0xffffc248", "f16", 0xC248),  # true16 text extends the sign
        ("1.0", "pk_f16", 0x3C00),  # the low half only
        ("0x3c003c00", "pk_f16", 0x3C003C00),
        ("-1", "pk_i16", 0xFFFFFFFF),
        ("2.0", "pk_u16", 0x40000000),
    ],
)
def test_the_same_token_has_other_bits_for_other_types(token: str, kind: str, bits: int) -> None:
    assert constant_bits(token, kind) == bits


@pytest.mark.parametrize(
    ("token", "kind"),
    [("0x12345", "f16"), ("1.0", "i16"), ("0.15915494", "f64"), ("0x100000000", "b32"), ("ten", "b32")],
)
def test_a_constant_that_means_nothing_in_its_operand_is_refused(token: str, kind: str) -> None:
    with pytest.raises(ParseError):
        constant_bits(token, kind)


@pytest.mark.parametrize("text", ["v_mov_b32 v256, 0", "v_mov_b32 v[3:2], 0", "s_mov_b32 s106, 0", "s_mov_b32 s1.h, 0"])
def test_registers_that_do_not_exist_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


def test_a_modifier_printed_twice_is_refused() -> None:
    with pytest.raises(ParseError, match="twice"):
        parse("v_add_f32 v0, v1, v2 clamp clamp")
