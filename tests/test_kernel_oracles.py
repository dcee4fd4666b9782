# SPDX-License-Identifier: Apache-2.0
"""The oracles of the example kernels, judged by definitions that share nothing with them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from redline.kernels import NAMES, SPECS, decode, oracles
from redline.kernels.oracles import ORACLES, PARAMS, Geometry, activate, fma, matmul, rmsnorm, softmax

F64 = NDArray[np.float64]


def _nearest(exact: Fraction, kind: type[np.floating]) -> np.floating:
    """Round a fraction to nearest, ties to even, by comparing neighbours exactly."""
    guess = kind(float(exact))
    candidates = [np.nextafter(guess, kind(-np.inf)), guess, np.nextafter(guess, kind(np.inf))]
    finite = [c for c in candidates if np.isfinite(c)]
    unsigned = f"u{np.dtype(kind).itemsize}"
    return min(finite, key=lambda c: (abs(Fraction(float(c)) - exact), int(c.view(unsigned)) & 1))


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_fma_rounds_once(kind: type[np.floating]) -> None:
    """Against exact fractions, on operands whose exact result often lies halfway between two floats or next to it."""
    random = np.random.default_rng(7)
    bits = np.finfo(kind).nmant + 1
    far = {24: 62, 11: 6}[bits]  # brings products down among the denormals
    for _ in range(3000):
        down = random.choice([0, 0, far])
        a, b = (
            kind(int(random.integers(1 << bits - 1, 1 << bits)) * 2.0 ** -int(bits + e + down))
            for e in random.integers(0, 8, 2)
        )
        half_a_unit = float(a) * float(b) * 2.0**-bits
        c = kind(random.choice([1.0, -1.0]) * half_a_unit * random.choice([1.0, 2.0**bits, 2.0**-bits]))
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        if abs(exact) < Fraction(float(np.finfo(kind).max)):
            assert fma(a, b, c, kind) == _nearest(exact, kind), (a, b, c)


def test_fma_where_float64_loses_the_deciding_bit() -> None:
    """Sums that float64 rounds to a tie between two f32: there the naive a * b + c in float64 goes the wrong way."""
    random = np.random.default_rng(8)
    naive_is_wrong = 0
    for _ in range(2000):
        scale = 2.0 ** int(random.integers(-20, 20))
        odd = np.float32((int(random.integers(1 << 22, 1 << 23)) * 2 + 1) * 2.0**-23)
        tail = 2.0 ** -int(random.integers(15, 24))
        below_half = np.float32(1 + tail), np.float32((1 - tail) * 2.0**-24), odd
        tie = np.float32(1.5), odd, np.float32(random.choice([2.0**-60, -(2.0**-60)]))
        a, b, c = below_half if random.random() < 0.5 else tie
        b, c = np.float32(b * scale), np.float32(c * scale)
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        assert fma(a, b, c, np.float32) == _nearest(exact, np.float32), (a, b, c)
        naive_is_wrong += np.float32(np.float64(a) * np.float64(b) + np.float64(c)) != _nearest(exact, np.float32)
    assert naive_is_wrong > 500


def test_fma_is_not_a_product_and_a_sum() -> None:
    """One case worked by hand: (1 + 2^-12)^2 - 1 keeps the 2^-24 that a rounded product would lose."""
    a = np.float32(1 + 2**-12)
    assert fma(a, a, np.float32(-1), np.float32) == np.float32(2**-11 + 2**-24)
    assert a * a - np.float32(1) == np.float32(2**-11)


def test_fma_of_infinities_and_zeros() -> None:
    """NaN where IEEE has NaN, and the sign of an exact zero."""
    inf = np.float32(np.inf)
    assert np.isnan(fma(inf, np.float32(0), np.float32(1), np.float32))
    assert np.isnan(fma(inf, np.float32(1), -inf, np.float32))
    assert not np.signbit(fma(np.float32(1), np.float32(1), np.float32(-1), np.float32))
    assert np.signbit(fma(np.float32(-0.0), np.float32(1), np.float32(-0.0), np.float32))


def test_hash_is_splitmix64() -> None:
    """The generator's published first outputs for the seed 1234567 (state advances before it is mixed)."""
    out = np.zeros(5, np.uint64)
    golden = np.array([0x9E3779B97F4A7C15], np.uint64)
    oracles.hash(out, golden, 1234567, 5, 3, geometry=Geometry((64, 1, 1), (64, 1, 1)))
    assert out.tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_matmul_is_near_the_product() -> None:
    """Against numpy in f64, batches and pitches included."""
    random = np.random.default_rng(1)
    a, b = random.normal(size=(3, 20, 33)).astype(np.float32), random.normal(size=(3, 33, 18)).astype(np.float32)
    c = np.zeros((3, 20, 21), np.float32)
    sizes = (20, 18, 33, 33, 18, 21, 20 * 33, 33 * 18, 20 * 21)
    matmul(c.ravel(), a.ravel(), b.ravel(), *sizes, geometry=Geometry((32, 32, 3), (16, 16, 1)))
    assert np.allclose(c[:, :, :18], a.astype(np.float64) @ b.astype(np.float64), atol=1e-5)
    assert not c[:, :, 18:].any()


