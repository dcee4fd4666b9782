# SPDX-License-Identifier: Apache-2.0
"""Check the fences of encoded PM4 words against a plan, whoever encoded them.

Reads the stream with `encoders/decode.py` and writes down the same steps as `safety.py` makes of fences, so both are
judged by one definition. What is not understood protects nothing. Follows no chained buffer and looks at no address: a
relocated dword may still be 0.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Sequence
from operator import index
from typing import TYPE_CHECKING, Final

from .encoders import family_for
from .encoders.decode import decode
from .errors import EncodeError, RecordError, UnsupportedTarget
from .fitting import require
from .safety import Finding, Step, between_replays, check_steps, starts

if TYPE_CHECKING:
    from .encoders.decode import Command
    from .encoders.table import FamilyTable
    from .launch import Launch
    from .plan import Plan

#: GCR_CNTL fields that make an acquire reach a cache, beside GL1 where the family has one.
_REACHES: Final = {
    "I": "GLI_INV",
    "K": "GLK_INV",
    "V": "GLV_INV",
    "P": "GL2_WB",
    "GL2_INV": "GL2_INV",
    "GL2_WB": "GL2_WB",
}
_BEHIND_GL1: Final = ("K", "V")

#: SEQ of an acquire that works on no cache before the one behind it: PARALLEL as drivers write it, and REVERSE.
_OUTWARD_FIRST: Final = (0, 2)

#: Fields that do not change what a packet waits for or stores to: addresses, data, pace.
_FREE: Final = ("ADDR_LO", "ADDR_HI", "DATA_LO", "DATA_HI", "REFERENCE", "POLL_INTERVAL", "INT_CTXID")

_ANY_VALUE: Final = 0xFFFFFFFF

Entries = tuple[int, int, int, int]


def verify_words(
    plan: Plan,
    words: Iterable[int],
    target: str,
    *,
    ib: Sequence[int] | None = None,
    gfx10_wait: str = "fence",
) -> tuple[Finding, ...]:
    """Everything that is not safe when `words` (dwords, as ints) are submitted for `plan`; empty when they suffice.

    ib: dwords where a cold and a warm replay start and where the stream ends without and with its release, as a row of
    `Program.ibs`; by default every replay is the whole stream. gfx10_wait="partial_flush" believes it on gfx10.

    Raises EncodeError for words that are no packets of the target, UnsupportedTarget when the plan is for another one,
    RecordError for what is no plan and for entries outside the stream, UnsupportedKernel for a plan that recording
    would have refused.
    """
    require(plan, "Plan", "verify_words")
    listed = _listed(words)
    require_target(plan, target, "verify_words")
    cold, warm, end, end_release = _entries(listed, ib)
    reader = WordReader(plan, gfx10_wait)
    row = (*starts(plan), False)  # behind the last one the host reads
    steps = [Step("host writes")]
    for replay, start in enumerate(row[:-1]):
        steps += between_replays(plan, warm=start) if replay else []
        steps += reader.replay(listed[warm if start else cold : end if row[replay + 1] else end_release])
    steps.append(Step("host reads"))
    return (*dict.fromkeys(reader.findings), *check_steps(plan, steps, reader.family.l2_kinds))


def require_target(plan: Plan, target: str, where: str) -> None:
    """Raise UnsupportedTarget for words of another target than the plan's."""
    if plan.target != target:
        raise UnsupportedTarget(
            "RL0301",
            where=where,
            seen=f"words for {target}",
            allowed=f"{plan.target}, the plan's target",
            do="record the plan with kernels of that target",
        )


def _listed(words: Iterable[int]) -> list[int]:
    listed = _ints(words)
    if listed is None:
        raise EncodeError(
            "RL0508",
            where="verify_words(words=)",
            seen=reprlib.repr(words),
            allowed="ints of 32 bits",
            do="pass the stream's dwords, as Program.words or Pm4Stream.words",
        )
    return listed


def _ints(given: Iterable[int]) -> list[int] | None:
    """Ints of any kind as Python's; None for what is no row of them."""
    try:
        return [index(item) for item in given]
    except TypeError:
        return None


def _entries(words: Sequence[int], ib: Sequence[int] | None) -> Entries:
    row = _ints(ib) if ib is not None else [0, 0, len(words), len(words)]
    cold, warm, end, end_release = row if row is not None and len(row) == 4 else (1, 0, 0, 0)
    if not 0 <= cold <= warm <= end <= end_release <= len(words):
        raise RecordError(
            "RL0140",
            where="verify_words(ib=)",
            seen=reprlib.repr(ib if row is None else row),
            allowed=f"cold <= warm <= end <= end_release, dwords in 0..{len(words)}",
            do="pass a row of Program.ibs, or nothing",
        )
    return cold, warm, end, end_release


