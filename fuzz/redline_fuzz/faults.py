# SPDX-License-Identifier: Apache-2.0
"""The planted faults: one wrong text each, in the deriver, the verifier, the lowering, the encoder and the tables.

Each is a mistake that somebody could make, many of them one that somebody did (the memory-model review that the rules
of `docs/fences.md` come from). A row is (name, file, text that stands there once, wrong text).
"""

from __future__ import annotations

from redline_fuzz.planting import Fault

_SWEEP, _STAB, _FENCES = "redline/sweep.py", "redline/stabbing.py", "redline/fences.py"
_ACCESSES, _PLAN, _LOWERING = "redline/accesses.py", "redline/plan.py", "redline/lowering.py"
_SAFETY, _FOREIGN, _EMIT = "redline/safety.py", "redline/foreign.py", "redline/encoders/emit.py"
_REPLAY, _FLIGHT = "redline/replay.py", "redline/flight.py"
_PLACED, _PACKETS, _FORMS = "redline/placed.py", "redline/packets.py", "redline/forms.py"
_PATCHING = "redline/patching.py"
_LANES, _AQL_LANES, _PHASES = "redline/lanes.py", "redline/aql_lanes.py", "redline/phases.py"
_GFX10, _GFX12 = "redline/encoders/gfx10.py", "redline/encoders/gfx12.py"

_WAITS = "            waits = max(waits, found)\n"

