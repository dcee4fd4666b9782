# SPDX-License-Identifier: Apache-2.0
"""`rl.audit` and `redline audit`: right declarations are clean, and each way to be wrong is named with its bytes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import radiowave
import redline as rl
from redline.cli import main

# copy: by lane. uniform: a scalar load. bump: an atomic. by_value, by_memory: through pointers that no argument is.
# count: a variable of the object. look_up: a constant of the object. late: half of the lanes do nothing.
IR = """
target triple = "amdgcn-amd-amdhsa"
@counter = addrspace(1) global i32 0
@squares = addrspace(4) constant [4 x i32] [i32 0, i32 1, i32 4, i32 9]
define amdgpu_kernel void @copy(ptr addrspace(1) %x, ptr addrspace(1) %y) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %q = getelementptr i32, ptr addrspace(1) %y, i32 %i
  %v = load i32, ptr addrspace(1) %p
  store i32 %v, ptr addrspace(1) %q
  ret void
}
define amdgpu_kernel void @uniform(ptr addrspace(1) noalias readonly %x, ptr addrspace(1) noalias %y) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %q = getelementptr i32, ptr addrspace(1) %y, i32 %i
  %v = load i32, ptr addrspace(1) %x
  store i32 %v, ptr addrspace(1) %q
  ret void
}
define amdgpu_kernel void @bump(ptr addrspace(1) %x) #0 {
  %old = atomicrmw add ptr addrspace(1) %x, i32 1 syncscope("agent") monotonic
  ret void
}
define amdgpu_kernel void @by_value(i64 %x, ptr addrspace(1) %y) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %base = inttoptr i64 %x to ptr addrspace(1)
  %p = getelementptr i32, ptr addrspace(1) %base, i32 %i
  %q = getelementptr i32, ptr addrspace(1) %y, i32 %i
  %v = load i32, ptr addrspace(1) %p
  store i32 %v, ptr addrspace(1) %q
  ret void
}
define amdgpu_kernel void @by_memory(ptr addrspace(1) %table, ptr addrspace(1) %y) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %base = load ptr addrspace(1), ptr addrspace(1) %table
  %p = getelementptr i32, ptr addrspace(1) %base, i32 %i
  %q = getelementptr i32, ptr addrspace(1) %y, i32 %i
  %v = load i32, ptr addrspace(1) %p
  store i32 %v, ptr addrspace(1) %q
  ret void
}
define amdgpu_kernel void @count(ptr addrspace(1) %y) #0 {
  store i32 7, ptr addrspace(1) @counter
  store i32 7, ptr addrspace(1) %y
  ret void
}
define amdgpu_kernel void @look_up(ptr addrspace(1) %y) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %m = and i32 %i, 3
  %p = getelementptr i32, ptr addrspace(4) @squares, i32 %m
  %q = getelementptr i32, ptr addrspace(1) %y, i32 %i
  %v = load i32, ptr addrspace(4) %p
  store i32 %v, ptr addrspace(1) %q
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
attributes #0 = { nounwind "amdgpu-flat-work-group-size"="1,1024" "uniform-work-group-size"="false" }
"""
LANES = 32  # one dword each: 128 bytes


@cache
def module(target: str = "gfx1201", wave: int = 32) -> rl.Module:
    """The kernels, compiled once."""
    return rl.load(radiowave.compile_ir(IR, target=target, wave=wave))


class App:
    """A graph of one launch with buffers x, y (128 bytes, of 256) and z, and what an audit of it says."""

    def __init__(self, kernel: str, target: str = "gfx1201", wave: int = 32) -> None:
        self.kernel = module(target, wave)[kernel]
        self.graph = rl.Graph()
        self.x = self.graph.buffer("x", 256, role="inout")
        self.y = self.graph.buffer("y", 256, role="inout")
        self.z = self.graph.buffer("z", 256, role="inout")

    def plan(self, *args: Any, **options: Any) -> rl.Plan:
        """One workgroup of 32 work-items with these arguments."""
        self.graph.launch(self.kernel, grid=1, block=LANES, args=args, **options)
        return self.graph.compile()

    def audit(self, *args: Any, inputs: Any = None, slots: Any = None, **options: Any) -> rl.LaunchAudit:
        """What the audit says of that launch; the run itself must be sound."""
        found = rl.audit(self.plan(*args, **options), inputs, slots)
        assert not found.fault
        (launch,) = found.launches
        assert found.clean is not bool(launch.undeclared)
        return launch


def facts(launch: rl.LaunchAudit) -> list[tuple[Any, ...]]:
    """Of each finding what it is about: action, path, buffer, ranges, arguments."""
    return [(u.action, u.path, u.buffer, u.ranges, u.arguments) for u in launch.undeclared]


@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("target", ["gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201"])
def test_right_declarations_are_clean_on_every_target(target: str, wave: int) -> None:
    """Vector and scalar reads, writes, and a kernel's own arguments; every declared byte was touched."""
    for kernel, nbytes in (("copy", 128), ("uniform", 4)):
        app = App(kernel, target, wave)
        launch = app.audit(rl.read(app.x[0:nbytes]), rl.write(app.y[0:128]))
        assert not launch.undeclared
        assert [(d.touched, d.hull) for d in launch.declared] == [(nbytes, (0, nbytes)), (128, (0, 128))]


