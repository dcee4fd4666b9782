# SPDX-License-Identifier: Apache-2.0
"""Lower a plan to a program in one of four forms: what each queue is given, and who waits for whom.

One queue with one indirect buffer (a long one is cut into several); independent components on several queues, one
stream each; phases (`phased=True`), each waiting for all of the one before; and AQL, one packet per launch. How words
are emitted is `lowering.py`'s, what packets are `packets.py`'s, which launches share a lane `lanes.py`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from .aql_lanes import derive_aql
from .encoders.emit import KERNARG_RELOC
from .errors import EncodeError, RecordError
from .fences import Fences, derive
from .fitting import require
from .lanes import MOST_LANES, MOST_QUEUES, Lanes, Queues, asked, chains, independent, phases
from .lowering import KernargImage, Numbers, Stream, Words, drains_by_fence_word
from .packets import FINAL, Packets, aql_packets
from .phases import PhaseFences, derive_phases
from .program import PATCH_POINT, Options, Program

if TYPE_CHECKING:
    from .plan import Plan

GFX10_WAITS: Final = ("fence", "partial_flush")
FORMS: Final = ("pm4", "aql")


def lower(
    plan: Plan,
    fences: Fences,
    *,
    gfx10_wait: str = "fence",
    elide: bool = True,
    queues: Queues = 1,
    phased: bool = False,
    form: str = "pm4",
    profile: bool = False,
) -> Program:
    """Lower a plan with these fences to what is submitted.

    With replays back to back the cold entry is followed by the warm one, inside a NOP packet that skips it; a warm
    start begins in the packet's body.

    gfx10_wait: how gfx10 drains. "fence" is RELEASE_MEM and WAIT_REG_MEM on a word that the replay owns;
    "partial_flush" is CS_PARTIAL_FLUSH, which old gfx10 microcode may not wait for.
    elide: leave out SET_SH_REG of what already stands.
    queues: how many queues a replay may use (1 to 4; AQL to 64), "auto" for what is known to work on the target, or a
    lane for each launch as recorded. Only as many are used as there is work for that can run at a time.
    phased: split every level over the queues; each phase waits for all of the one before. Levels of one launch stay on
    the first queue, whatever lane they were given.
    form: "pm4" for indirect buffers, "aql" for one packet per launch. Phases and AQL packets always start cold.
    A plan with fences="full" has one lane.
    profile: note when each AQL launch, or each stream of words, begins and ends (`Replay.spans`). A replay is submitted
    as often as without it.
    Lanes have fences of their own, derived here: `fences` must then be those that `derive` gives for the plan.

    Raises RecordError for what is no plan or no fences, for an unknown option and for counts in memory with form="aql",
    EncodeError for fences of another plan and when a limit is exceeded, UnsupportedKernel and UnsupportedTarget for
    what recording would have refused, HazardError as `derive` does.
    """
    require(plan, "Plan", "lower")
    require(fences, "Fences", "lower")
    _check_fences(plan, fences)
    options = Options(gfx10_wait, elide, 1, phased, form, profile)
    _check_options(options)
    wanted = asked(plan, queues, MOST_LANES if form == "aql" else MOST_QUEUES)
    options = replace(options, queues=wanted)
    full = plan.fence_mode == "full"  # what is fenced from everything has one lane
    if form == "aql":
        return _lower_aql(plan, fences, options, 1 if full else wanted)
    if phased and not full:
        return _lower_phases(plan, fences, options)
    lanes = independent(plan, 1 if full else wanted)
    if len(lanes) == 1:
        return _lower_lanes(plan, (plan.order,), [fences], options)
    _check_own(plan, fences)
    return _lower_lanes(plan, lanes, [derive(replace(plan, order=lane)) for lane in lanes], options)


def _check_options(options: Options) -> None:
    known = {
        "gfx10_wait": GFX10_WAITS,
        "elide": (False, True),
        "form": FORMS,
        "phased": (False, True),
        "profile": (False, True),
    }
    for name, allowed in known.items():
        if not isinstance(getattr(options, name), type(allowed[0])) or getattr(options, name) not in allowed:
            raise RecordError(
                "RL0132",
                where=f"{name}=",
                seen=repr(getattr(options, name)),
                allowed=str(allowed),
                do="choose one of them",
            )
    if options.phased and options.form == "aql":
        raise RecordError(
            "RL0132",
            where="phased=True with form='aql'",
            seen="both",
            allowed="one of them",
            do="leave phased= out: AQL lanes wait for single launches",
        )


def _check_fences(plan: Plan, fences: Fences) -> None:
    """What does not fit the plan would be dropped, or lowered as something else."""
    first, last = int(plan.boundary == "host"), len(plan.order) - 1
    places = [fence.at for fence in fences.inner]
    if places and not first <= places[0] <= places[-1] <= last:
        raise EncodeError(
            "RL0521",
            where="lower",
            seen=f"fences before positions {places[0]} to {places[-1]}",
            allowed=f"positions {first}..{last}",
            do="derive the fences from this plan",
        )


def _check_own(plan: Plan, fences: Fences) -> None:
    if fences != plan.fences:
        raise EncodeError(
            "RL0522",
            where="lower with several lanes",
            seen=f"fences of your own: {fences}",
            allowed="plan.fences: each lane has fences of its own, derived for it",
            do="lower them with queues=1, phased=False, form='pm4'",
        )


def _lower_lanes(plan: Plan, lanes: Lanes, fences: Sequence[Fences], options: Options) -> Program:
    """One stream on each queue; the first waits for the others at the end."""
    order = [launch for lane in lanes for launch in lane]
    numbers, words, packets = Numbers(plan, order), Words(elide=options.elide), Packets()
    loops = plan.boundary != "host"
    last = [packets.signal() for _ in lanes[1:]]
    for lane, (launches, own) in enumerate(zip(lanes, fences, strict=True)):
        stream = Stream(plan, numbers, options.gfx10_wait, lane, _stamps(plan, options, len(lanes), lane))
        stream.entries(own, loops=loops)
        stream.launches(launches, own)
        stream.exit(own)
        completes = FINAL if len(lanes) == 1 else last[lane - 1] if lane else None
        _add_ibs(packets, lane, words.add(stream, loops=loops), completes)
    if len(lanes) > 1:
        packets.end(0, last, FINAL, release="NONE")
    return _program(plan, order, numbers, words, packets, options, lanes=len(lanes), streams=range(len(lanes)))


def _stamps(plan: Plan, options: Options, lanes: int, stream: int) -> tuple[int, int] | None:
    """Where a stream notes its begin and end: behind the fence words of all lanes."""
    if not options.profile:
        return None
    first = lanes * drains_by_fence_word(plan, options.gfx10_wait) + 2 * stream
    return first, first + 1


def _add_ibs(packets: Packets, lane: int, ibs: range, completes: int | None) -> None:
    """All indirect buffers of a stream; the last one completes the signal."""
    for ib in ibs:
        packets.ib(lane, ib, completes if ib == ibs[-1] else None)


def _lower_phases(plan: Plan, fences: Fences, options: Options) -> Program:
    """A stream for each lane of each phase, between barrier-AND packets."""
    _check_own(plan, fences)
    dealt = phases(plan, options.queues)
    order = [launch for phase in dealt for lane in phase for launch in lane]
    numbers, words, packets = Numbers(plan, order), Words(elide=options.elide), Packets()
    own = derive_phases(plan, dealt)
    lanes, streams = max(map(len, dealt)), list[int]()
    before: dict[int, int] = {}  # of the phase before: the signal of each lane
    for at, phase in enumerate(dealt):
        busy = [lane for lane, launches in enumerate(phase) if launches]
        ends = at == len(dealt) - 1
        signals = {lane: FINAL if ends and len(busy) == 1 else packets.signal() for lane in busy}
        for lane in busy:
            packets.wait(lane, [signal for other, signal in before.items() if other != lane])
            stream = Stream(plan, numbers, options.gfx10_wait, lane, _stamps(plan, options, lanes, len(streams)))
            _fill_phase(stream, phase[lane], own[at, lane], ends=ends)
            streams.append(lane)
            _add_ibs(packets, lane, words.add(stream, loops=False), signals[lane])
        before = signals
    if len(before) > 1:
        packets.end(min(before), list(before.values()), FINAL, release="NONE")
    return _program(plan, order, numbers, words, packets, options, lanes=lanes, streams=streams)


def _fill_phase(stream: Stream, launches: Sequence[int], own: PhaseFences, *, ends: bool) -> None:
    """What a lane reads of a phase. Its completion is observed, so it ends with a drain."""
    stream.begin()
    if own.cold:
        stream.drain()
        stream.acquire_system()
    elif own.acquire:
        stream.acquire(own.acquire)
    stream.marks += [len(stream.rows)] * 2
    stream.launches(launches, own.inner)
    stream.drain()
    stream.marks.append(len(stream.rows))  # only the release may be left out: other lanes wait for the drain
    if ends:
        stream.release_system()
    stream.end()


def _lower_aql(plan: Plan, fences: Fences, options: Options, queues: Queues) -> Program:
    """A packet for each launch. What recording refuses is refused here too, though no register is written."""
    _check_own(plan, fences)
    lanes = derive_aql(plan, chains(plan, queues))
    order = [row.launch for lane in lanes for row in lane]
    numbers = Numbers(plan, order)
    checked = Stream(plan, numbers, options.gfx10_wait, 0)
    for launch in order:
        checked.launch(launch)
    packets = aql_packets(plan, lanes, numbers.kernel_of, numbers.slot_of, profile=options.profile)
    return _program(plan, order, numbers, Words(elide=options.elide), packets, options, lanes=0, streams=())


def _program(
    plan: Plan,
    order: Sequence[int],
    numbers: Numbers,
    words: Words,
    packets: Packets,
    options: Options,
    *,
    lanes: int,
    streams: Sequence[int],
) -> Program:
    image = KernargImage(plan, order)
    emitted, relocs, ibs = words.columns()
    rows, packet_relocs = packets.columns()
    return Program(
        target=plan.target,
        words=emitted,
        relocs=relocs,
        ibs=ibs,
        packets=rows,
        packet_relocs=packet_relocs,
        signals=packets.signals,
        kernarg=image.bytes(),
        kernarg_relocs=np.array(image.relocs, KERNARG_RELOC),
        patches=np.array(image.patches, PATCH_POINT),
        slots=plan.slots,
        kernels=tuple(numbers.kernels),
        slot_offsets=np.array(image.offsets, np.uint64),
        fence_words=lanes * drains_by_fence_word(plan, options.gfx10_wait),
        streams=tuple(streams),
        order=tuple(order),
        ib_launches=tuple(words.launches),
        options=options,
        reason=_reason(plan, options, int(rows["lane"].max()) + 1),
    )


def _reason(plan: Plan, options: Options, lanes: int) -> str:
    """Why there are fewer lanes than were asked for."""
    wanted = options.queues
    if plan.fence_mode == "full" and (wanted != 1 or options.phased):
        return "fences='full' has one lane"
    if isinstance(wanted, int) and lanes < wanted:
        return f"{lanes} of {wanted} queues: no more launches can run at a time"
    return ""