class WordReader:
    """Turns packets into steps, and reports what belongs to no such plan."""

    def __init__(self, plan: Plan, gfx10_wait: str) -> None:
        self.plan, self.family = plan, family_for(plan.target)
        self.flush_waits = self.family.partial_flush_is_trusted or gfx10_wait == "partial_flush"
        self.findings: list[Finding] = []
        self.fence_words = _FenceWords()
        self.pending: Command | None = None

    def replay(self, words: Sequence[int]) -> list[Step]:
        """The steps of one replay."""
        self.launched = 0
        self.fence_words.next_replay()
        self.registers: dict[int, int] = {}
        self.fresh: set[int] = set()  # registers written since the last launch
        steps: list[Step] = []
        for command in decode(words, self.family):
            steps += self._step(command)
        if self.pending is not None:
            self.fence_words.late(self.pending)
            self.pending = None
        if self.launched != len(self.plan.order):
            self._strange(f"{self.launched} launches, not {len(self.plan.order)}")
        return steps

    def _step(self, command: Command) -> Iterator[Step]:
        pending, self.pending = self.pending, None
        if pending is not None and command.name != "WAIT_REG_MEM":
            self.fence_words.late(pending)
        if command.name == "SET_SH_REG":
            self.registers.update(command.registers)
            self.fresh.update(command.registers)
        elif command.name in ("DISPATCH_DIRECT", "DISPATCH_INDIRECT"):
            yield from self._launch(command)
        elif command.name == "EVENT_WRITE":
            if self.flush_waits and self._is("drain", command):
                yield Step("drain")
        elif command.name == "WRITE_DATA":
            if command.tail == (0,) and self._is("write_data", command):
                self.fence_words.zero(_address(command.fields))
            else:
                self.fence_words.forget(_address(command.fields), len(command.tail))
        elif command.name == "COPY_DATA":
            self.fence_words.forget(command.fields["DST_HI"] << 32 | command.fields["DST_LO"], 2)
        elif command.name == "RELEASE_MEM":
            self._release(command)
        elif command.name == "WAIT_REG_MEM":
            yield from self._wait(command, pending)
        elif command.name == "ACQUIRE_MEM":
            yield from self._acquire(command)
        elif command.name != "NOP":
            self._strange(f"{command.name} at dword {command.dword}")

    def _wait(self, command: Command, pending: Command | None) -> Iterator[Step]:
        """A drain, if only what the RELEASE_MEM directly before it stores can end the wait."""
        if pending is None:
            return
        stored = _address(pending.fields), pending.fields["DATA_LO"]
        wanted = _address(command.fields), command.fields["REFERENCE"]
        if self._is("wait_memory", command) and stored == wanted and self.fence_words.rises(*stored):
            yield Step("drain")
        else:
            self.fence_words.late(pending)

    def _release(self, command: Command) -> None:
        self._check_bytes_kept(command)
        if self._is("fence_release", command):
            self.pending = command
        else:
            self.fence_words.late(command, understood=False)

    def _acquire(self, command: Command) -> Iterator[Step]:
        fields = command.fields
        self._check_bytes_kept(command)
        if not _covers_everything(fields):
            return
        # Forward, K and V go before GL1 and GL2, and may fill again from what these still hold.
        gl1 = fields.get("GL1_INV", 1) and fields["SEQ"] in _OUTWARD_FIRST
        # 1 is all of a cache; GLI_INV knows ranges too.
        reached = [name for name, field in _REACHES.items() if fields[field] == 1 and (gl1 or name not in _BEHIND_GL1)]
        yield Step("acquire", caches=tuple(reached))

    def _check_bytes_kept(self, command: Command) -> None:
        fields = command.fields
        wrong = ["GL2_DISCARD"] if fields["GL2_DISCARD"] else []
        wrong += ["GL2_INV without GL2_WB"] if fields["GL2_INV"] and not fields["GL2_WB"] else []
        if wrong:
            where = f"{command.name} at dword {command.dword}"
            self.findings.append(Finding("may lose bytes", "host", "host", f"{where}: {', '.join(wrong)}"))

    def _launch(self, command: Command) -> Iterator[Step]:
        at, self.launched = self.launched, self.launched + 1
        if at >= len(self.plan.order):
            return
        launch = self.plan.launches[self.plan.order[at]]
        before = self.plan.launches[self.plan.order[at - 1]] if at else None
        wrong = [
            *_differences(self.family, launch, self.registers, command),
            *_stale(self.family, launch, before, self.fresh),
        ]
        self.fresh.clear()
        if wrong:
            self._strange(f"the launch at dword {command.dword} is not {launch}: {'; '.join(wrong)}")
        yield Step("launch", at)

    def _strange(self, what: str) -> None:
        self.findings.append(Finding("not this plan", "host", "host", what))

    def _is(self, form: str, command: Command) -> bool:
        """Whether a packet does what ours of that form does: the same selectors, whatever address, data, pace and
        caches.
        """
        fields = {item.name: item for word in self.family.packet[command.name].words for item in word.fields}
        ours = {name: fields[name].pack(value, form) for name, value in self.family.forms[form].values.items()}
        return all(
            value == fields[name].unpack(ours.get(name, 0))
            for name, value in command.fields.items()
            if name not in _FREE and not name.startswith("GL")
        )