def test_a_missing_read_and_a_missing_write() -> None:
    """Declared the other way round: each access is missing, each declaration is never touched."""
    app = App("copy")
    launch = app.audit(rl.write(app.x[0:128]), rl.read(app.y[0:128]))
    assert facts(launch) == [
        ("read", "vector", "x", ((0, 128),), (0,)),
        ("write", "vector", "y", ((0, 128),), (8,)),
    ]
    assert [(d.action, d.buffer) for d in launch.never_touched] == [("write", "x"), ("read", "y")]


def test_a_write_of_what_is_declared_as_read() -> None:
    """In place, and only the read is declared."""
    app = App("copy")
    launch = app.audit(rl.read(app.x[0:128]), rl.access(app.x, reads=[app.x[0:128]]))
    assert facts(launch) == [("write", "vector", "x", ((0, 128),), (0, 8))]


def test_a_range_that_is_too_short_names_the_bytes_past_it() -> None:
    """Only these, their lanes, and the instruction as the disassembler shows it at its ELF address."""
    app = App("copy")
    launch = app.audit(rl.read(app.x[0:100]), rl.write(app.y[0:128]))
    (found,) = launch.undeclared
    assert facts(launch) == [("read", "vector", "x", ((100, 128),), (0,))]
    assert (found.nbytes, found.count) == (28, 7)
    (site,) = found.sites
    built = radiowave.CodeObject.read(radiowave.compile_ir(IR, target="gfx1201", wave=32))
    kernel = built.kernels["copy"]
    entry = kernel.entry_va
    with radiowave.Disassembler() as disassembler:
        listing = {i.pc: i.text for i in disassembler.decode(built.code(kernel), entry, "gfx1201", 32)}
    assert site.address == entry + site.offset
    assert site.text == listing[site.address]
    assert site.text.startswith("global_load_b32")


def test_the_middle_that_no_range_covers() -> None:
    """Declared on both sides: one finding with the hole, and none of what touches its edges."""
    app = App("copy")
    launch = app.audit(rl.access(app.x, reads=[app.x[0:40], app.x[60:128]]), rl.write(app.y[0:128]))
    assert facts(launch) == [("read", "vector", "x", ((40, 60),), (0,))]


def test_half_of_a_dword_is_undeclared() -> None:
    """Bytes count, not accesses."""
    app = App("copy")
    launch = app.audit(rl.read(app.x[0:126]), rl.write(app.y[0:128]))
    assert facts(launch) == [("read", "vector", "x", ((126, 128),), (0,))]
    assert launch.undeclared[0].count == 1


def test_a_scalar_load_is_told_from_a_vector_load() -> None:
    """A cache of its own serves it, so a fence may be missing for the one and not for the other."""
    app = App("uniform")
    launch = app.audit(rl.read(app.x[64:128], base=app.x), rl.write(app.y[0:128]))
    assert facts(launch) == [("read", "scalar", "x", ((0, 4),), (0,))]
    assert launch.undeclared[0].sites[0].text.startswith("s_load_b32")


