# SPDX-License-Identifier: Apache-2.0
"""The repository itself: layers, where compiled code lives, lazy imports, public names, licence lines."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import redline
from redline import compiled_cache

ROOT = Path(redline.__file__).parent.parent
SOURCES = sorted(
    file
    for folder in ("redline", "radiowave", "fuzz", "bench", "tests", "examples")
    for file in (ROOT / folder).rglob("*.py")
)
NOPYTHON = {
    "redline/encoders/emit.py",
    "redline/hsa/null_calls.py",
    "redline/hsa/publish.py",
    "redline/sim/fma.py",
    "redline/stabbing.py",
    "redline/sweep.py",
}
PLANNER = {
    *(
        "graph",
        "plan",
        "fences",
        "safety",
        "hazards",
        "ranges",
        "program",
        "forms",
        "patching",
        "instructions",
        "kernel",
        "kernarg",
        "explain",
        "flight",
        "bindings",
        "launch",
    ),
    *("accesses", "ordering", "reasons", "report", "dot", "differences", "split", "foreign"),
    *("replay", "device", "cli", "demo", "doctor"),
    *("auditing", "audited", "judged", "observations", "suggestion"),
}

#: A module of the first column imports no module of the second. Lower layers know nothing of upper ones.
LAYERS = [
    ("redline/sim", {*PLANNER, "encoders", "hsa.queue", "hsa.memory", "hsa.agent"}),
    ("redline/encoders", {*PLANNER, "sim", "hsa", "kernels"}),
    ("redline/hsa", {*PLANNER, "encoders", "kernels"}),
    (
        "redline/ranges.py",
        {"graph", "plan", "fences", "program", "forms", "replay", "device", "encoders", "hsa", "sim"},
    ),
    # Graph.compile is the one call that does all three steps; it imports plan and program when it is called.
    ("redline/graph.py", {"fences", "replay", "device", "hsa", "sim", "cli"}),
    ("redline/launch.py", {"graph", "plan", "fences", "program", "forms", "replay", "device", "hsa", "sim", "cli"}),
    (
        "redline/accesses.py",
        {"graph", "plan", "fences", "program", "forms", "replay", "device", "encoders", "hsa", "sim", "cli"},
    ),
    (
        "redline/ordering.py",
        {"graph", "plan", "fences", "program", "forms", "replay", "device", "encoders", "hsa", "sim", "cli"},
    ),
    ("redline/hazards.py", {"plan", "fences", "program", "forms", "replay", "device", "encoders", "hsa", "sim", "cli"}),
    ("redline/plan.py", {"replay", "device", "hsa", "sim", "cli", "encoders"}),
    ("redline/fences.py", {"program", "forms", "safety", "replay", "device", "hsa", "sim", "cli", "encoders"}),
    (
        "redline/safety.py",
        {
            "fences",
            "sweep",
            "stabbing",
            "accesses",
            "hazards",
            "program",
            "forms",
            "replay",
            "device",
            "hsa",
            "sim",
            "cli",
            "encoders",
        },
    ),
    ("redline/reasons.py", {"program", "forms", "safety", "replay", "device", "hsa", "sim", "cli", "encoders"}),
    (
        "redline/foreign.py",
        {"fences", "sweep", "stabbing", "program", "forms", "replay", "device", "hsa", "sim", "cli"},
    ),
    ("redline/program.py", {"forms", "replay", "device", "hsa", "sim", "cli"}),
    ("redline/forms.py", {"replay", "device", "hsa", "sim", "cli"}),
    ("redline/replay.py", {"sim", "cli", "demo"}),
]


def _name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def _imports(file: Path) -> set[str]:
    """Modules that a file imports at run time, absolute; imports for type checkers only do not count."""
    package = _name(file).removesuffix(".py").split("/")[:-1]
    found: set[str] = set()
    tree = ast.parse(file.read_text())
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found.add(module)
            found.update(f"{module}.{alias.name}" for alias in node.names)
    return found


@pytest.mark.parametrize(("place", "forbidden"), LAYERS, ids=[place for place, _ in LAYERS])
def test_imports_go_one_way(place: str, forbidden: set[str]) -> None:
    """cli -> device -> replay -> program -> fences -> plan -> graph; the device below the HSA table knows none."""
    files = [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py"))
    assert files
    for file in files:
        for module in _imports(file):
            for other in forbidden:
                assert not (module + ".").startswith(f"redline.{other}."), f"{_name(file)} imports {module}"


def test_radiowave_knows_nothing_of_redline() -> None:
    """The compiler policy stands alone; nothing imports tests, fuzz or bench."""
    for file in SOURCES:
        name, modules = _name(file), _imports(file)
        if name.startswith("radiowave/"):
            assert not [m for m in modules if m.split(".")[0] in ("redline", "redline_fuzz", "redline_bench")], name
        if name.startswith(("redline/", "radiowave/")):
            assert not [m for m in modules if m.split(".")[0] in ("tests", "redline_fuzz", "redline_bench")], name


def test_compiled_code_lives_in_few_files_that_import_nothing_of_ours() -> None:
    """numba's cache does not notice an edit in another file: such a file's content must be all it depends on."""
    with_numba = {_name(f) for f in SOURCES if any(m.split(".")[0] == "numba" for m in _imports(f))}
    assert {name for name in with_numba if not name.startswith(("tests/", "bench/"))} == NOPYTHON
    assert {f"redline/{name}.py" for name in compiled_cache.COMPILED} == NOPYTHON, "damaged caches are looked for"
    for name in NOPYTHON:
        assert not [m for m in _imports(ROOT / name) if m.split(".")[0] in ("redline", "radiowave")], name


def test_importing_redline_is_lazy() -> None:
    """`import redline` pulls in neither numpy nor numba nor llvmlite; recording a name loads only what it needs."""
    heavy = {"numpy", "numba", "llvmlite", "elftools", "msgpack", "rich"}
    script = f"import sys, redline, radiowave; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_public_names_are_those_that_exist() -> None:
    """`__all__` is complete, and every name loads; what their docstrings say is `test_public_docs.py`'s."""
    from redline import _HOME_OF, errors

    raised = {name for name in vars(errors) if isinstance(getattr(errors, name), type)} - {"annotations"}
    assert len(set(redline.__all__)) == len(redline.__all__)
    assert set(redline.__all__) == set(_HOME_OF) | raised
    for name in redline.__all__:
        assert getattr(redline, name) is not None, name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        redline.nonsense  # noqa: B018