_ROWS: tuple[tuple[str, str, str, str], ...] = (
    # Which launches wait for which
    ("WAR wait skipped", _SWEEP, "column = 0 if what & WRITES else _WRITTEN", "column = _WRITTEN"),
    ("RAW wait skipped", _SWEEP, _WAITS, "            waits = max(waits, found) if what & WRITES else waits\n"),
    (
        "WAW wait skipped",
        _SWEEP,
        _WAITS,
        (
            "            wrote = _latest(forest, spans[k], _WRITTEN)\n"
            "            waits = waits if what & WRITES and found == wrote else max(waits, found)\n"
        ),
    ),
    ("after= forgotten", _SWEEP, "waits = max(waits, time - p + position[after[k]])", "waits = max(waits, -1)"),
    ("after= forgotten in levels", _SWEEP, "level = max(level, levels[after[k]] + 1)", "level = max(level, 0)"),
    (
        "conflicts share a level",
        _SWEEP,
        "level = max(level, _latest(forest, spans[k], column) + 1)",
        "level = max(level, _latest(forest, spans[k], column))",
    ),
    (
        "ranges end a byte early",
        _SWEEP,
        "(stop[k] if end else start[k])",
        "(stop[k] - (stop[k] - start[k] > 1) if end else start[k])",
    ),
    (
        "ranges begin a byte late",
        _SWEEP,
        "(stop[k] if end else start[k])",
        "(stop[k] if end else start[k] + (stop[k] - start[k] > 1))",
    ),
    (
        "ranges end a byte late",
        _SWEEP,
        "(stop[k] if end else start[k])",
        "(stop[k] + 1 if end else start[k])",
    ),
    ("memories overlap", _SWEEP, "point = bases[memory[k]] + ", "point = "),
    ("last segment left out", _SWEEP, "leaf[high[k] - 1] + 1\n", "max(leaf[low[k]] + 1, leaf[high[k] - 1])\n"),
    (
        "ranges that cover are not asked",
        _SWEEP,
        "        at >>= 1\n    while left < right:\n        if left & 1:\n            found",
        "        at = 0\n    while left < right:\n        if left & 1:\n            found",
    ),
    (
        "ranges that begin inside are not noted",
        _SWEEP,
        "while at > 0 and forest[tree + at, column + _BEGUN] < value:",
        "while at == left and forest[tree + at, column + _BEGUN] < value:",
    ),
    ("covering writes are not noted", _SWEEP, "    if writes:\n        node[", "    if not writes:\n        node["),
    # Through which cache
    ("scalar read as vector", _SWEEP, "if what & READS_K:", "if what & READS_K and not what & READS_V:"),
    ("vector read as scalar", _SWEEP, "if what & READS_V:", "if what & READS_V and not what & READS_K:"),
    ("counts are not shown to the processor", _SWEEP, "reads_p = max(reads_p, writer)", "reads_p = max(reads_p, -1)"),
    ("counts are read at L2 on gfx12", _ACCESSES, "return READS_P if launch.indirect.past_l2 else 0", "return 0"),
    (
        "listed scalar arguments read as vectors",
        _ACCESSES,
        'return ("V",) if certificate.reads == "scalar_args" and argument not in certificate.scalar_args else',
        'return ("V",) if certificate.reads == "scalar_args" else',
    ),
    (
        "vector loads read at L2",
        _ACCESSES,
        'certificate.reads == "vmem_only":\n        return ("V",)',
        'certificate.reads == "vmem_only":\n        return ()',
    ),
    (
        "atomics need a refresh",
        _ACCESSES,
        "in certificate.l2_args:\n        return ()",
        "in certificate.l2_args:\n        return KERNEL_CLASSES",
    ),
    (
        "memory behind no argument read as the certificate says",
        _ACCESSES,
        "if certificate is None or argument is None:",
        "if certificate is None:",
    ),
    (
        "kernargs through K only",
        _ACCESSES,
        'return KERNEL_CLASSES if certificate is None or certificate.kernarg_vector_loads else ("K",)',
        'return ("K",)',
    ),
    (
        "an alias starts where its memory does",
        _ACCESSES,
        "self.start.append(buffer.root_offset + touch.start)",
        "self.start.append(touch.start)",
    ),
    ("an alias is another memory", _ACCESSES, "self.memory.append(buffer.root)", "self.memory.append(touch.buffer)"),
    # Where fences stand
    (
        "an acquire clears undrained writes",
        _STAB,
        "low[p, row] = first - turned\n",
        "low[p, row] = max(first - turned - 1, 0)\n",
    ),
    (
        "an acquire behind its reader",
        _STAB,
        "high[p, row] = stood[(turns - 1) * n + p] - 1 - turned",
        "high[p, row] = stood[(turns - 1) * n + p] - turned",
    ),
    (
        "an acquire in the turn before",
        _STAB,
        "turned = points if first >= points else 0",
        "turned = 0",
    ),
    (
        "a point behind the interval",
        _STAB,
        "found_high[p, row] = below[last + 1] + turn - 1",
        "found_high[p, row] = below[last + 1] + turn",
    ),
    ("the last point serves nobody", _STAB, "if low[k] >= 0 and low[k] > last:", "if low[k] >= 0 and low[k] >= last:"),
    ("the first interval is forgotten", _STAB, "if low[k] >= 0 and low[k] > last:", "if low[k] > 0 and low[k] > last:"),
    (
        "a circle ends an interval early",
        _STAB,
        "    while ends[at + 1] < best + points:",
        "    while ends[at + 1] < best + points - 1:",
    ),
    ("a drain before the writer", _FENCES, "np.int32(-1), waits + np.int32(1))", "np.int32(-1), waits)"),
    ("a loop's drain before the writer", _FENCES, "low, high = waits + np.int32(1), count", "low, high = waits, count"),
    ("loop-carried edges forgotten", _FENCES, "needs = find_needs(order, 1 + loop,", "needs = find_needs(order, 1,"),
    (
        "loops derived by one pass",
        _FENCES,
        'loop = plan.accesses, plan.boundary == "queue"',
        "loop = plan.accesses, False",
    ),
    (
        "loops derived by two passes",
        _FENCES,
        "    bits = acquires_at(needs[1:], at, drains[at], entry, loop=loop)\n",
        (
            "    bits = acquires_at(needs[1:], at, drains[at], entry, loop=loop)\n"
            "    if loop:\n"
            "        once = find_needs(order, 1, a.starts, a.spans, a.does, a.after_starts, a.after, a.nodes)\n"
            "        both = np.concatenate((once[1:], needs[1:]), axis=1)\n"
            "        twice = np.concatenate((at, at + len(order)))\n"
            "        bits = acquires_at(both, twice, np.tile(drains[at], 2), entry, loop=False)[len(at) :]\n"
        ),
    ),
    (
        "acquires merged wrongly",
        _FENCES,
        "bits[chosen[mask]] |= CLASS_BITS[name]",
        'bits[chosen[mask]] |= CLASS_BITS["V" if name == "K" else name]',
    ),
    ("every class at every acquire", _FENCES, "bits[chosen[mask]] |= CLASS_BITS[name]", "bits[chosen] |= 3"),
    (
        "fewest packets of each class alone",
        _FENCES,
        "chosen = np.flatnonzero(_stab(low.ravel(), high.ravel(), len(at), 0 if entry else -1, loop=loop))",
        "chosen = np.arange(len(at))",
    ),
    (
        "patched arguments are not refreshed",
        _FENCES,
        'if plan.boundary == "host" or not plan.slots:',
        'if plan.boundary in ("host", "queue"):',
    ),
    ("other queues are not waited for", _FENCES, "        drains[0] = True", "        drains[0] = False"),
    (
        "other queues' writes are not refreshed",
        _FENCES,
        'return sum(CLASS_BITS[name] for name in all_classes(plan)), "other-queue"',
        'return 0, "other-queue"',
    ),
    (
        "full fences without the last",
        _FENCES,
        'plan.boundary == "host"), len(plan.order))',
        'plan.boundary == "host"), len(plan.order) - 1)',
    ),
    (
        "deepest launches first",
        _PLAN,
        "return levels, sort_by_level(levels)",
        "return levels, sort_by_level(levels)[::-1]",
    ),
    ("the first level meets the last", _PLAN, "levels = _shifted(accesses, levels)", "levels = levels.copy()"),
    # Lowering
    (
        "fences a launch late",
        _LOWERING,
        "before = {fence.at: fence for fence in fences.inner}",
        "before = {fence.at + 1: fence for fence in fences.inner}",
    ),
    ("the warm entry is empty", _LOWERING, "        if fence is not None:\n            self.fence(fence)\n", ""),
    (
        "a warm start passes over its fence",
        _LOWERING,
        "warm = entered + 1 if skipped > entered else entered if",
        "warm = entered if",
    ),
    (
        "a cold start without its drain",
        _LOWERING,
        "            self.drain()\n            self.acquire_system()",
        "            self.acquire_system()",
    ),
    (
        "an exit without its drain",
        _LOWERING,
        "            self.drain()\n            self.release_system()",
        "            self.release_system()",
    ),
    (
        "an exit without its write-back",
        _LOWERING,
        "            self.drain()\n            self.release_system()",
        "            self.drain()",
    ),
    (
        "the release is left out of the last replay",
        _LOWERING,
        "self._dwords - left, self._dwords))",
        "self._dwords - left, self._dwords - left))",
    ),
    (
        "drains are believed on old gfx10 microcode",
        _LOWERING,
        'not family_for(plan.target).partial_flush_is_trusted and gfx10_wait == "fence"',
        "False",
    ),
    (
        "the fence word is not zeroed",
        _LOWERING,
        "if self.by_fence_word:\n            self._add(FENCE_ZERO",
        "if False:\n            self._add(FENCE_ZERO",
    ),
    ("every drain waits for the same value", _LOWERING, "self.drains += 1", "self.drains = 1"),
    ("an acquire without its drain", _LOWERING, "        if fence.drain:\n            self.drain()\n", ""),
    ("a drain without its acquire", _LOWERING, "        if fence.acquire:\n", "        if not fence.drain:\n"),
    (
        "arguments of the launch before",
        _LOWERING,
        "self.numbers.kernel_of[index], self.numbers.slot_of[index]",
        "self.numbers.kernel_of[index], max(self.numbers.slot_of[index] - 1, 0)",
    ),
    (
        "code of another kernel",
        _LOWERING,
        "self.numbers.kernel_of[index], self.numbers.slot_of[index]",
        "max(self.numbers.kernel_of[index] - 1, 0), self.numbers.slot_of[index]",
    ),
    (
        "pointers to the start of the buffer",
        _LOWERING,
        "(start + p.offset, p.buffer, p.addend)",
        "(start + p.offset, p.buffer, 0)",
    ),
    (
        "a patch of the first launch",
        _LOWERING,
        "self.patches.append((at, start + use.offset,",
        "self.patches.append((at, use.offset,",
    ),
    (
        "wrong slot patched",
        _LOWERING,
        "            at = self._slots[use.slot]",
        "            at = 0 * self._slots[use.slot]",
    ),
    (
        "counts beside the counts",
        _LOWERING,
        "launch.indirect.buffer, launch.indirect.addend)",
        "launch.indirect.buffer, launch.indirect.addend - 4)",
    ),
    (
        "every drain twice",
        _LOWERING,
        "            self._add(DRAIN)\n            return",
        "            self._add(DRAIN)\n            self._add(DRAIN)\n            return",
    ),
    (
        "a system acquire between launches",
        _LOWERING,
        "gcr=self.family.acquire_gcr(*(name in classes for name in CLASSES))",
        "gcr=self.family.entry_gcr",
    ),
    # Encoder
    (
        "elision of a changed register",
        _EMIT,
        "if elide and shadow[place] == value:",
        "if elide and shadow[place] != _UNKNOWN:",
    ),
    (
        "all argument segments are one",
        _EMIT,
        'wanted[at] = _KERNARG_LOW | np.uint64(op["kernarg_reloc"])',
        "wanted[at] = _KERNARG_LOW",
    ),
    (
        "an acquire of no address",
        _EMIT,
        "out[2], out[3] = family.coher_size, family.coher_size_hi",
        "out[2], out[3] = 0, 0",
    ),
    (
        "a wait for the value before",
        _EMIT,
        'out[4], out[5], out[6] = op["value"], family.wait_mask',
        'out[4], out[5], out[6] = op["value"] - 1, family.wait_mask',
    ),
    ("a grid one larger", _EMIT, "out[1], out[2], out[3] = dims[0],", "out[1], out[2], out[3] = dims[0] + 1,"),
    (
        "halves exchanged",
        _EMIT,
        'address >> (np.uint64(row["half"]) * _THIRTY_TWO)',
        'address >> (np.uint64(1 - row["half"]) * _THIRTY_TWO)',
    ),
    (
        "pointers without their offset",
        _EMIT,
        'np.uint64(np.int64(buffers[row["buffer"]]) + row["addend"])',
        'np.uint64(np.int64(buffers[row["buffer"]]))',
    ),
    # Family tables
    ("GL1 dropped from K", _GFX10, 'SCALAR = {"GLK_INV": 1, "GL1_INV": 1}', 'SCALAR = {"GLK_INV": 1}'),
    ("GL1 dropped from V", _GFX10, 'VECTOR = {"GLV_INV": 1, "GL1_INV": 1}', 'VECTOR = {"GLV_INV": 1}'),
    ("K refreshed as V on gfx12", _GFX12, 'scalar={"GLK_INV": 1}', 'scalar={"GLV_INV": 1}'),
    ("V refreshed as K on gfx12", _GFX12, 'vector={"GLV_INV": 1}', 'vector={"GLK_INV": 1}'),
    ("GL2_INV without GL2_WB", _GFX12, '"GL2_INV": 1, "GL2_WB": 1}', '"GL2_INV": 1}'),
    ("an entry without GL2_INV", _GFX12, '"GL2_INV": 1, "GL2_WB": 1}', '"GL2_WB": 1}'),
    ("an entry without I", _GFX12, 'entry={"GLI_INV": "ALL", ', "entry={"),
    ("an entry without K", _GFX12, '"ALL", "GLK_INV": 1, ', '"ALL", '),
    ("a release that writes nothing back", _GFX12, 'release={"GL2_WB": 1}', 'release={"GLV_INV": 1}'),
    (
        "fine-grained memory of gfx12 is uncached",
        _GFX12,
        'l2_kinds=("device", "host", "fine")',
        'l2_kinds=("device", "host")',
    ),
    ("the processor of gfx12 reads L2", _GFX12, "processor_reads_past_l2=True", "processor_reads_past_l2=False"),
    # Verifiers
    (
        "verify: any drain will do",
        _SAFETY,
        "return bisect_left(self.drains, second) > bisect_right(self.drains, first)",
        "return bisect_left(self.drains, second) >= bisect_right(self.drains, first)",
    ),
    (
        "verify: an acquire before the drain",
        _SAFETY,
        "return bisect_left(acquires, second) > bisect_right(acquires, self.drains[at])",
        "return bisect_left(acquires, second) > bisect_right(acquires, first)",
    ),
    (
        "verify: every acquire is every class",
        _SAFETY,
        'step.does == "acquire" and name in step.caches',
        'step.does == "acquire"',
    ),
    ("verify: no WAR", _SAFETY, "if writes and (touched :=", "if not writes and (touched :="),
    ("verify: no WAW", _SAFETY, "        if wrote >= 0:\n", "        if wrote >= 0 and not writes:\n"),
    (
        "verify: no visibility",
        _SAFETY,
        'if kind == "RAW" and not unordered else ()',
        'if kind == "WAR" and not unordered else ()',
    ),
    ("verify: one replay is enough", _SAFETY, "in enumerate(starts(plan)):", "in enumerate(starts(plan)[:1]):"),
    (
        "verify: after= is not checked",
        _SAFETY,
        "if late or not self._drained(int(self.launched[index]), time):",
        "if late:",
    ),
    (
        "verify: patched arguments are fresh",
        _SAFETY,
        "        elif launch.slots:\n",
        "        elif not launch.slots:\n",
    ),
    (
        "verify: recorded order is not checked",
        _SAFETY,
        "            if later > launch.index:",
        "            if later < -1:",
    ),
    (
        "verify: counts are read as data",
        _SAFETY,
        'return ("P",) if launch.indirect.past_l2 else ()',
        'return ("V",) if launch.indirect.past_l2 else ()',
    ),
    ("verify: listed scalar arguments", _SAFETY, "and touch.argument not in certified.scalar_args:", "and True:"),
    (
        "words: GL1 is not needed",
        _FOREIGN,
        'gl1 = fields.get("GL1_INV", 1) and fields["SEQ"] in _OUTWARD_FIRST',
        "gl1 = True",
    ),
    ("words: K covers V", _FOREIGN, '"V": "GLV_INV"', '"V": "GLK_INV"'),
    ("words: a write-back is an invalidation", _FOREIGN, '"GL2_INV": "GL2_INV"', '"GL2_INV": "GL2_WB"'),
    # Explicit order
    ("explicit order: WAR is no conflict", _SWEEP, "others = newest[at] if writes else -1", "others = -1"),
    ("explicit order: chains end early", _SWEEP, "if after[k] >= start:", "if after[k] > start:"),
)