class _FenceWords:
    """What each dword that gfx10 drains by can hold at most: a wait proves nothing unless it asks for more."""

    def __init__(self) -> None:
        self.most: dict[int, int] = {}  # of dwords that this replay has zeroed
        self.behind: dict[int, int] = {}  # what a release that nobody waited for may still store

    def next_replay(self) -> None:
        self.most.clear()

    def zero(self, address: int) -> None:
        self.most[address] = self.behind.get(address, 0)

    def rises(self, address: int, value: int) -> bool:
        """Whether waiting for this value waits for the store of it; then the dword holds it."""
        if value <= self.most.get(address, value):
            return False
        self.most[address] = value
        return True

    def late(self, command: Command, *, understood: bool = True) -> None:
        """A release stores its value at any time from now on."""
        address, value = _address(command.fields), command.fields["DATA_LO"] if understood else _ANY_VALUE
        for at in (address,) if understood else (address, address + 4):
            self.behind[at] = max(value, self.behind.get(at, 0))
            if at in self.most:
                self.most[at] = max(value, self.most[at])

    def forget(self, address: int, dwords: int) -> None:
        """Anything may stand in these dwords until they are zeroed."""
        for at in [at for at in self.most if address <= at < address + 4 * dwords]:
            del self.most[at]


def _address(fields: dict[str, int]) -> int:
    return fields["ADDR_HI"] << 32 | fields["ADDR_LO"]


def _covers_everything(fields: dict[str, int]) -> bool:
    """Whether an ACQUIRE_MEM reaches all addresses: base 0, the longest size, no range of its own."""
    # MEC keeps 8 bits of the upper half, and with these the size covers every address below 2**48.
    longest = fields["COHER_SIZE"] == 0xFFFFFFFF and fields["COHER_SIZE_HI"] & 0xFF == 0xFF
    whole = longest and fields["COHER_BASE_LO"] == fields["COHER_BASE_HI"] == 0
    return whole and not any(fields.get(name) for name in ("GL2_RANGE", "GL1_RANGE"))


def _differences(family: FamilyTable, launch: Launch, registers: dict[int, int], command: Command) -> Iterator[str]:
    """What the stream launches otherwise than the plan: sizes and resources."""
    words = launch.kernel.words(str(launch), launch.dynamic_lds)
    row = family.dispatch_operation(words, launch.encoded_size, launch.block)
    wanted_name = "DISPATCH_DIRECT" if launch.indirect is None else "DISPATCH_INDIRECT"
    if command.name != wanted_name:
        yield f"{command.name}, not {wanted_name}"
        return
    offset = {name: register.offset for name, register in family.register.items()}
    threads = [registers.get(offset["COMPUTE_NUM_THREAD_X"] + i) for i in range(3)]
    resources = [registers.get(offset[f"COMPUTE_PGM_RSRC{i}"]) for i in (1, 2, 3)]
    user = range(offset["COMPUTE_USER_DATA_0"], offset["COMPUTE_USER_DATA_0"] + int(row["user_count"]))
    program = (offset["COMPUTE_PGM_LO"], offset["COMPUTE_PGM_LO"] + 1)
    for at in (*program, offset["COMPUTE_RESOURCE_LIMITS"], *user):
        if at not in registers:
            yield f"{family.register_at[at].name} is never set"
    dims = list(command.words[1:4]) if launch.indirect is None else row["dims"].tolist()
    initiator = command.words[-1]
    for name, seen, wanted in (
        ("block", threads, row["threads"].tolist()),
        ("grid", dims, row["dims"].tolist()),
        ("initiator", initiator, int(row["initiator"])),
        ("RSRC1 to RSRC3", resources, [int(row[f"rsrc{i}"]) for i in (1, 2, 3)]),
    ):
        if seen != wanted:
            yield f"{name} {seen}, not {wanted}"


def _stale(family: FamilyTable, launch: Launch, before: Launch | None, fresh: set[int]) -> Iterator[str]:
    """Registers that still hold what the launch before it had: addresses are not looked at, but must be written
    anew.
    """
    if before is None:
        return
    offset = {name: register.offset for name, register in family.register.items()}
    # PGM_LO holds bits 39 to 8 of an entry, so two kernels less than 1 TiB apart differ in it.
    if launch.kernel != before.kernel and offset["COMPUTE_PGM_LO"] not in fresh:
        yield f"runs the code of {before}"
    row = family.dispatch_operation(
        launch.kernel.words(str(launch), launch.dynamic_lds), launch.encoded_size, launch.block
    )
    arguments = offset["COMPUTE_USER_DATA_0"] + int(row["kernarg_at"])
    same = (launch.kernarg, launch.pointers, launch.slots) == (before.kernarg, before.pointers, before.slots)
    if launch.kernel.words("", 0).takes_kernarg and not same and arguments not in fresh:
        yield f"reads the arguments of {before}"
