# SPDX-License-Identifier: Apache-2.0
"""Recording: buffers, slices, accesses and launches; what is refused, and that a refusal leaves nothing behind."""

from __future__ import annotations

from typing import Any

import pytest

import redline as rl


def _graph() -> tuple[rl.Graph, rl.Buffer]:
    g = rl.Graph()
    return g, g.buffer("x", 4096)


def _two() -> rl.Kernel:
    """A kernel with two pointers and one 4-byte scalar."""
    return rl.Kernel.synthetic("two", pointers=2, scalars=(4,))


@pytest.mark.parametrize(
    "item", [slice(0, 0), slice(8, 4), slice(-4, 8), slice(0, 4097), slice(0, 8, 2), 3, slice(0.5, 2)]
)
def test_a_slice_is_a_byte_range_inside_the_buffer(item: Any) -> None:
    """Half-open, step 1, not empty, in bounds; anything else is refused when it is written down."""
    _, x = _graph()
    with pytest.raises(rl.RecordError, match="4096|step 1"):
        x[item]


def test_numpy_integers_are_integers() -> None:
    """Slice bounds often come from numpy."""
    import numpy as np

    _, x = _graph()
    assert str(x[np.int64(4) : np.uint8(8)]) == "x[4:8]"


def test_slices_of_views_are_relative() -> None:
    """As in numpy, a slice of a slice counts from the slice's start."""
    _, x = _graph()
    view = x[1024:2048][16:32]
    assert (view.start, view.stop, view.nbytes, str(view)) == (1040, 1056, 16, "x[1040:1056]")


def test_an_access_passes_the_address_of_the_slice_or_of_its_base() -> None:
    """`rl.write(y[a:b])` passes y+a; `base=y` passes y and still declares [a, b)."""
    g, x = _graph()
    k = g.launch(_two(), grid=1, block=64, args=[rl.write(x[1024:2048]), rl.write(x[64:128], base=x), 7])
    assert [(p.offset, p.addend) for p in k.pointers] == [(0, 1024), (8, 0)]
    assert [(t.start, t.stop, t.writes, t.argument) for t in k.touches] == [(1024, 2048, True, 0), (64, 128, True, 8)]


def test_several_ranges_behind_one_pointer_and_none() -> None:
    """`rl.access` declares ranges behind one pointer, `accesses=` memory that no argument carries."""
    g, x = _graph()
    y = g.buffer("y", 64)
    first = rl.access(x, reads=[x[0:4]], writes=[x[8:12], x[16:20]])
    k = g.launch(rl.Kernel.synthetic("one"), grid=1, block=1, args=[first], accesses=[rl.read(y)])
    assert [(t.buffer, t.start, t.writes, t.argument) for t in k.touches] == [
        (0, 0, False, 0),
        (0, 8, True, 0),
        (0, 16, True, 0),
        (1, 0, False, None),
    ]


def test_an_update_reads_and_writes() -> None:
    """In-place state is both."""
    g, x = _graph()
    k = g.launch(rl.Kernel.synthetic("one"), grid=1, block=1, args=[rl.update(x[0:8])])
    assert [t.writes for t in k.touches] == [False, True]


def test_grid_counts_workgroups_and_global_size_counts_work_items() -> None:
    """The two ways to say how large a launch is mean the same here."""
    g, x = _graph()
    one = g.launch(rl.Kernel.synthetic("one"), grid=(3, 2), block=(32, 2), args=[rl.read(x)])
    two = g.launch(rl.Kernel.synthetic("one"), global_size=(96, 4, 1), block=[32, 2], args=[rl.read(x)])
    assert one.global_size == two.global_size == (96, 4, 1)
    assert one.block == two.block == (32, 2, 1)


@pytest.mark.parametrize(
    "sizes",
    [
        {"grid": 1, "global_size": 64, "block": 64},
        {"block": 64},
        {"grid": 0, "block": 64},
        {"grid": (1, 1, 1, 1), "block": 64},
        {"grid": 1.0, "block": 64},
        {"grid": True, "block": 64},
        {"grid": 1, "block": ()},
    ],
)
def test_sizes_are_one_to_three_positive_ints(sizes: dict[str, Any]) -> None:
    """Exactly one of grid and global_size; no zero, float, bool or fourth dimension."""
    g, x = _graph()
    with pytest.raises(rl.RecordError):
        g.launch(rl.Kernel.synthetic("one"), args=[rl.read(x)], **sizes)
    assert g.launches == []