def test_the_wrong_buffer_behind_an_address_in_a_value() -> None:
    """Declared is z, the value points to x: no argument leads there."""
    app = App("by_value")
    args = rl.slot("pointer", "u8"), rl.write(app.y[0:128])
    launch = app.audit(*args, accesses=[rl.read(app.z)], slots={"pointer": app.x[128:]})
    assert facts(launch) == [("read", "vector", "x", ((128, 256),), ())]
    assert [(d.buffer, d.argument) for d in launch.never_touched] == [("z", None)]
    assert "accesses = [rl.read(x[128:])]" in rl.audit(app.graph.compile(), slots={"pointer": app.x[128:]}).suggest()


def test_a_pointer_in_memory() -> None:
    """The table is declared, what it points to is not; declared with `accesses=` it is."""
    for accesses, wrong in (
        ((), [("read", "vector", "x", ((0, 128),), ())]),
        (("x",), []),
    ):
        app = App("by_memory")
        declared = [rl.read(app.x[0:128]) for _ in accesses]
        launch = app.audit(
            rl.read(app.z[0:8]), rl.write(app.y[0:128]), accesses=declared, inputs={app.z: [app.x, app.y[8:]]}
        )
        assert facts(launch) == wrong


@pytest.mark.parametrize("declare", [rl.read, rl.write, rl.update])
def test_an_atomic_reads_and_writes(declare: Any) -> None:
    """Only `update` declares both."""
    app = App("bump")
    launch = app.audit(declare(app.x[0:4]))
    missing = {rl.read: ["write"], rl.write: ["read"], rl.update: []}[declare]
    assert [(u.action, u.atomic, u.ranges) for u in launch.undeclared] == [(a, True, ((0, 4),)) for a in missing]


def test_a_variable_of_the_object_is_named_and_a_constant_is_free() -> None:
    """Nothing can write the constant, so no launch declares it."""
    app = App("count")
    launch = app.audit(rl.write(app.y[0:4]))
    (found,) = launch.undeclared
    assert (found.action, found.buffer, found.memory) == ("write", "", "variable 'counter' of the code object")
    assert found.nbytes == 4
    app = App("look_up")
    assert not app.audit(rl.write(app.y[0:128])).undeclared


def test_a_buffer_that_is_too_small_faults_and_is_still_reported() -> None:
    """The access past the end, the reason, and which launches did not run any more."""
    graph = rl.Graph()
    x, y = graph.buffer("x", 100, role="in"), graph.buffer("y", 128, role="out")
    copy = module()["copy"]
    for _ in range(2):
        graph.launch(copy, grid=1, block=LANES, args=[rl.read(x), rl.write(y)])
    found = rl.audit(graph.compile())
    assert "read of 4 bytes" in found.fault
    assert not found.clean
    assert [launch.ran for launch in found.launches] == [True, False]
    (row,) = found.launches[0].undeclared
    assert (row.buffer, row.ranges, row.memory) == ("x", ((100, 128),), "past the end of buffer 'x'")
    assert "did not run" in str(found)
    assert "stopped: " in str(found)
    assert found.suggest().count("mend the kernel or its arguments") == 1


def test_a_null_pointer() -> None:
    """No buffer is near; the address is given."""
    app = App("by_value")
    found = rl.audit(app.plan(0, rl.write(app.y[0:128])))
    (row,) = found.launches[0].undeclared
    assert (row.buffer, row.memory, row.ranges) == ("", "no memory", ((0, 128),))
    assert found.fault


def test_a_kernel_that_never_ends_is_reported_with_what_it_did() -> None:
    """A time-out is a finding, not an exception; nothing is left behind."""
    from tests.devices import SPIN

    graph = rl.Graph()
    flag = graph.buffer("flag", 4, role="in")
    graph.launch(rl.load(radiowave.compile_ir(SPIN, target="gfx1201"))["spin"], grid=1, block=1, args=[rl.read(flag)])
    found = rl.audit(graph.compile(), timeout=0.2)
    assert "RL1101" in found.fault
    assert found.launches[0].ran
    assert not found.launches[0].undeclared
    assert found.launches[0].declared[0].touched == 4