_POINTS = 'rows = program.patches[program.patches["slot"] == slot]'

#: What only runs through `Device` and `Replay` can show.
_DEVICE_ROWS: tuple[tuple[str, str, str, str], ...] = (
    (
        "every replay starts warm",
        _REPLAY,
        'warm = self._flight.take() and self.plan.boundary != "host"',
        'warm = (self._flight.take(), self.plan.boundary != "host")[1]',
    ),
    (
        "host access keeps a replay warm",
        _FLIGHT,
        "                flight.warm = False\n",
        "                pass\n",
    ),
    (
        "re-bind keeps a replay warm",
        _FLIGHT,
        "            self._use_nothing()\n            self.warm = False",
        "            self._use_nothing()",
    ),
    (
        "re-bind ignored in arguments",
        _PLACED,
        "        apply_kernarg_relocs(",
        "        if not self.kernarg[:8].any():\n            apply_kernarg_relocs(",
    ),
    (
        "re-bind ignored in the stream",
        _PLACED,
        "        apply_relocs(",
        "        if not self.words[self.program.relocs['dword']].any():\n            apply_relocs(",
    ),
    ("patches go to the first slot", _PATCHING, _POINTS, 'rows = program.patches[program.patches["slot"] == 0]'),
    ("one use of a slot is patched", _PATCHING, _POINTS, _POINTS + "[:1]"),
    ("patches take the first slot's value", _PATCHING, "_CELL * place", "0 * place"),
    ("a submission leaves out its release", _PACKETS, '"end_release" if', '"end" if'),
)

