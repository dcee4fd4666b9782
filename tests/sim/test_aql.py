# SPDX-License-Identifier: Apache-2.0
"""AQL packets on the software device: kernel dispatches from descriptors in memory, and barriers that order them.

Packet words follow hsa.h, descriptor words LLVM's AMDGPUUsage and what LLVM 22 makes (`tests/answers/pm4`): typed here,
never taken from the encoder or from radiowave.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from redline.errors import QueueFailed
from redline.sim.dispatch import Dispatch
from redline.sim.launch import geometry
from tests.sim.aql_kernels import LLVM, UNSET, descriptor, kernel
from tests.sim.streams import Remembering, dispatch, ib_packet, launch, run_stream

ANSWERS = Path(__file__).parent.parent / "answers" / "pm4"


def expected_user_data(target: str, kernarg: int) -> tuple[int, ...]:
    """gfx10: four words of private segment buffer first; gfx1100: padding up to fifteen."""
    pointer = [kernarg & 0xFFFFFFFF, kernarg >> 32]
    words = {"gfx1010": [0, 0, 0, 0, *pointer], "gfx1030": [0, 0, 0, 0, *pointer], "gfx1100": [*pointer, *[0] * 13]}
    made = words.get(target, pointer)
    return tuple(made + [UNSET] * (16 - len(made)))


@pytest.mark.parametrize("target", LLVM)
def test_a_kernel_dispatch_is_the_dispatch_of_the_same_stream(target: str) -> None:
    """Descriptor words copied, LDS of the packet in units of 512 bytes, user SGPRs as the ABI says; then the same
    launch typed as PM4 gives an equal `Dispatch`."""
    rsrc1, rsrc2, rsrc3, _ = LLVM[target]
    with kernel(target) as k:
        (seen,) = k.run(k.packet())
        user_data = expected_user_data(target, k.arguments.address)
        assert seen == Dispatch(
            entry=k.code.address + 0x100,
            rsrc1=rsrc1,
            rsrc2=rsrc2 | 2 << 15,
            rsrc3=rsrc3,
            initiator=0x8045,
            user_data=user_data,
            dims=(4, 1, 1),
            num_thread=(256, 1, 1),
        )
        used = [word for word in user_data if word != UNSET]
        user = [0xC0007600 | len(used) << 16, 0x240, *used]
        threads_on = launch(seen.entry, rsrc1=rsrc1, rsrc2=rsrc2 | 2 << 15)[:-9]
        run_stream(k.agent, [*threads_on, 0xC0017600, 0x228, rsrc3, *user, *dispatch(4)])
        assert k.backend.seen[1] == seen


def test_the_golden_packet_runs() -> None:
    """The answer file's words, with this device's addresses in place of the example's."""
    words = json.loads((ANSWERS / "aql.json").read_text())["aql"]["kernel_dispatch_system"]["hex"]
    with kernel() as k, k.agent.signal(1) as signal:
        packet = np.array([int(word, 16) for word in words], np.uint32)
        for at, address in ((8, k.code.address), (10, k.arguments.address), (14, signal.handle)):
            packet[at], packet[at + 1] = address & 0xFFFFFFFF, address >> 32
        (seen,) = k.run(packet)
        assert (seen.dims, seen.num_thread, seen.lds_bytes, seen.wave) == ((4, 1, 1), (256, 1, 1), 1024, 32)
        assert signal.load() == 0