def test_launches_are_told_apart_whatever_the_order_and_the_queues() -> None:
    """The last recorded runs in the middle; each report is of its own launch."""
    graph = rl.Graph()
    x, y, z = (graph.buffer(name, 128, role="inout") for name in "xyz")
    v, w = (graph.buffer(name, 128, role="inout") for name in "vw")
    copy, uniform = module()["copy"], module()["uniform"]
    first = graph.launch(copy, grid=1, block=LANES, args=[rl.read(x), rl.write(y)])
    graph.launch(copy, grid=1, block=LANES, args=[rl.read(y), rl.write(z)], after=[first])
    graph.launch(uniform, grid=1, block=LANES, args=[rl.write(w), rl.read(v)])
    plan = graph.compile(queues=2)
    assert plan.order == (0, 2, 1)
    found = rl.audit(plan)
    assert [bool(launch.undeclared) for launch in found.launches] == [False, False, True]
    assert facts(found.launches[2]) == [
        ("write", "vector", "v", ((0, 128),), (8,)),
        ("read", "scalar", "w", ((0, 4),), (0,)),
    ]
    assert found.plan.fingerprint == plan.fingerprint


def test_an_alias_is_the_memory_that_it_names() -> None:
    """Declared through the alias, touched through the buffer."""
    app = App("copy")
    part = app.graph.buffer("part", 128, alias_of=app.x[128:])
    launch = app.audit(rl.read(part), rl.write(app.y[0:128]))
    assert not launch.undeclared
    assert launch.declared[0].hull == (0, 128)


def test_counts_in_memory_are_the_command_processors() -> None:
    """An indirect launch reads them without an instruction: they are neither missing nor never touched."""
    app = App("copy")
    app.graph.launch(
        app.kernel, grid=rl.read(app.z[0:12]), block=LANES, args=[rl.read(app.x[0:128]), rl.write(app.y[0:128])]
    )
    plan = app.graph.compile()
    for counts, touched in ((1, 128), (0, 0)):
        found = rl.audit(plan, {"z": np.array([counts, 1, 1], np.uint32)})
        assert found.clean
        assert [d.touched for d in found.launches[0].declared] == [touched, touched]


