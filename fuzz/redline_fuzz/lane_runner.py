# SPDX-License-Identifier: Apache-2.0
"""Feeds the packets of several queues to the hostile machine, in the order that its schedule likes.

Packets of a lane are taken in order. A barrier-AND packet waits until its signals are 0 and holds back its lane; when
all lanes are held back something undrained ends. Completions come as late as is legal.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import redline as rl
from redline.packets import FINAL, silent
from redline.sim.aql import DEP_SIGNAL, DEP_SIGNALS, AqlProcessor
from redline.sim.aql_packet import TYPE_BARRIER_AND, AqlPacket
from redline.sim.errors import PacketFault
from redline.sim.families import TARGETS
from redline.sim.packets import Pm4Reader
from redline.sim.signals import Signals
from redline_fuzz.machine import HostileMachine

PATIENCE_S = 0.01  # of waits that nothing pending can end


class LaneRunner:
    """The queues of one program. `signals`: handles (uint64) by number, for its packets."""

    def __init__(self, machine: HostileMachine, target: str, plan: rl.Plan, program: rl.Program) -> None:
        self._machine = machine
        self._values = Signals(machine.memory)
        self.signals = np.array([self._values.create(0) for _ in range(program.signals)], np.uint64)
        self.may_batch = program.form != "pm4 phases" and (program.form != "aql" or program.lanes == 1)
        places = {launch: at for at, launch in enumerate(plan.order)}
        self._processors = []
        for lane in range(program.lanes):
            packets = np.flatnonzero(program.packets["lane"] == lane).tolist()
            issued = [places[launch] for packet in packets for launch in program.launches_of(packet)]
            reader = Pm4Reader(
                TARGETS[target].family, machine.memory, machine.queue(issued), lambda _executed: None, PATIENCE_S
            )
            self._processors.append(AqlProcessor(reader, self._values, PATIENCE_S))

    def run(self, batches: Sequence[NDArray[np.uint32]], *, observed: bool) -> None:
        """One replay. `observed`: the host waits for its end; otherwise another follows at once."""
        for signal in self.signals.tolist():
            self._values.store(signal, 1)
        if not observed:
            batches = [silent(packets) for packets in batches]
        left = [deque(AqlPacket(at, tuple(row)) for at, row in enumerate(packets.tolist())) for packets in batches]
        while any(left):
            ready = [lane for lane in self._lanes() if left[lane] and self._is_ready(left[lane][0])]
            if ready:
                self._processors[ready[0]].run(left[ready[0]].popleft(), threading.Event())
            else:
                self._go_on("every lane waits for another")
        while observed and self._values.load(int(self.signals[FINAL])):
            self._go_on("nothing completes the replay's signal")

    def _lanes(self) -> list[int]:
        """Which lane is asked first."""
        schedule, lanes = self._machine.schedule, list(range(len(self._processors)))
        if schedule.seed is not None:
            self._machine.random.shuffle(lanes)
        turn = schedule.permutation % len(lanes)
        lanes = lanes[turn:] + lanes[:turn]
        return lanes[::-1] if schedule.reverse else lanes

    def _is_ready(self, packet: AqlPacket) -> bool:
        if packet.type != TYPE_BARRIER_AND:
            return True
        handles = [packet.u64(DEP_SIGNAL + 2 * at) for at in range(DEP_SIGNALS)]
        return all(self._values.load(handle) == 0 for handle in handles if handle)

    def _go_on(self, what: str) -> None:
        if not self._machine.advance():
            raise PacketFault("lanes", what, "a wait that something ends")
