# SPDX-License-Identifier: Apache-2.0
"""Check the fences of encoded PM4 words against a plan, whoever encoded them.

Reads the stream with `encoders/decode.py` and writes down the same steps as `safety.py` makes of fences, so both are
judged by one definition. What is not understood protects nothing. Follows no chained buffer and looks at no address: a
relocated dword may still be 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from .encoders import family_for
from .encoders.decode import decode
from .errors import RecordError, UnsupportedTarget
from .safety import Finding, Step, check_steps

if TYPE_CHECKING:
    from .encoders.decode import Command
    from .encoders.table import FamilyTable
    from .launch import Launch
    from .plan import Plan

#: GCR_CNTL fields that make an acquire reach a cache, beside GL1 where the family has one.
_REACHES: Final = {"K": "GLK_INV", "V": "GLV_INV", "P": "GL2_WB", "GL2_INV": "GL2_INV", "GL2_WB": "GL2_WB"}
_BEHIND_GL1: Final = ("K", "V")

#: Packets that neither order launches nor refresh a cache, whatever their fields.
_PASSIVE: Final = ("NOP", "COPY_DATA")

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
    RecordError for entries outside the stream, UnsupportedKernel for a plan that recording would have refused.
    """
    listed = [int(word) for word in words]
    if plan.target != target:
        raise UnsupportedTarget(
            "RL0301",
            where="verify_words",
            seen=f"words for {target}",
            allowed=f"{plan.target}, the plan's target",
            do="record the plan with kernels of that target",
        )
    cold, warm, end, end_release = _entries(listed, ib)
    reader = _Reader(plan, gfx10_wait)
    steps = [Step("host writes"), *reader.replay(listed[cold : end if plan.boundary != "host" else end_release])]
    if plan.boundary != "host":
        steps += [Step("next replay"), Step("patch")]
        steps += [Step("others write")] if plan.boundary == "other-queue" else []
        steps += reader.replay(listed[warm:end_release])
    steps.append(Step("host reads"))
    return (*reader.findings, *check_steps(plan, steps, reader.family.l2_kinds))


def _entries(words: Sequence[int], ib: Sequence[int] | None) -> Entries:
    row = [int(at) for at in ib] if ib is not None else [0, 0, len(words), len(words)]
    cold, warm, end, end_release = row if len(row) == 4 else (1, 0, 0, 0)
    if not 0 <= cold <= warm <= end <= end_release <= len(words):
        raise RecordError(
            "RL0140",
            where="verify_words(ib=)",
            seen=repr(row),
            allowed=f"cold <= warm <= end <= end_release, dwords in 0..{len(words)}",
            do="pass a row of Program.ibs, or nothing",
        )
    return cold, warm, end, end_release