@pytest.mark.parametrize(
    ("grid", "block", "dims", "initiator", "groups", "last"),
    [
        ((1000, 1, 1), (256, 1, 1), 1, 0x8025, (4, 1, 1), (232, 1, 1)),
        ((1, 1, 1), (256, 1, 1), 1, 0x8025, (1, 1, 1), (1, 1, 1)),
        ((64, 6, 1), (16, 4, 1), 2, 0x8025, (4, 2, 1), (16, 2, 1)),
        ((64, 8, 1), (16, 4, 1), 2, 0x8045, (4, 2, 1), (16, 4, 1)),
        ((5, 6, 7), (2, 3, 4), 3, 0x8025, (3, 2, 2), (1, 3, 3)),
        ((4, 6, 8), (2, 3, 4), 3, 0x8045, (2, 2, 2), (2, 3, 4)),
        ((4, 1, 1), (2, 1, 1), 3, 0x8045, (2, 1, 1), (2, 1, 1)),
    ],
)
def test_grids_of_one_to_three_dimensions_with_partial_workgroups(
    grid: Any, block: Any, dims: int, initiator: int, groups: Any, last: Any
) -> None:
    """Grid sizes are work-items; what does not divide ends in smaller workgroups."""
    with kernel() as k:
        (seen,) = k.run(k.packet(grid, block, dims=dims))
        shape = geometry(seen)
        assert (seen.initiator, seen.num_thread) == (initiator, block)
        assert (shape.groups, shape.whole, shape.last) == (groups, block, last)


def test_wave_size_comes_from_the_descriptor() -> None:
    """ENABLE_WAVEFRONT_SIZE32, bit 10: without it waves have 64 lanes."""
    with kernel(properties=0x0008) as k:
        whole, partial = k.run(np.vstack([k.packet(), k.packet((1000, 1, 1))]))
        assert (whole.wave, whole.initiator, partial.initiator) == (64, 0x0045, 0x0025)


@pytest.mark.parametrize(("group", "units"), [(1024, 2), (1025, 3), (1536, 3), (65536, 128)])
def test_lds_is_what_the_packet_says(group: int, units: int) -> None:
    """Static and dynamic together, rounded up to 512 bytes."""
    with kernel() as k:
        (seen,) = k.run(k.packet(group=group))
        assert (seen.rsrc2 >> 15 & 0x1FF, seen.lds_bytes) == (units, units * 512)


def test_kernels_without_arguments_need_no_address() -> None:
    """No kernarg pointer in the properties, none in the packet; on gfx10 the segment buffer is there all the same."""
    for target, properties, rsrc2, zeros in (("gfx1201", 0x0400, 0x80, 0), ("gfx1030", 0x0401, 0x88, 4)):
        with kernel(target, properties=properties, rsrc2=rsrc2, kernarg=0) as k:
            (seen,) = k.run(k.packet(w10=0, w11=0))
            assert seen.user_data == (*[0] * zeros, *[UNSET] * (16 - zeros))


def test_a_kernel_dispatch_leaves_registers_that_nobody_may_build_on() -> None:
    """The packet processor sets the queue's registers for it, so a stream that assumes its own from before faults."""
    with kernel() as k, k.agent.allocate(4096, "kernarg", executable=True) as ib:
        words = launch()
        ib.write(np.array([*words, *dispatch()], np.uint32))
        first = ib_packet(ib.address, len(words))
        second = ib_packet(ib.address + 4 * len(words), 5)
        with pytest.raises(QueueFailed, match="packet 2.*never written on this queue"):
            k.run(np.vstack([first, k.packet(), second]))
        assert [seen.ordinal for seen in k.backend.seen] == [0, 1]


def test_packets_are_done_in_order_and_so_are_their_signals() -> None:
    """Each kernel sees the signals of those before it at 0 and its own still at 1, with and without the barrier bit."""
    states: list[list[int]] = []
    backend = Remembering(lambda *_: states.append([signal.load() for signal in signals]))
    with kernel(backend=backend) as k:
        signals = [k.agent.signal(1) for _ in range(4)]
        headers = (0x1502, 0x1402, 0x0102, 0x0002)
        batch = [k.packet(header=h, signal=s.handle) for h, s in zip(headers, signals, strict=True)]
        k.run(np.vstack(batch))
        assert states == [[1, 1, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]]
        assert [packet.name for packet in k.sim.trace] == ["KERNEL_DISPATCH"] * 4
        assert [packet.dword for packet in k.sim.trace] == [0, 1, 2, 3]
        for signal in signals:
            signal.close()


def test_one_signal_may_count_many_packets() -> None:
    """A completion signal is decremented, not cleared."""
    with kernel() as k, k.agent.signal(7) as signal:
        k.run(np.vstack([k.packet(signal=signal.handle)] * 5))
        assert signal.load() == 2