def test_rmsnorm_and_softmax_are_near_their_formulas() -> None:
    """In f64; the softmax differs more where its exponents are large, by their own rounding."""
    random = np.random.default_rng(2)
    x, weight = random.normal(size=(2, 300)).astype(np.float32), random.normal(size=300).astype(np.float32)
    out = np.zeros_like(x)
    geometry = Geometry((256, 1, 1), (128, 1, 1))
    rmsnorm(out.ravel(), x.ravel(), weight, 1e-5, 300, 300, geometry=geometry)
    assert np.allclose(out, _rmsnorm(x, weight), rtol=1e-6, atol=0)
    softmax(out.ravel(), x.ravel(), 3.0, 290, 300, geometry=geometry)
    assert np.allclose(out[:, :290], _softmax(3.0 * x[:, :290].astype(np.float64)), rtol=1e-5, atol=0)


def _rmsnorm(x: NDArray[np.float32] | F64, weight: NDArray[np.float32]) -> F64:
    wide = x.astype(np.float64)
    mean = (wide**2).mean(axis=-1, keepdims=True)
    result: F64 = wide / np.sqrt(mean + np.float32(1e-5)) * weight
    return result


def _softmax(x: F64) -> F64:
    power = np.exp(x - x.max(axis=-1, keepdims=True))
    result: F64 = power / power.sum(axis=-1, keepdims=True)
    return result


def test_geometry_that_activate_reports() -> None:
    """Full workgroups only in the counts, the rest in the remainders (AMDGPUUsage, hidden arguments)."""
    params = np.zeros((), PARAMS)
    params["stamp"], params["tag"] = 0x1122334455667788, 9
    words = np.zeros(16, np.uint32)
    empty = np.zeros(0, np.float32)
    geometry = Geometry((100, 7, 1), (16, 4, 1))
    activate(empty, empty, np.zeros(0, np.float16), words, params[()], geometry=geometry)
    assert words.tolist() == [6, 1, 1, 16, 4, 1, 4, 3, 0, 2, 700, 9, 0x55667788, 0x11223344, 0, 0]


def test_one_oracle_for_each_kernel() -> None:
    """By name, and exactness as the table says: all but the two that use approximations."""
    assert set(ORACLES) == set(NAMES)
    assert [name for name in NAMES if not SPECS[name].exact] == ["rmsnorm", "softmax"]


# The decoder


def test_decoder_is_big_enough() -> None:
    """The promises of the demo: launches, kernels, layers, a cache written in place, eight tokens that fit."""
    assert len(decode.LAUNCHES) >= 24
    assert {launch.kernel for launch in decode.LAUNCHES} == set(NAMES)
    assert decode.LAYERS == 2
    assert decode.HIDDEN >= 64
    assert decode.TOKENS == 8 <= decode.CONTEXT