def test_every_source_has_its_licence_line_and_says_what_it_is() -> None:
    """SPDX first, then a docstring."""
    for file in SOURCES:
        text = file.read_text()
        assert text.startswith("# SPDX-License-Identifier: Apache-2.0\n"), _name(file)
        assert ast.get_docstring(ast.parse(text)), _name(file)


def test_every_layer_lists_the_same_targets() -> None:
    """Encoders, radiowave and the software device keep lists of their own, on purpose; they name the same GPUs."""
    from radiowave.targets import TARGETS as RADIOWAVE
    from redline.encoders import TARGETS as ENCODERS
    from redline.kernels import DEMO_TARGETS
    from redline.sim.families import TARGETS as SIM

    assert set(ENCODERS) == set(RADIOWAVE) == set(SIM)
    assert set(DEMO_TARGETS) < set(ENCODERS)


def test_limits_that_two_layers_state_are_equal() -> None:
    """Where one may not import the other: buffers and words, the linter and compiled code, recording and PM4."""
    from redline import lowering, ranges
    from redline.encoders import FAMILIES, emit, limits, lint_launch

    assert ranges.MAX_BYTES == limits.ADDRESS_LIMIT
    assert lint_launch.USER_DATA_REGISTERS == emit.USER_DATA_LIMIT
    for family in FAMILIES:
        sizes = family.packet["INDIRECT_BUFFER"]
        assert sizes.words[sizes.word_of["IB_SIZE"]].by_name["IB_SIZE"].limit == lowering.MAX_IB_DWORDS


#: What has no place in a committed file: open ends, and the paths of one machine.
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b|NotImplementedError|/home/[a-z]|/root/|\.\./shared")


def test_nothing_is_left_open_or_names_a_machine() -> None:
    """No TODO, no stub, no path of one machine. This file spells the words and is not searched."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    texts = [ROOT / name for name in tracked if name.endswith((".py", ".md", ".toml", ".ll", ".json", "Makefile"))]
    assert len(texts) > 50
    for file in texts:
        if file.exists() and file.name not in ("test_repo.py", "LICENSE"):
            found = UNFINISHED.search(file.read_text())
            assert found is None, f"{_name(file)}: {found}"
