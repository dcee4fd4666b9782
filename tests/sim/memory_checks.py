# SPDX-License-Identifier: Apache-2.0
"""One check for each load, store and atomic of every address space: a text, a machine, and Python integers as oracle.

What a name means is read from its letters here, not from the device's tables: `i8` extends the sign, `d16_hi` is the
upper half, `b96` three registers. Which instructions there are is `inventory.py`'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from redline.sim.memory import Memory
from tests.sim.machine import Machine

STEP, BYTES, OLD = 16, 1024, 0x1111A5A5
LANES = np.arange(32)
OFF = 3  # the lane that is off
_PARTS = re.compile(r"(global|flat|buffer|ds)_(load|store|atomic)_(.+)$")


class Place:
    """A machine whose lanes point 16 bytes apart into 1024 random bytes of one space."""

    def __init__(self, space: str, memory: Memory) -> None:
        self.space, self.memory = space, memory
        self.machine = Machine("gfx1201" if space != "buffer" else "gfx1100", lds_bytes=BYTES, vgprs=64)
        self.machine.memory = memory
        random = np.random.default_rng(7)
        self.data = bytearray(random.bytes(BYTES))
        self.values = random.integers(0, 1 << 32, (8, 32), np.uint64).astype(np.uint32)
        self.at = memory.allocate(BYTES)
        on = np.broadcast_to(LANES != OFF, (1, 32)).copy()
        self.machine.front.set_exec(on)
        self.point(LANES * STEP)
        if space == "buffer":
            words = np.array([self.at & 0xFFFFFFFF, self.at >> 32, BYTES, 0x30000000], np.uint64).astype(np.uint32)
            self.machine.state.scalar[0, 4:8] = words
        self.put(bytes(self.data))

    def point(self, offsets: np.ndarray[Any, Any]) -> None:
        self.offsets = [int(offset) for offset in offsets]
        if self.space in ("global", "flat"):
            self.machine.set_v64(0, (self.at + offsets).astype(np.uint64))
        else:
            self.machine.set_v(0, offsets)

    def put(self, data: bytes) -> None:
        self.data = bytearray(data)
        if self.space == "ds":
            self.machine.state.lds.view(np.uint8)[:] = np.frombuffer(data, np.uint8)
        else:
            self.memory.store(self.at, data)

    def got(self) -> bytes:
        if self.space == "ds":
            return self.machine.state.lds.tobytes()
        return self.memory.bytes_at(self.at, BYTES)

    def places(self) -> str:
        """The operands of an address, data excluded."""
        return {"global": "v[0:1], off", "flat": "v[0:1]", "buffer": "v0, s[4:7], null offen", "ds": "v0"}[self.space]


def _registers(first: int, dwords: int) -> str:
    return f"v{first}" if dwords == 1 else f"v[{first}:{first + dwords - 1}]"


def _width(what: str) -> tuple[int, bool, int | None]:
    """Bytes, signed, and where a half goes: from the letters of the name."""
    half = 16 if "hi" in what else 0 if "d16" in what else None
    kind = re.findall(r"[ubi]\d+", what)[0]
    return int(kind[1:]) // 8, kind[0] == "i", half


def check_load(place: Place, name: str, what: str) -> None:
    nbytes, signed, half = _width(what)
    dwords = max(1, nbytes // 4)
    place.machine.set_v(10, OLD)
    place.machine.run(f"{name} {_registers(10, dwords)}, {place.places()} offset:4")
    for lane in range(32):
        raw = place.data[place.offsets[lane] + 4 :][:nbytes]
        if nbytes >= 4:
            want = [int.from_bytes(raw[4 * k : 4 * k + 4], "little") for k in range(dwords)]
        else:
            value = int.from_bytes(raw, "little", signed=signed) & 0xFFFFFFFF
            merged = {None: value, 0: OLD & 0xFFFF0000 | value & 0xFFFF, 16: OLD & 0xFFFF | value << 16 & 0xFFFF0000}
            want = [merged[half]]
        if lane == OFF:
            want = [OLD] + [0xFFC5FEED] * (dwords - 1)
        assert place.machine.state.vector[10 : 10 + dwords, 0, lane].tolist() == want, (name, lane)


def check_store(place: Place, name: str, what: str) -> None:
    nbytes, _, half = _width(what)
    dwords = max(1, nbytes // 4)
    for k in range(dwords):
        place.machine.set_v(10 + k, place.values[k])
    data, address = _registers(10, dwords), place.places()
    order = f"{data}, {address}" if place.space == "buffer" else _after_address(address, data)
    place.machine.run(f"{name} {order} offset:4")
    want = bytearray(place.data)
    for lane in set(range(32)) - {OFF}:
        raw = b"".join(int(place.values[k, lane]).to_bytes(4, "little") for k in range(dwords))
        raw = raw[2:] if half == 16 else raw
        at = place.offsets[lane] + 4
        want[at : at + nbytes] = raw[:nbytes]
    assert place.got() == bytes(want), name


def _after_address(address: str, data: str) -> str:
    """Data stands behind the first operand of a global, flat or DS address."""
    first, comma, rest = address.partition(", off")
    return f"{first}, {data}{comma}{rest}"


RULES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda old, x, y: old + x,
    "sub": lambda old, x, y: old - x,
    "rsub": lambda old, x, y: x - old,
    "inc": lambda old, x, y: 0 if old >= x else old + 1,
    "dec": lambda old, x, y: x if old == 0 or old > x else old - 1,
    "min": lambda old, x, y: min(old, x),
    "max": lambda old, x, y: max(old, x),
    "min_num": lambda old, x, y: min(old, x),
    "max_num": lambda old, x, y: max(old, x),
    "and": lambda old, x, y: old & x,
    "or": lambda old, x, y: old | x,
    "xor": lambda old, x, y: old ^ x,
    "swap": lambda old, x, y: x,
    "storexchg": lambda old, x, y: x,
    "cmpswap": lambda old, x, y: x if old == y else old,
    "cmpstore": lambda old, x, y: x if old == y else old,
    "cmpst": lambda old, x, y: x if old == y else old,
}


def check_atomic(place: Place, name: str, verb: str, kind: str, returns: bool) -> None:
    """Distinct places but for two lanes that share one; the lower lane acts first."""
    dtype = np.dtype(f"{'u' if kind[0] == 'b' else kind[0]}{int(kind[1:]) // 8}")
    size, dwords = dtype.itemsize, dtype.itemsize // 4
    compares = verb.startswith("cmp")
    offsets = LANES * STEP
    offsets[9] = offsets[4]
    place.point(offsets)
    random = np.random.default_rng(11)
    small = verb in ("inc", "dec", "cmpswap", "cmpstore", "cmpst")
    olds, xs, ys = (_numbers(random, dtype, small) for _ in range(3))
    image = bytearray(place.data)
    for lane in range(32):
        image[offsets[lane] : offsets[lane] + size] = olds[lane].tobytes()
    place.put(bytes(image))
    registers = [_registers(10, dwords), _registers(10 + dwords, dwords)]
    for number, values in enumerate((ys, xs) if verb == "cmpst" else (xs, ys)):
        words = values.view(np.uint32).reshape(32, dwords)
        for k in range(dwords):
            place.machine.set_v(10 + number * dwords + k, words[:, k])
    place.machine.run(_atomic_text(place, name, registers, dwords, compares, returns))
    seen = _act(image, offsets, size, dtype, xs, ys, RULES[verb])
    assert place.got() == bytes(image), name
    if returns:
        first = 10 if place.space == "buffer" else 20
        words = np.stack([place.machine.state.vector[first + k, 0] for k in range(dwords)], axis=1)
        back = np.ascontiguousarray(words).view(dtype)[:, 0]
        on = LANES != OFF
        assert back[on].tobytes() == seen[on].tobytes(), name


def _numbers(random: np.random.Generator, dtype: np.dtype[Any], small: bool) -> np.ndarray[Any, Any]:
    if dtype.kind == "f":
        return random.normal(size=32).astype(dtype)
    if small:
        return random.integers(0, 3, 32).astype(dtype)
    return random.integers(0, 1 << 63, 32, np.uint64).astype(dtype)


def _act(
    image: bytearray,
    offsets: np.ndarray[Any, Any],
    size: int,
    dtype: np.dtype[Any],
    xs: np.ndarray[Any, Any],
    ys: np.ndarray[Any, Any],
    rule: Callable[[Any, Any, Any], Any],
) -> np.ndarray[Any, Any]:
    seen = np.zeros(32, dtype)
    for lane in range(32):
        if lane == OFF:
            continue
        at = int(offsets[lane])
        seen[lane] = np.frombuffer(bytes(image[at : at + size]), dtype)[0]
        if dtype.kind == "f":
            new = dtype.type(rule(seen[lane], xs[lane], ys[lane])).tobytes()
        else:
            value = rule(int(seen[lane]), int(xs[lane]), int(ys[lane])) & (1 << 8 * size) - 1
            new = value.to_bytes(size, "little")
        image[at : at + size] = new
    return seen


def _atomic_text(place: Place, name: str, registers: list[str], dwords: int, compares: bool, returns: bool) -> str:
    address, result = place.places(), _registers(20, dwords)
    if place.space == "ds":
        data = ", ".join(registers if compares else registers[:1])
        return f"{name} {result}, {address}, {data}" if returns else f"{name} {address}, {data}"
    data = _registers(10, 2 * dwords if compares else dwords)
    if place.space == "buffer":
        return f"{name} {data}, {address}{' glc' if returns else ''}"
    text = _after_address(address, data)
    return f"{name} {result}, {text} th:TH_ATOMIC_RETURN" if returns else f"{name} {text}"


def check_two(place: Place, name: str) -> None:
    """ds_load_2addr_*, ds_store_2addr_*: two elements, at offsets that count elements or 64 of them."""
    found = re.match(r"ds_(load|store)_2addr_(stride64_)?b(32|64)$", name)
    assert found
    nbytes, unit = int(found[3]) // 8, (int(found[3]) // 8) * (64 if found[2] else 1)
    dwords, second = nbytes // 4, 1
    place.point(LANES * nbytes)
    want = bytearray(place.data)
    if found[1] == "load":
        place.machine.set_v(10, OLD).run(f"{name} {_registers(10, 2 * dwords)}, v0 offset1:{second}")
        for lane in set(range(32)) - {OFF}:
            raw = b"".join(place.data[lane * nbytes + o :][:nbytes] for o in (0, second * unit))
            got = place.machine.state.vector[10 : 10 + 2 * dwords, 0, lane].tobytes()
            assert got == raw, (name, lane)
        return
    for k in range(2 * dwords):
        place.machine.set_v(10 + k, place.values[k])
    first, other = _registers(10, dwords), _registers(10 + dwords, dwords)
    place.machine.run(f"{name} v0, {first}, {other} offset1:{second}")
    for number, offset in enumerate((0, second * unit)):
        for lane in sorted(set(range(32)) - {OFF}):
            raw = b"".join(place.values[number * dwords + k, lane].tobytes() for k in range(dwords))
            at = lane * nbytes + offset
            want[at : at + nbytes] = raw
    assert place.got() == bytes(want), name


def check_scalar_load(memory: Memory, name: str) -> None:
    """The dwords behind base and offset, or one narrow value extended."""
    data = bytes(np.random.default_rng(3).bytes(256))
    at = memory.allocate(256)
    memory.store(at, data)
    machine = Machine("gfx1201")
    machine.memory = memory
    words = [at & 0xFFFFFFFF, at >> 32, 256, 0x30000000]
    machine.state.scalar[0, 4:8] = np.array(words, np.uint64).astype(np.uint32)
    kind, digits = re.findall(r"([ubi])(\d+)$", name)[0]
    bits = int(digits)
    dwords = max(1, bits // 32)
    base = "s[4:7]" if "buffer" in name else "s[4:5]"
    target = "s16" if dwords == 1 else f"s[16:{15 + dwords}]"
    machine.run(f"{name} {target}, {base}, 0x14")
    raw = data[0x14 : 0x14 + bits // 8]
    if bits < 32:
        raw = (int.from_bytes(raw, "little", signed=kind == "i") & 0xFFFFFFFF).to_bytes(4, "little")
    assert machine.state.scalar[0, 16 : 16 + dwords].tobytes() == raw, name


@contextmanager
def _memory() -> Iterator[Memory]:
    memory = Memory()
    try:
        yield memory
    finally:
        memory.close()


def check(name: str) -> None:
    """AssertionError when the instruction does not do what its name says."""
    with _memory() as memory, np.errstate(all="ignore"):
        if name.startswith("s_"):
            check_scalar_load(memory, name)
            return
        if "2addr" in name:
            check_two(Place("ds", memory), name)
            return
        found = _PARTS.match(name)
        if found and found[2] == "load":
            check_load(Place(found[1], memory), name, found[3])
        elif found and found[2] == "store" and "exchg" not in name:
            check_store(Place(found[1], memory), name, found[3])
        else:
            _check_atomic_forms(memory, name)


def _check_atomic_forms(memory: Memory, name: str) -> None:
    space, _, rest = name.partition("_")
    verb, _, kind = rest.removeprefix("atomic_").rpartition("_")
    if space == "ds":
        check_atomic(Place(space, memory), name, verb.removesuffix("_rtn"), kind, verb.endswith("_rtn"))
        return
    for returns in (False, True):
        check_atomic(Place(space, memory), name, verb, kind, returns)