def test_decoder_launches_fit_kernels_and_buffers() -> None:
    """Argument counts, workgroups, ranges inside buffers, and no unused buffer."""
    used: set[str] = set()
    for launch in decode.LAUNCHES:
        spec = SPECS[launch.kernel]
        assert spec.block in (None, launch.block)
        for argument, given in zip(spec.arguments, launch.arguments, strict=True):
            assert bool(argument.access) == isinstance(given, decode.Range)
            if isinstance(given, decode.Range):
                assert 0 <= given.start < given.stop <= decode.BUFFERS[given.buffer].nbytes
                used.add(given.buffer)
    assert used == set(decode.BUFFERS)


def test_decoder_computes_a_transformer() -> None:
    """The launch list, run by the oracles, against the same model written plainly in f64."""
    state = decode.initial()
    plain = _Plain({name: content.copy() for name, content in state.items()})
    for position in range(decode.TOKENS):
        values = decode.slot_values(position)
        token = decode.step(state, values)
        logits = plain.step(position, float(values["strength"]))
        assert np.allclose(state["logits"].view(np.float32), logits, atol=2e-3)
        second, first = np.sort(logits)[-2:]
        assert first - second > 4e-3, "too close to tell tokens apart: choose another seed"
        assert token == int(np.argmax(logits))


class _Plain:
    """The decoder as one would write it down: whole matrices, one head at a time, f64."""

    def __init__(self, state: decode.State) -> None:
        self.state = state
        self.token = decode.FIRST_TOKEN
        self.keys: list[list[F64]] = [[] for _ in range(decode.LAYERS)]
        self.values: list[list[F64]] = [[] for _ in range(decode.LAYERS)]

    def matrix(self, name: str, rows: int) -> F64:
        return self.state[name].view(np.float32).astype(np.float64).reshape(rows, -1)

    def step(self, position: int, strength: float) -> F64:
        code = np.array([_splitmix(self.token + decode.SEED, i) for i in range(8)], np.uint64).view(np.int8)
        embedding = self.state["embedding"].view(np.int8).reshape(64, 64).astype(np.float64)
        x = embedding @ code.astype(np.float64) * self.matrix("embedding_scale", 1)[0] / 128
        x += self.matrix("positions", decode.CONTEXT)[position]
        for layer in range(decode.LAYERS):
            x = x + self.attend(layer, _rmsnorm(x, self.state[f"norm_a{layer}"].view(np.float32)))
            x = x + self.feed(layer, _rmsnorm(x, self.state[f"norm_b{layer}"].view(np.float32)), strength)
        logits: F64 = _rmsnorm(x, self.state["final_norm"].view(np.float32)) @ self.matrix("output", 64)
        self.token = int(np.argmax(logits))
        return logits

    def attend(self, layer: int, x: F64) -> F64:
        qkv = (x @ self.matrix(f"qkv_weight{layer}", 64)).reshape(2, 4, 16)
        self.keys[layer].append(qkv[:, 2])
        self.values[layer].append(qkv[:, 3])
        heads = []
        for head in range(4):
            keys = np.array([key[head // 2] for key in self.keys[layer]])
            values = np.array([value[head // 2] for value in self.values[layer]])
            heads.append(_softmax(keys @ qkv[head // 2, head % 2] / 4) @ values)
        mixed: F64 = np.concatenate(heads) @ self.matrix(f"out_weight{layer}", 64)
        return mixed

    def feed(self, layer: int, x: F64, strength: float) -> F64:
        gain = self.state[f"gain{layer}"].view(np.float16)
        gain += np.float16(strength) * self.state[f"adapter{layer}"].view(np.float16)
        up = x @ self.matrix(f"up_weight{layer}", 64)
        gated = up * np.clip(up / 6 + 0.5, 0, 1) * gain.astype(np.float64)
        down: F64 = gated @ self.matrix(f"down_weight{layer}", 128)
        return down


def _splitmix(seed: int, index: int) -> int:
    mask = (1 << 64) - 1
    z = (seed + index * 0x9E3779B97F4A7C15) & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return z ^ z >> 31
