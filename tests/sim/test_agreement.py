# SPDX-License-Identifier: Apache-2.0
"""The encoder's packets on the software device, whose reader was written without it: two authors, one meaning.

What the one writes, the other must execute: every packet form on every target, AQL packets for any launch, and kernels
from LLVM that give the same bytes by an AQL packet as the oracle says.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.encoders import TARGETS, DispatchWords, Pm4Stream
from redline.encoders.aql import barrier_and_packet, barrier_or_packet, kernel_dispatch_packet, pm4_ib_packet
from redline.hsa import Agent, Runtime
from redline.kernels import DEMO_TARGETS, build
from redline.sim.launch import geometry
from redline.sim.runtime import SimRuntime
from tests.sim.aql_kernels import LLVM, kernel
from tests.sim.streams import RSRC1, Remembering, device, dispatch, launch, run_stream

FORMS = Path(__file__).parent.parent / "answers" / "pm4" / "forms.json"
FAMILY_OF = {
    "gfx1010": "gfx10.1",
    "gfx1030": "gfx10.3",
    "gfx1100": "gfx11.0",
    "gfx1151": "gfx11.5",
    "gfx1201": "gfx12.0",
}


def words_like(target: str) -> DispatchWords:
    """LLVM's descriptor of the target's relatives, at an address of the answer files."""
    group = "gfx1100" if target in ("gfx1100", "gfx1102") else "gfx1151" if target.startswith("gfx11") else None
    rsrc1, rsrc2, rsrc3, properties = LLVM[group or ("gfx1201" if target.startswith("gfx12") else "gfx1030")]
    return DispatchWords(
        name="k",
        entry=0x7F0012345600,
        kernarg=0x7F00ABCD0040,
        rsrc1=rsrc1,
        rsrc2=rsrc2,
        rsrc3=rsrc3,
        properties=properties,
        group_bytes=1024,
        private_bytes=0,
    )


@pytest.mark.parametrize("target", TARGETS)
def test_every_form_of_the_encoder_runs_and_means_what_it_says(target: str) -> None:
    """Writes, copies, both timestamps, fence and both waits, direct and indirect launches, padding and a chain."""
    backend = Remembering()
    with (
        device(target, backend) as (sim, agent),
        agent.allocate(4096, "kernarg") as data,
        agent.allocate(4096, "kernarg", executable=True) as second,
    ):
        at, words = data.address, words_like(target)
        tail = Pm4Stream(target)
        tail.release_fence(at + 64, 0x1_0000_0002)
        tail.wait_memory64(at + 64, 0x1_0000_0002)
        tail.wait_memory(at + 64, 2, "==")
        tail.timestamp_bottom(at + 72)
        tail.release_system()
        second.write(tail.words)
        stream = Pm4Stream(target)
        stream.acquire_system()
        stream.timestamp_top(at + 80)
        stream.write_data(at, [3, 1, 2])
        stream.copy_data(at, at + 16)
        stream.copy_data(at, at + 24, bits=64)
        stream.dispatch(words, global_size=1000, block=256)
        stream.barrier()
        stream.dispatch_indirect(words, args_va=at, block=256)
        stream.barrier(vmem_only=True)
        for dwords in (1, 2, 5):
            stream.nop(dwords)
        stream.wait_idle()
        stream.chain(second.address, len(tail.words))
        run_stream(agent, stream.words.tolist())
        assert data.read("<u4", 16, 1).tolist() == [3]
        assert data.read("<u4", 24, 2).tolist() == [3, 1]
        assert data.read("<u8", 64, 1)[0] == 0x1_0000_0002
        bottom, top = data.read("<u8", 72, 2).tolist()
        assert 0 < top <= bottom
        assert {packet.name for packet in sim.trace} >= {"COPY_DATA", "WAIT_REG_MEM64", "INDIRECT_BUFFER"}
    direct, indirect = backend.seen
    assert (geometry(direct).groups, geometry(direct).last, direct.lds_bytes) == ((4, 1, 1), (232, 1, 1), 1024)
    assert (geometry(indirect).groups, geometry(indirect).last) == ((3, 1, 2), (256, 1, 1))
    assert (indirect.entry, indirect.user_data) == (direct.entry, direct.user_data)


@pytest.mark.parametrize("target", FAMILY_OF)
def test_typed_forms_run(target: str) -> None:
    """The answer file, typed from headers, with this device's memory in place of its addresses."""
    forms = json.loads(FORMS.read_text())["forms"]
    with (
        device(target) as (_, agent),
        agent.allocate(4096, "kernarg") as data,
        agent.allocate(4096, "kernarg", executable=True) as padding,
    ):
        data.write(struct.pack("<16I", *[0, 0, 2, 1, 1, 1, 1], *[0] * 9))
        padding.write(np.full(1024, 0xFFFF1000, np.uint32))
        places = {0xDEAD0008: data.address + 8, 0xDEAD0010: data.address + 16, 0xCAFE1000: padding.address}
        for name, form in forms.items():
            family = (
                next((key for key in form if FAMILY_OF[target] in key.split()), None)
                if isinstance(form, dict)
                else None
            )
            words = [int(word, 16) for word in (form[family] if family else form).split()]
            for index, word in enumerate(words):
                if word in places:
                    words[index : index + 2] = places[word] & 0xFFFFFFFF, places[word] >> 32
            if name.startswith("wait_memory"):
                data.write(struct.pack("<Q", 7 if "7" in name else 0x1_0000_0002), 8)
            if name == "dispatch_indirect":
                words = [*launch(rsrc1=RSRC1[target])[: -len(dispatch())], *words]
                data.write(bytes(12), 16)  # zero groups: no code is there
            run_stream(agent, words)