WRONG: dict[str, tuple[str, Any]] = {
    "both the wrong way": ("copy", lambda a: [rl.write(a.x[0:128]), rl.read(a.y[0:128])]),
    "too short": ("copy", lambda a: [rl.read(a.x[0:100]), rl.write(a.y[0:4])]),
    "a hole, behind a later pointer": (
        "copy",
        lambda a: [rl.access(a.x[64:], reads=[a.x[64:100], a.x[120:192]]), rl.write(a.y[0:128])],
    ),
    "before the declared range": ("copy", lambda a: [rl.read(a.x[32:128], base=a.x), rl.write(a.y[0:128])]),
    "declared elsewhere": ("copy", lambda a: [rl.read(a.x[200:256], base=a.x), rl.write(a.y[0:128])]),
    "in place, read only": ("copy", lambda a: [rl.read(a.x[0:128]), rl.read(a.x[0:128])]),
    "an atomic": ("bump", lambda a: [rl.read(a.x[0:4])]),
    "scalar": ("uniform", lambda a: [rl.write(a.x[0:4]), rl.write(a.y[0:64])]),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_suggested_is_clean_once_pasted(name: str) -> None:
    """The lines are run as Python; the new audit finds nothing, and suggests nothing more."""
    kernel, make = WRONG[name]
    app = App(kernel)
    args = make(app)
    told = rl.audit(app.plan(*args)).suggest()
    again = App(kernel)
    scope: dict[str, Any] = {"rl": rl, "args": make(again), "accesses": [], "x": again.x, "y": again.y, "z": again.z}
    exec(told, scope)
    mended = rl.audit(again.plan(*scope["args"], accesses=scope["accesses"]))
    assert mended.clean, told
    assert mended.suggest() == ""


def test_suggestions_word_for_word() -> None:
    """As a user would write them, with what was there before, and what was dropped."""
    app = App("copy")
    told = rl.audit(app.plan(rl.read(app.x[0:100]), rl.update(app.y[0:128]))).suggest()
    head, *lines = told.splitlines()
    assert head.startswith("# launch #0 'copy' (")
    assert lines == [
        "# not touched here: read of y[0:128]",
        "args[0] = rl.read(x[0:128])  # was rl.read(x[0:100])",
        "args[1] = rl.write(y[0:128])  # was rl.update(y[0:128])",
    ]


def test_a_write_of_an_input_needs_another_role() -> None:
    """No access alone makes it right."""
    graph = rl.Graph()
    x, y = graph.buffer("x", 128, role="in"), graph.buffer("my y", 128, role="in")
    graph.launch(module()["copy"], grid=1, block=LANES, args=[rl.read(x), rl.read(y)])
    told = rl.audit(graph.compile()).suggest()
    assert "# give buffer 'my y' the role 'inout': this launch writes it" in told
    assert "args[1] = rl.write(buffers['my y'])  # was rl.read(buffers['my y'])" in told


def test_text_says_what_where_and_by_what() -> None:
    """Everything that a user needs to find the line that is wrong."""
    app = App("copy")
    text = str(rl.audit(app.plan(rl.read(app.x[0:100]), rl.update(app.y))))
    lines = text.splitlines()
    assert lines[0].endswith("gfx1201: 1 launch, 1 with undeclared accesses")
    assert lines[2] == "  undeclared vector read: x[100:128], 28 bytes, 7 lanes"
    assert lines[3] == "    through argument 0 'x'; declared of it: read [0:100]"
    assert lines[4].startswith("    first copy+0x")
    assert "  never touched: declared read of y[0:256], argument 1 'y'" in lines
    assert "  touched only [0:128] of declared write of y[0:256], argument 1 'y'" in lines
    assert "Code that did not run was not seen" in lines[-1]


def test_json_has_a_schema_and_is_the_same_every_time() -> None:
    """No address of this run, no file name."""
    made = []
    for _ in range(2):
        app = App("copy")
        found = rl.audit(app.plan(rl.read(app.x[0:100]), rl.write(app.y[0:128])))
        made.append(json.dumps(found.as_json(), sort_keys=True))
    assert made[0] == made[1]
    report = json.loads(made[0])
    assert (report["schema"], report["clean"], report["fault"], report["target"]) == (1, False, None, "gfx1201")
    (row,) = report["launches"][0]["undeclared"]
    assert (row["buffer"], row["ranges"], row["action"], row["path"]) == ("x", [[100, 128]], "read", "vector")
    assert set(row["sites"][0]) == {"address", "offset", "text", "count"}
    assert "test_audit.py" not in made[0]


def test_what_cannot_be_run_is_refused() -> None:
    """With the codes that the same mistakes have elsewhere."""
    app = App("by_value")
    plan = app.plan(rl.slot("pointer", "u8"), rl.write(app.y[0:128]))
    refused: list[tuple[str, Any, Any, Any]] = [
        ("RL0714", app.graph, None, None),
        ("RL1202", plan, None, None),
        ("RL1201", plan, None, {"pointer": 0, "other": 1}),
        ("RL0109", plan, None, {"pointer": -1}),
        ("RL0706", plan, None, {"pointer": App("copy").graph.buffer("w", 4)}),
        ("RL0706", plan, {"w": b""}, {"pointer": 0}),
        ("RL0706", plan, {3: b""}, {"pointer": 0}),
        ("RL0701", plan, {"x": bytes(257)}, {"pointer": 0}),
        ("RL0713", plan, {"x": "text"}, {"pointer": 0}),
    ]
    for code, what, inputs, slots in refused:
        with pytest.raises(rl.RedlineError) as caught:
            rl.audit(what, inputs, slots)
        assert caught.value.code == code


# Command line

_FILE = """
import redline as rl
from tests.test_audit import module

def app(**declared):
    graph = rl.Graph()
    x, y = graph.buffer("x", 128, role="in"), graph.buffer("y", 128, role="out")
    accesses = {"right": (rl.read(x), rl.write(y)), "wrong": (rl.read(x[0:64]), rl.write(y))}
    graph.launch(module()["copy"], grid=1, block=32, args=accesses[declared["how"]])
    return graph

def right(): return app(how="right")
def wrong(): return app(how="wrong")

def pointers():
    graph = rl.Graph()
    x, y = graph.buffer("x", 128, role="in"), graph.buffer("y", 128, role="out")
    table = graph.buffer("table", 8, role="in")
    graph.launch(module()["by_value"], grid=1, block=32, args=[rl.slot("p", "u8"), rl.write(y)], accesses=[rl.read(x)])
    graph.launch(module()["by_memory"], grid=1, block=32, args=[rl.read(table), rl.write(y)], accesses=[rl.read(x)])
    return graph

def scaled():
    graph = rl.Graph()
    x, y = graph.buffer("x", 128, role="in"), graph.buffer("y", 128, role="out")
    graph.launch(module()["by_value"], grid=1, block=32, args=[rl.slot("p", "u8", default=0), rl.write(y)])
    return graph
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file with graphs."""
    path = tmp_path / "app.py"
    path.write_text(_FILE)
    return str(path)


def _run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["audit", *words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_exit_codes_of_the_command(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """0 as declared, 1 with a finding or a fault, 2 for what cannot be run."""
    code, out, _ = _run(capsys, f"{file}:right")
    assert (code, "no undeclared access" in out) == (0, True)
    code, out, _ = _run(capsys, f"{file}:wrong")
    assert (code, "undeclared vector read: x[64:128]" in out) == (1, True)
    code, out, _ = _run(capsys, f"{file}:scaled")
    assert (code, "no memory" in out) == (1, True)
    code, out, _ = _run(capsys, f"{file}:wrong", "--json")
    assert (code, json.loads(out)["schema"]) == (1, 1)
    code, out, _ = _run(capsys, f"{file}:wrong", "--suggest")
    assert (code, "args[0] = rl.read(x)  # was rl.read(x[0:64])" in out) == (1, True)
    code, out, _ = _run(capsys, f"{file}:right", "--suggest")
    assert (code, out) == (0, "")


def test_pointers_from_the_command_line(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Into a slot and into a buffer; without the offset everything is declared, with it something is not."""
    given = ("--set", "p=@x", "--fill", "table=@x", "--fill", "random")
    assert _run(capsys, f"{file}:pointers", *given)[0] == 0
    code, out, _ = _run(capsys, f"{file}:pointers", "--set", "p=@x+4", "--fill", "table=@x")
    assert (code, "past the end of buffer 'x'" in out) == (1, True)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("nothing", (), "has no 'nothing'"),
        ("pointers", (), "add --set p=VALUE"),
        ("pointers", ("--set", "p"), "not SLOT=VALUE"),
        ("pointers", ("--set", "q=1"), "slots p"),
        ("pointers", ("--set", "p=one"), "no whole number"),
        ("pointers", ("--set", "p=-1"), "RL0109"),
        ("pointers", ("--set", "p=@w"), "@NAME or @NAME+BYTES"),
        ("pointers", ("--set", "p=@x+y"), "@NAME or @NAME+BYTES"),
        ("right", ("--fill", "w=zeros"), "no outside buffer 'w'"),
        ("right", ("--fill", "x=f3:1"), "allowed: zeros"),
        ("right", ("--fill", "x=i4:1.5"), "no whole number"),
        ("right", ("--fill", "x=file:/nowhere"), "No such file"),
    ],
)
def test_usage_that_is_wrong(
    file: str, name: str, options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 and a sentence that says what is there."""
    code, out, err = _run(capsys, f"{file}:{name}", *options)
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("redline audit: ")


@pytest.mark.parametrize(
    ("content", "first", "last"),
    [("zeros", 0, 0), ("index", 0, 31), ("i4:-7", 0xFFFFFFF9, 0xFFFFFFF9), ("f4:1", 0x3F800000, 0x3F800000)],
)
def test_contents_by_name(content: str, first: int, last: int) -> None:
    """What the buffer holds is what was said."""
    from redline.cli_audit import _inputs

    app = App("copy")
    plan = app.plan(rl.read(app.x[0:128]), rl.write(app.y[0:128]))
    made = _inputs(plan, ["zeros", f"x={content}"])
    words = np.frombuffer(bytes(made["x"]), np.uint32)
    assert (words[0], words[31]) == (first, last)
    assert bytes(made["y"]) == bytes(256)
    assert _inputs(plan, ["random"]) == _inputs(plan, ["random"])
    assert _inputs(plan, ["random"])["x"] != _inputs(plan, ["random"])["y"]