#: What only several queues or AQL packets can show.
_LANE_ROWS: tuple[tuple[str, str, str, str], ...] = (
    (
        "a cross-lane writer entered too early",
        _AQL_LANES,
        "self.place[writer] not in self.acquired[lane] for writer",
        "self.place[writer][0] == lane and self.place[writer] not in self.acquired[lane] for writer",
    ),
    (
        "an acquire covers what ends later",
        _AQL_LANES,
        "self.acquired[lane] = self.known[lane].copy()",
        "self.acquired[lane] = self.known[lane]",
    ),
    (
        "a lost out-edge",
        _AQL_LANES,
        "for first in firsts if self._lane(first) != lane",
        "for first in firsts[:1] if self._lane(first) != lane",
    ),
    ("a reused signal", _PACKETS, "return self.signals - 1", "return max(self.signals - 2, 1)"),
    ("no barrier bit where one launch has ended", _AQL_LANES, "barrier = at == 0 or any(", "barrier = at == 0 or all("),
    (
        "a wait for one launch is a wait for its lane",
        _AQL_LANES,
        "        self.single |= known_then.single | {place}\n",
        "        self.before[place[0]] = max(self.before[place[0]], place[1] + 1)\n",
    ),
    (
        "a wait covers what was waited for later",
        _AQL_LANES,
        "self.known_at[launch] = known.copy()",
        "self.known_at[launch] = known",
    ),
    ("lanes start at agent scope", _AQL_LANES, "return SYSTEM if first else AGENT", "return AGENT"),
    (
        "five dependencies and no more",
        _PACKETS,
        "range(0, len(signals), BARRIER",
        "range(0, min(len(signals), 5), BARRIER",
    ),
    ("the end waits for its own lane alone", _PACKETS, "packets.end(0, ends, FINAL", "packets.end(0, (), FINAL"),
    (
        "ends do not wait for their lane",
        _PACKETS,
        "completes, barrier=True, release",
        "completes, barrier=False, release",
    ),
    ("phases do not wait", _FORMS, "            packets.wait(lane, [signal", "            _ = (lane, [signal"),
    ("a phase ends without its drain", _FORMS, "    stream.drain()\n    stream.marks", "    stream.marks"),
    (
        "phases see only their own lane",
        _PHASES,
        "writers[writers < first] = -1",
        "writers[~np.isin(writers, stands)] = -1",
    ),
    (
        "others of a phase come before it",
        _PHASES,
        "other != lane for launch in launches",
        "False for launch in launches",
    ),
    (
        "readers join nobody",
        _LANES,
        "first, last = before[a.low], before[a.high] - 1",
        "first, last = before[a.low], before[a.high] - 1 - ~writes",
    ),
    ("after= joins nobody", _LANES, "            sets.join(one, other)\n    return", "            pass\n    return"),
    (
        "lanes share a fence word",
        _FORMS,
        "options.gfx10_wait, lane, _stamps(plan, options, len(lanes), lane))",
        "options.gfx10_wait, 0, _stamps(plan, options, len(lanes), lane))",
    ),
)

#: Where only some oracles look at what is faulty, by the beginning of its name.
_ORACLES = {
    "loops derived by two passes": ("safe", "verify"),
    "fewest packets of each class alone": ("fewest",),
    "the first level meets the last": ("fewest",),
    "verify": ("verify", "words", "errors"),
    "words": ("words",),
    "explicit order": ("errors",),
}

FAULTS: tuple[Fault, ...] = (
    *(Fault(*row, _ORACLES.get(row[0].partition(":")[0], ())) for row in _ROWS),
    *(Fault(*row, ("device",)) for row in _DEVICE_ROWS),
    *(Fault(*row, ("forms",)) for row in _LANE_ROWS),
)