class _Reader:
    """Turns packets into steps, and reports what belongs to no such plan."""

    def __init__(self, plan: Plan, gfx10_wait: str) -> None:
        self.plan, self.family = plan, family_for(plan.target)
        self.flush_waits = self.family.partial_flush_is_trusted or gfx10_wait == "partial_flush"
        self.findings: list[Finding] = []

    def replay(self, words: Sequence[int]) -> list[Step]:
        """The steps of one replay."""
        self.launched = 0
        self.stored: dict[int, int] = {}  # fence words that this replay has zeroed, and the value last stored there
        self.registers: dict[int, int] = {}
        self.pending: Command | None = None
        steps: list[Step] = []
        for command in decode(words, self.family):
            steps += self._step(command)
        if self.launched != len(self.plan.order):
            self._strange(f"{self.launched} launches, not {len(self.plan.order)}")
        return steps

    def _step(self, command: Command) -> Iterator[Step]:
        fields, pending = command.fields, self.pending
        self.pending = None
        if command.name == "SET_SH_REG":
            self.registers.update(command.registers)
        elif command.name in ("DISPATCH_DIRECT", "DISPATCH_INDIRECT"):
            yield from self._launch(command)
        elif command.name == "EVENT_WRITE":
            if self.flush_waits and self._is("drain", command):
                yield Step("drain")
        elif command.name == "WRITE_DATA":
            if command.tail == (0,) and self._is("write_data", command):
                self.stored[_address(fields)] = 0
        elif command.name == "RELEASE_MEM":
            self.pending = command if self._is("fence_release", command) else None
        elif command.name == "WAIT_REG_MEM":
            yield from self._wait(command, pending)
        elif command.name == "ACQUIRE_MEM":
            yield from self._acquire(command)
        elif command.name not in _PASSIVE:
            self._strange(f"{command.name} at dword {command.dword}")

    def _wait(self, command: Command, pending: Command | None) -> Iterator[Step]:
        """A drain, if only what the RELEASE_MEM directly before it stores can end the wait."""
        if pending is None or not self._is("wait_memory", command):
            return
        address, value = _address(pending.fields), pending.fields["DATA_LO"]
        wanted = (_address(command.fields), command.fields["REFERENCE"])
        if wanted == (address, value) and value > self.stored.get(address, value):
            yield Step("drain")
        if address in self.stored:
            self.stored[address] = max(self.stored[address], value)

    def _acquire(self, command: Command) -> Iterator[Step]:
        fields = command.fields
        if not _covers_everything(fields):
            return
        gl1 = fields.get("GL1_INV", 1)
        reached = [name for name, field in _REACHES.items() if fields[field] and (gl1 or name not in _BEHIND_GL1)]
        if "GL2_INV" in reached and "GL2_WB" not in reached:
            where = f"ACQUIRE_MEM at dword {command.dword}"
            self.findings.append(Finding("may lose bytes", "host", "host", f"{where}: GL2_INV without GL2_WB"))
        yield Step("acquire", caches=tuple(reached))

    def _launch(self, command: Command) -> Iterator[Step]:
        at, self.launched = self.launched, self.launched + 1
        if at >= len(self.plan.order):
            return
        launch = self.plan.launches[self.plan.order[at]]
        wrong = list(_differences(self.family, launch, self.registers, command))
        if wrong:
            self._strange(f"the launch at dword {command.dword} is not {launch}: {'; '.join(wrong)}")
        yield Step("launch", at)

    def _strange(self, what: str) -> None:
        self.findings.append(Finding("not this plan", "host", "host", what))

    def _is(self, form: str, command: Command) -> bool:
        """Whether a packet does what ours of that form does: the same selectors, whatever address, data and pace."""
        fields = {item.name: item for word in self.family.packet[command.name].words for item in word.fields}
        return all(
            command.fields[name] == fields[name].unpack(fields[name].pack(value, form))
            for name, value in self.family.forms[form].values.items()
            if name != "POLL_INTERVAL"
        )


def _address(fields: dict[str, int]) -> int:
    return fields["ADDR_HI"] << 32 | fields["ADDR_LO"]


def _covers_everything(fields: dict[str, int]) -> bool:
    """Whether an ACQUIRE_MEM reaches all addresses: base 0, the longest size, no range of its own."""
    whole = fields["COHER_SIZE"] == 0xFFFFFFFF and fields["COHER_BASE_LO"] == fields["COHER_BASE_HI"] == 0
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
    resources = [registers.get(offset["COMPUTE_PGM_RSRC1"]), registers.get(offset["COMPUTE_PGM_RSRC2"])]
    dims = list(command.words[1:4]) if launch.indirect is None else row["dims"].tolist()
    initiator = command.words[-1]
    for name, seen, wanted in (
        ("block", threads, row["threads"].tolist()),
        ("grid", dims, row["dims"].tolist()),
        ("initiator", initiator, int(row["initiator"])),
        ("RSRC1 and RSRC2", resources, [int(row["rsrc1"]), int(row["rsrc2"])]),
    ):
        if seen != wanted:
            yield f"{name} {seen}, not {wanted}"