PACKETS_REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no dimensions": ({"dims": 0}, "dword 0: setup: 0x00001502; allowed: 1 to 3 dimensions"),
    "setup bits": ({"dims": 5}, "setup"),
    "reserved0": ({"w2": 0x00010001}, "dword 2: reserved0: 0x00010001"),
    "reserved2": ({"w12": 1}, "dword 12: reserved2: 0x00000001"),
    "reserved2, high": ({"w13": 1}, "dword 13: reserved2"),
    "scratch": ({"w6": 4}, "dword 6: private_segment_size .this device has no scratch memory.: 0x00000004"),
    "no workgroup": ({"block": (0, 1, 1)}, "dword 1: workgroup_size_x: 0x00010000; allowed: at least 1"),
    "workgroup z of 0": ({"block": (1, 1, 0), "dims": 3}, "dword 2: workgroup_size_z"),
    "workgroup in an unused dimension": (
        {"block": (16, 2, 1)},
        "workgroup_size_y: .*1 in a dimension that is not used",
    ),
    "workgroup too large": ({"block": (64, 32, 1), "grid": (64, 32, 1), "dims": 2}, "workgroup of .64, 32, 1.*1024"),
    "no grid": ({"grid": (0, 1, 1)}, "dword 3: grid_size_x: 0x00000000; allowed: 1 to 2147483647"),
    "grid in an unused dimension": ({"grid": (16, 2, 1)}, "dword 4: grid_size_y: 0x00000002; allowed: 1 to 1 with 1"),
    "grid y": ({"grid": (1, 65536, 1), "dims": 2}, "dword 4: grid_size_y: 0x00010000; allowed: 1 to 65535"),
    "grid in all": ({"grid": (65536, 65535, 65535), "dims": 3}, "grid of .65536, 65535, 65535.*4294967295 work-items"),
    "LDS below the kernel's": ({"group": 1023}, r"dword 7: group_segment_size: 0x000003ff; allowed: 1024 \(what the"),
    "LDS": ({"group": 65537}, "dword 7: group_segment_size: 0x00010001; .* to 65536 bytes"),
    "kernel object misaligned": ({"w8": 0x1020}, "dword 8: kernel_object: 0x00001020; allowed: a multiple of 64"),
    "kernel object beyond 48 bits": ({"w9": 0x10000}, "dword 9: kernel_object, high half: 0x00010000"),
    "kernargs misaligned": ({"w10": 0x1008}, "dword 10: kernarg_address: 0x00001008; allowed: a multiple of 16"),
    "scopes": ({"header": 0x1E02}, "dword 0: header: .*fence scopes 0 to 2"),
    "dead signal": ({"signal": 0x40}, "dword 14: completion signal 0x40"),
}


@pytest.mark.parametrize("name", PACKETS_REFUSED)
def test_packets_that_are_refused(name: str) -> None:
    """Each names the packet's index, the dword, what was seen and what is allowed."""
    changes, message = PACKETS_REFUSED[name]
    with kernel() as k:
        k.refused(k.packet(**changes), rf"INVALID_PACKET_FORMAT \(0x1009\): .*AQL packet 0, {message}|{message}")