@st.composite
def launches(draw: st.DrawFn) -> tuple[tuple[int, int, int], tuple[int, int, int], int]:
    """Grid and workgroup in work-items and LDS in bytes. Any dimension may be 1 in one and more in the other."""
    used = draw(st.integers(1, 3))
    most, widest = (40, 9, 5), (32, 8, 4)
    size = [draw(st.integers(1, most[d])) for d in range(used)]
    block = [draw(st.integers(1, widest[d])) for d in range(used)]
    padding = [1] * (3 - used)
    grid, group = (*size, *padding), (*block, *padding)
    return (grid[0], grid[1], grid[2]), (group[0], group[1], group[2]), draw(st.integers(1024, 65536))


def test_kernel_dispatch_packets_of_any_launch_are_understood() -> None:
    """Grid, workgroup and LDS arrive as given, in one to three dimensions, with workgroups larger than their grid."""
    with kernel() as k:

        @given(launch=launches())
        def understood(launch: tuple[tuple[int, int, int], tuple[int, int, int], int]) -> None:
            size, block, lds = launch
            packet = kernel_dispatch_packet(
                k.code.address, k.arguments.address, global_size=size, block=block, group_bytes=lds
            )
            k.backend.seen.clear()
            (seen,) = k.run(packet)
            shape = geometry(seen)
            assert seen.num_thread == block
            assert shape.groups == tuple(-(-n // b) for n, b in zip(size, block, strict=True))
            assert shape.last == tuple(n % b or b for n, b in zip(size, block, strict=True))
            assert seen.lds_bytes == -(-lds // 512) * 512

        understood()


def test_barriers_and_indirect_buffers_of_the_encoder_run() -> None:
    """AND, OR and a vendor packet behind them, in one batch; each completes its own signal."""
    with (
        device() as (_, agent),
        agent.allocate(64, "kernarg", executable=True) as ib,
        agent.signal(1) as gate,
        agent.signal(0) as open_gate,
        agent.signal(3) as done,
        agent.queue() as queue,
    ):
        ib.write(np.array([0xFFFF1000], np.uint32))
        batch = [
            barrier_or_packet([gate.handle, open_gate.handle], done.handle),
            barrier_and_packet([gate.handle, open_gate.handle], done.handle),
            pm4_ib_packet(ib.address, 1, done.handle),
        ]
        queue.submit(np.stack(batch))
        assert done.wait_below(3, 10, poll=queue.check) == 2
        gate.store(0)
        assert done.wait_below(1, 10, poll=queue.check) == 0


# Kernels from LLVM


def run_kernel(agent: Agent, name: str, wave: int, arguments: bytes, size: int) -> None:
    """Load a kernel, read its LDS size where the device will, and launch it by a packet."""
    with (
        agent.load(build(name, agent.target, wave)) as code,
        agent.allocate(256, "kernarg") as kernarg,
        agent.signal(1) as signal,
        agent.queue() as queue,
    ):
        kernarg.write(arguments)
        sim = agent.runtime.hsa.table.device
        assert isinstance(sim, SimRuntime)
        address = code.kernel_object(name)
        packet = kernel_dispatch_packet(
            address,
            kernarg.address,
            global_size=size,
            block=256,
            group_bytes=sim.memory.u32_at(address),
            completion_signal=signal.handle,
        )
        queue.submit(packet)
        signal.wait_below(1, 60, poll=queue.check)


@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("target", DEMO_TARGETS)
def test_kernels_from_llvm_run_from_their_descriptors(target: str, wave: int) -> None:
    """A partial last workgroup, and LDS with barriers; the bytes are those of numpy, and nothing else is written."""
    draw = np.random.default_rng(5)
    with Runtime.sim(target) as runtime:
        agent = runtime.agents()[0]
        with agent.allocate(8192, "device") as out, agent.allocate(16384, "device") as source:
            words = draw.integers(0, 1 << 32, 1000, np.uint32)
            source.write(words)
            out.write(bytes(8192))
            run_kernel(agent, "copy", wave, struct.pack("<2QI", out.address, source.address, 1000), 1000)
            assert out.read("<u4", 0, 1000).tolist() == words.tolist()
            assert not out.read("<u4", 4000).any()
            values = draw.normal(size=(3, 700)).astype(np.float32)
            source.write(values)
            # index, value, src, n, pitch: one workgroup a row, which meets in a tree in static LDS.
            arguments = struct.pack("<3Q2I", out.address, out.address + 64, source.address, 700, 700)
            run_kernel(agent, "argmax", wave, arguments, 3 * 256)
            assert out.read("<i4", 0, 3).tolist() == values.argmax(axis=1).tolist()
            assert out.read("<f4", 64, 3).tolist() == values.max(axis=1).tolist()
