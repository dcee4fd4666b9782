# SPDX-License-Identifier: Apache-2.0
"""Emitted words equal words from outside: whole streams, their variants, and the forms of every family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from redline.encoders import FAMILIES, DispatchWords, Pm4Stream, family_for
from redline.encoders.table import FamilyTable
from tests.encoders import golden

pytestmark = pytest.mark.nopython

FILES = ("gfx1030", "gfx1100", "gfx1201")


def words(stream: Pm4Stream) -> list[int]:
    return [int(word) for word in stream.words]


def kernel(answer: dict[str, Any], which: str) -> DispatchWords:
    descriptor, example = answer["descriptor"], answer["example"]
    return DispatchWords(
        entry=int(example[f"entry_{which}"], 16),
        rsrc1=int(descriptor["rsrc1"], 16),
        rsrc2=int(descriptor["rsrc2"], 16),
        rsrc3=int(descriptor["rsrc3"], 16),
        properties=int(descriptor["kernel_code_properties"], 16),
        group_bytes=descriptor["group_segment_fixed_size"],
        private_bytes=descriptor["private_segment_fixed_size"],
        kernarg=int(example[f"kernarg_{which}"], 16),
    )


@pytest.mark.parametrize("target", FILES)
def test_a_whole_stream_equals_the_answer_dword_by_dword(target: str) -> None:
    """Entry, launch, barrier, launch and release, with the builder's own calls."""
    answer = golden.load(target)
    size, block = answer["example"]["grid_workitems"], answer["example"]["workgroup"]
    s = Pm4Stream(target)
    s.acquire_system()
    s.dispatch(kernel(answer, "a"), global_size=size, block=block)
    s.barrier(vmem_only=False)
    s.dispatch(kernel(answer, "b"), global_size=size, block=block)
    s.release_system()
    assert words(s) == golden.listed(answer["stream"])
    assert len(s.words) == answer["stream_dwords"]


@pytest.mark.parametrize("target", FILES)
def test_each_stage_alone_equals_its_part_of_the_answer(target: str) -> None:
    """A stage does not depend on what was emitted before it."""
    answer = golden.load(target)
    stages = {name: golden.listed(stage["hex"]) for name, stage in answer["stages"].items()}
    size, block = answer["example"]["grid_workitems"], answer["example"]["workgroup"]
    calls: dict[str, Callable[[Pm4Stream], None]] = {
        "entry_acquire": lambda s: s.acquire_system(),
        "dispatch_a": lambda s: s.dispatch(kernel(answer, "a"), global_size=size, block=block),
        "same_agent_barrier": lambda s: s.barrier(),
        "dispatch_b": lambda s: s.dispatch(kernel(answer, "b"), global_size=size, block=block),
        "final_release_idle": lambda s: s.release_system(),
    }
    found = {}
    for name, call in calls.items():
        stream = Pm4Stream(target)
        call(stream)
        found[name] = words(stream)
    assert found == stages


@pytest.mark.parametrize("target", FILES)
def test_the_vmem_only_barrier_equals_the_answer(target: str) -> None:
    """Vector-only readers leave the scalar cache alone."""
    stream = Pm4Stream(target)
    stream.barrier(vmem_only=True)
    answer = golden.load(target)["variants"]["same_agent_barrier_vmem_only"]
    assert words(stream) == golden.listed(answer["hex"])


@pytest.mark.parametrize("target", FILES)
def test_the_work_item_form_differs_from_the_answer_only_in_what_a_partial_launch_changes(target: str) -> None:
    """The file has 1,024 work-items in work-item form; the builder uses that form when groups do not divide."""
    answer = golden.load(target)
    expected = golden.listed(answer["variants"]["dispatch_a_thread_dimensions"]["hex"])
    stream = Pm4Stream(target)
    stream.dispatch(kernel(answer, "a"), global_size=(1000, 1, 1), block=(256, 1, 1))
    assert expected[-4] == 1024
    assert words(stream) == [*expected[:-4], 1000, *expected[-3:]]


@pytest.mark.parametrize("family", golden.EXAMPLES)
def test_every_form_of_every_family_equals_the_answers(family: str) -> None:
    """Five families: streams, elided streams, partial launches, wave64, fences, cache words, IB and pad."""
    table = next(table for table in FAMILIES if table.name == family)
    assert golden.emitted(table, family) == golden.answers(family)


@pytest.mark.parametrize("target", FILES)
def test_the_table_of_parts_and_the_whole_files_agree(target: str) -> None:
    """Two files of answers about one stream say the same, so that a slip in either is seen."""
    family = family_for(target).name
    assert golden.answers(family)["stream"] == golden.listed(golden.load(target)["stream"])


@pytest.mark.parametrize("target", FILES)
def test_cache_words_equal_the_answer(target: str) -> None:
    """GCR_CNTL of the four boundaries."""
    table, gcr = family_for(target), golden.load(target)["gcr"]
    assert {
        "entry_system": table.entry_gcr,
        "barrier_same_agent": table.acquire_gcr(k=True, v=True),
        "barrier_vmem_only": table.acquire_gcr(k=False, v=True),
        "final_system_release": table.release_gcr,
    } == {name: int(word, 16) for name, word in gcr.items()}


@pytest.mark.parametrize("table", FAMILIES, ids=lambda table: table.name)
def test_the_boundary_of_scalar_and_vector_readers_is_radvs_own(table: FamilyTable) -> None:
    """Case 66: CS_PARTIAL_FLUSH, then GLK, GLV and GL1 of gfx10_cs_emit_cache_flush; no GL1 on gfx12."""
    stream = Pm4Stream(table)
    stream.barrier()
    gcr = "180" if table.name == "gfx12.0" else "380"
    assert words(stream) == golden.hexes(f"C0004600 407 C0065800 0 FFFFFFFF FFFFFF 0 0 A {gcr}")


def test_the_drain_alone_is_the_partial_flush() -> None:
    """`wait_idle` is an EVENT_WRITE and refreshes nothing."""
    stream = Pm4Stream("gfx1151")
    stream.wait_idle()
    answer = golden.load("snippets")["snippets"]["event_write_cs_partial_flush"]
    assert words(stream) == golden.listed(answer["hex"])


@pytest.mark.parametrize("table", FAMILIES, ids=lambda table: table.name)
def test_the_end_of_pipe_timestamp_packs_to_the_answer(table: FamilyTable) -> None:
    """RELEASE_MEM from named values."""
    answer = golden.load("snippets")["snippets"]["timestamp_end_release_mem"]
    packed = table.packet["RELEASE_MEM"].pack(
        EVENT_TYPE="BOTTOM_OF_PIPE_TS",
        EVENT_INDEX=5,
        INT_SEL="DATA_CONFIRM",
        DATA_SEL="CLOCK",
        ADDR_LO=0xDEAD0008,
        ADDR_HI=0x7F00,
    )
    assert packed == golden.listed(answer["hex"])