DESCRIPTORS_REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "scratch": ({"private": 16}, "PRIVATE_SEGMENT_FIXED_SIZE: 16; allowed: 0"),
    "scratch enabled": ({"rsrc2": 0x85}, "RSRC2.SCRATCH_EN: 1; allowed: 0: this device has no scratch memory"),
    "dispatch pointer": ({"properties": 0x040A}, "ENABLE_SGPR_DISPATCH_PTR: 1; allowed: 0: this device does not"),
    "queue pointer": ({"properties": 0x040C}, "ENABLE_SGPR_QUEUE_PTR"),
    "dispatch id": ({"properties": 0x0418}, "ENABLE_SGPR_DISPATCH_ID"),
    "flat scratch": ({"properties": 0x0428}, "ENABLE_SGPR_FLAT_SCRATCH_INIT"),
    "private size": ({"properties": 0x0448}, "ENABLE_SGPR_PRIVATE_SEGMENT_SIZE"),
    "dynamic stack": ({"properties": 0x0C08}, "USES_DYNAMIC_STACK"),
    "unknown property": ({"properties": 0x0488}, "properties: 0x0488; allowed: bits within 0x0409"),
    "preload": ({"preload": 2}, "KERNARG_PRELOAD: 2"),
    "reserved, first": ({"gap0": 1}, "reserved bytes: 01000000"),
    "reserved, second": ({"gap1": 1}, "reserved bytes"),
    "reserved, third": ({"gap2": 1 << 24}, "reserved bytes: .*01;"),
    "LDS in the descriptor": ({"rsrc2": 0x8084}, "RSRC2.LDS_SIZE: 1; allowed: 0: the packet says how much"),
    "entry misaligned": (
        {"entry": 0x80},
        "KERNEL_CODE_ENTRY_BYTE_OFFSET: entry 0x[0-9a-f]*80; allowed: a multiple of 256",
    ),
    "entry below 0": ({"entry": -(1 << 62)}, "KERNEL_CODE_ENTRY_BYTE_OFFSET"),
    "few user SGPRs": ({"rsrc2": 0x82}, r"RSRC2.USER_SGPR: 1; allowed: 2 \(what the properties ask for\) to 16"),
    "many user SGPRs": ({"rsrc2": 0xA2}, "RSRC2.USER_SGPR: 17"),
    "segment buffer without room": ({"properties": 0x0409}, r"RSRC2.USER_SGPR: 2; allowed: 6"),
    "RSRC1": ({"rsrc1": 0xE80F0000}, "COMPUTE_PGM_RSRC1: 0xe80f0000; allowed: bits within 0xe5bfffff"),
    "RSRC3": ({"rsrc3": 0x1020}, "COMPUTE_PGM_RSRC3: 0x00001020"),
}


@pytest.mark.parametrize("name", DESCRIPTORS_REFUSED)
def test_descriptors_that_are_refused(name: str) -> None:
    """Each names the packet, the descriptor's address, the field, what was seen and what is allowed."""
    changes, message = DESCRIPTORS_REFUSED[name]
    with kernel(**changes) as k:
        place = f"AQL packet 0, kernel descriptor at {k.code.address:#x}"
        k.refused(k.packet(), rf"INVALID_PACKET_FORMAT \(0x1009\): .*{place}, .*{message}")


def test_code_may_stand_before_its_descriptor() -> None:
    """KERNEL_CODE_ENTRY_BYTE_OFFSET is signed."""
    with kernel() as k:
        k.code.write(descriptor(entry=-256), 512)
        (seen,) = k.run(k.packet(w8=(k.code.address + 512) & 0xFFFFFFFF))
        assert seen.entry == k.code.address + 256


def test_rsrc_words_are_judged_by_family() -> None:
    """WGP_TAKEOVER (RSRC2 bit 31) came with gfx12; instruction prefetch (RSRC3) with gfx11."""
    with kernel("gfx1151", rsrc2=0x80000084) as k:
        k.refused(k.packet(), "COMPUTE_PGM_RSRC2: 0x80000084")
    with kernel("gfx1030", rsrc3=0x20) as k:
        k.refused(k.packet(), "COMPUTE_PGM_RSRC3: 0x00000020")


def test_addresses_without_memory_are_memory_faults_that_name_their_field() -> None:
    """A kernel object that is nowhere or ends too early, and an argument block shorter than the kernel's."""
    failed = r"HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION \(0x29\): .*read of 64 bytes at .*; by "
    with kernel() as k:
        k.refused(k.packet(w8=0x4000, w9=0), failed + "kernel_object of AQL packet 0")
        at = k.code.address + 4096 - 32
        with pytest.raises(QueueFailed, match="a multiple of 64"):
            k.run(k.packet(w8=at & 0xFFFFFFFF))
        near_end = k.arguments.address + 256 - 48
        k.refused(k.packet(w10=near_end & 0xFFFFFFFF), failed + "kernarg_address of AQL packet 0")
        assert len(k.run(k.packet(w10=(near_end - 16) & 0xFFFFFFFF))) == 1