def test_grid_overflow_names_the_numbers() -> None:
    """Case 53: 8,388,607 groups of 512 fit in 32 bits of work-items, one more does not."""
    g, x = _graph()
    k = rl.Kernel.synthetic("one")
    g.launch(k, grid=8_388_607, block=512, args=[rl.read(x)])
    with pytest.raises(rl.EncodeError, match="4294967296 work-items.*4294967295"):
        g.launch(k, grid=8_388_608, block=512, args=[rl.read(x)])
    with pytest.raises(rl.EncodeError, match="5240320000"):
        g.launch(k, grid=(20000, 2047), block=128, args=[rl.read(x)])


def test_lds_counts_static_and_dynamic_bytes() -> None:
    """Case 54: 65,536 bytes together are allowed, one more is refused and both parts are named."""
    g, x = _graph()
    k = rl.Kernel.synthetic("one")
    g.launch(k, grid=1, block=1, args=[rl.read(x)], dynamic_lds=65536)
    with pytest.raises(rl.EncodeError, match="0 static.*65537 dynamic"):
        g.launch(k, grid=1, block=1, args=[rl.read(x)], dynamic_lds=65537)


def test_arguments_follow_the_metadata() -> None:
    """Wrong count, a scalar for a pointer, a pointer for a scalar: each names kernel, line and what is expected."""
    g, x = _graph()
    for args, text in (
        ([rl.read(x)], "3: p0 .global_buffer, 8 bytes"),
        ([rl.read(x), 5, 5], "p1.*rl.read"),
        ([rl.read(x), rl.read(x), rl.read(x)], "s0.*a scalar"),
        ([rl.read(x), rl.read(x), "five"], "s0.*str"),
        ([rl.read(x), rl.read(x), 1 << 32], "s0.*4294967296"),
        ([rl.read(x), rl.read(x), b"12345"], "s0.*5 bytes.*exactly 4"),
        ([rl.read(x), rl.read(x), rl.slot("s", "f8")], "s0.*f8.*4 bytes"),
    ):
        with pytest.raises(rl.RecordError, match=rf"test_record\.py:\d+ launch #0 'two'.*{text}"):
            g.launch(_two(), grid=1, block=64, args=args)
    assert g.launches == []
    assert g.slots == {}


def test_what_is_no_list_of_accesses_launches_or_arguments_is_refused() -> None:
    """Misuse fails at record time with file and line, whatever its type."""
    g, x = _graph()
    one = rl.Kernel.synthetic("one")
    good: dict[str, Any] = {"grid": 1, "block": 1, "args": [rl.read(x)]}
    for wrong in (
        {"args": None},
        {"args": rl.read(x)},
        {"accesses": [x]},
        {"accesses": 3},
        {"after": 3},
        {"after": ["one"]},
        {"dynamic_lds": 1.5},
        {"dynamic_lds": -1},
        {"dynamic_lds": True},
    ):
        with pytest.raises(rl.RecordError, match=r"test_record\.py:\d+"):
            g.launch(one, **{**good, **wrong})
    with pytest.raises(rl.RecordError):
        g.buffer("a", 4, alias_of=3)  # type: ignore[arg-type]
    with pytest.raises(rl.RecordError, match="32 or 64"):
        rl.Kernel.synthetic("k", wave=48)
    assert (len(g.launches), len(g.buffers)) == (0, 1)


def test_launches_do_not_write_what_only_the_host_writes() -> None:
    """Role in: a write is refused where it is recorded, through an alias too."""
    g = rl.Graph()
    x = g.buffer("x", 64, role="in")
    part = g.buffer("part", 16, alias_of=x[16:32])
    for view in (x, part):
        with pytest.raises(rl.RecordError, match="role is in.*inout"):
            g.launch(rl.Kernel.synthetic("one"), grid=1, block=1, args=[rl.update(view)])
    assert g.launches == []


def test_sizes_may_be_numpys() -> None:
    """np.prod(shape) * 4 is what users have."""
    import numpy as np

    assert rl.Graph().buffer("x", np.prod((4, 4)) * 4).nbytes == 64  # type: ignore[arg-type]


def test_one_slot_name_is_one_type_and_one_default() -> None:
    """The same slot may be used at any number of points; another type or default under its name is refused."""
    g, x = _graph()
    g.launch(_two(), grid=1, block=64, args=[rl.read(x), rl.read(x), rl.slot("s", "f4", default=1.0)])
    g.launch(_two(), grid=1, block=64, args=[rl.read(x), rl.read(x), rl.slot("s", "f4", default=1.0)])
    for other in (rl.slot("s", "i4"), rl.slot("s", "f4"), rl.slot("s", "f4", default=2.0)):
        with pytest.raises(rl.RecordError, match="one name is one type"):
            g.launch(_two(), grid=1, block=64, args=[rl.read(x), rl.read(x), other])
    assert len(g.launches) == 2


def test_buffers_launches_and_targets_of_another_graph_are_refused() -> None:
    """A graph knows its own buffers and launches; all its kernels have one target."""
    g, x = _graph()
    h, y = _graph()
    one = rl.Kernel.synthetic("one")
    k = g.launch(one, grid=1, block=1, args=[rl.read(x)])
    with pytest.raises(rl.RecordError, match="buffers of this graph"):
        g.launch(one, grid=1, block=1, args=[rl.read(y)])
    with pytest.raises(rl.RecordError, match="launches of this graph"):
        h.launch(one, grid=1, block=1, args=[rl.read(y)], after=[k])
    with pytest.raises(rl.RecordError, match="gfx1100.*gfx1201"):
        g.launch(rl.Kernel.synthetic("one", target="gfx1100"), grid=1, block=1, args=[rl.read(x)])


def test_buffer_declarations_are_checked() -> None:
    """Names are unique, sizes are positive, kinds and roles are the listed ones, an alias fits its memory."""
    g, x = _graph()
    bad: list[tuple[Any, ...]] = [("x", 4, {}), ("", 4, {}), ("a", 0, {}), ("a", True, {}), ("a", 1 << 49, {})]
    bad += [("a", 4, {"kind": "vram"}), ("a", 4, {"role": "output"}), ("a", 4097, {"alias_of": x})]
    for name, size, options in bad:
        with pytest.raises(rl.RecordError):
            g.buffer(name, size, **options)
    assert [b.name for b in g.buffers] == ["x"]


def test_arguments_are_copied_at_record_time() -> None:
    """Changing an array afterwards changes nothing that was recorded."""
    import numpy as np

    g, x = _graph()
    value = np.array([1.5], np.float32)
    k = g.launch(_two(), grid=1, block=64, args=[rl.read(x), rl.read(x), value])
    value[0] = 9
    assert k.kernarg[16:20] == np.float32(1.5).tobytes()


@pytest.mark.parametrize(
    ("bits", "name"),
    [(1, "DISPATCH_PTR"), (2, "QUEUE_PTR"), (4, "DISPATCH_ID"), (5, "FLAT_SCRATCH_INIT"), (6, "PRIVATE_SEGMENT_SIZE")],
)
def test_kernels_that_need_more_are_refused_at_the_launch(bits: int, name: str) -> None:
    """Fail closed: a dispatch does not supply these user SGPRs (LLVM AMDGPUUsage, kernel descriptor)."""
    from dataclasses import replace

    g, x = _graph()
    k = rl.Kernel.synthetic("one")
    with pytest.raises(rl.UnsupportedKernel, match=rf"test_record\.py:\d+ launch #0 'one'.*{name}"):
        g.launch(replace(k, properties=k.properties | 1 << bits), grid=1, block=1, args=[rl.read(x)])


def test_an_argument_that_nothing_fills_is_refused() -> None:
    """Case 45: a kernel that wants a hostcall buffer would hang in a dispatcher that supplies none."""
    from dataclasses import replace

    g, x = _graph()
    k = rl.Kernel.synthetic("one")
    hostcall = rl.Argument("", 8, 8, "hidden_hostcall_buffer")
    with pytest.raises(rl.UnsupportedKernel, match="hidden_hostcall_buffer"):
        g.launch(replace(k, kernarg_bytes=16, arguments=(*k.arguments, hostcall)), grid=1, block=1, args=[rl.read(x)])


def test_partial_workgroups_need_a_kernel_that_was_compiled_for_them() -> None:
    """A kernel compiled with uniform-work-group-size folds its block size: a partial last group would be wrong."""
    from dataclasses import replace

    g, x = _graph()
    uniform = replace(rl.Kernel.synthetic("one"), uniform_workgroups=True)
    with pytest.raises(rl.RecordError, match="RL0128.*whole workgroups"):
        g.launch(uniform, global_size=1000, block=256, args=[rl.read(x)])
    g.launch(uniform, global_size=1024, block=256, args=[rl.read(x)])
    g.launch(rl.Kernel.synthetic("one"), global_size=1000, block=256, args=[rl.read(x)])
    assert len(g.launches) == 2


def test_a_workgroup_fits_what_the_kernel_was_compiled_for() -> None:
    """The metadata's largest and required workgroups, named in the message."""
    from dataclasses import replace

    g, x = _graph()
    k = rl.Kernel.synthetic("one")
    with pytest.raises(rl.RecordError, match="RL0125.*512 work-items.*at most 256"):
        g.launch(replace(k, max_workgroup=256), grid=1, block=512, args=[rl.read(x)])
    with pytest.raises(rl.RecordError, match=r"RL0126.*\(64, 1, 1\).*\(8, 8, 1\)"):
        g.launch(replace(k, required_block=(8, 8, 1)), grid=1, block=64, args=[rl.read(x)])
    assert g.launches == []


def test_memory_past_the_arguments_must_be_declared() -> None:
    """Memory model F9: a certificate that says so makes `accesses=` necessary; `after=` makes nothing visible."""
    graph = rl.Graph()
    x, table = graph.buffer("x", 64), graph.buffer("table", 64)
    kernel = rl.Kernel.synthetic("k", certificate=rl.Certificate(undeclared=True))
    first = graph.launch(rl.Kernel.synthetic("w"), grid=1, block=1, args=[rl.write(table)])
    with pytest.raises(rl.UnsupportedKernel, match=r"RL0410.*accesses="):
        graph.launch(kernel, grid=1, block=1, args=[rl.write(x)], after=first)
    assert len(graph.launches) == 1
    graph.launch(kernel, grid=1, block=1, args=[rl.write(x)], accesses=[rl.read(table)])
    assert [fence.acquire for fence in graph.compile().fences.inner] == [("K", "V")]


def test_sizes_that_passed_do_not_let_their_likes_pass() -> None:
    """Checks of a kernel with its sizes are made once; True and 1.0 equal 1, and are refused behind it all the same."""
    g, x = _graph()
    k = rl.Kernel.synthetic("one")
    g.launch(k, grid=1, block=1, args=[rl.read(x)])
    for sizes in ({"grid": True, "block": 1}, {"grid": 1, "block": 1.0}, {"grid": (1, True), "block": 1}):
        with pytest.raises(rl.RecordError, match="RL0130"):
            g.launch(k, args=[rl.read(x)], **sizes)
    with pytest.raises(rl.RecordError, match="RL0135"):
        g.launch(k, grid=1, block=1, args=[rl.read(x)], dynamic_lds=False)
    assert len(g.launches) == 1


def test_a_refused_launch_does_not_decide_the_target() -> None:
    """The first launch that is recorded does; a kernel that passed its own checks before is measured by it too."""
    g, x = _graph()
    old, new = (rl.Kernel.synthetic("one", target=target) for target in ("gfx1100", "gfx1201"))
    with pytest.raises(rl.RecordError, match="RL0120"):
        g.launch(old, grid=1, block=1)
    g.launch(new, grid=1, block=1, args=[rl.read(x)])
    with pytest.raises(rl.RecordError, match="RL0117"):
        g.launch(old, grid=1, block=1, args=[rl.read(x)])


def test_buffers_that_no_column_can_number_are_refused() -> None:
    """2**48 bytes are the most of one buffer, 2**62 of all: planned end to end, more would wrap and lose hazards."""
    graph = rl.Graph()
    for index in range(1 << 14):
        last = graph.buffer(f"b{index}", 1 << 48)
    graph.buffer("alias", 1 << 48, alias_of=last)
    with pytest.raises(
        rl.RecordError, match="behind 4611686018427387904; allowed: 4611686018427387904 in all"
    ) as caught:
        graph.buffer("one more", 1)
    assert caught.value.code == "RL0113"
    kernel = rl.Kernel.synthetic("k")
    for access in (rl.write(last), rl.read(last)):
        graph.launch(kernel, grid=1, block=1, args=[access])
    assert graph.compile().fences.drains == 1


@pytest.mark.parametrize(
    "asked",
    [
        {"pointers": -1},
        {"pointers": 10**30},
        {"pointers": None},
        {"pointers": True},
        {"scalars": (3,)},
        {"scalars": [4]},
    ],
)
def test_a_synthetic_kernel_has_arguments_of_a_kernel(asked: dict[str, Any]) -> None:
    """A number that is none must not fill the memory."""
    with pytest.raises(rl.RecordError, match=r"RL0145 Kernel\.synthetic\('k'\)"):
        rl.Kernel.synthetic("k", **asked)
