# SPDX-License-Identifier: Apache-2.0
"""Every public name of our packages with its docstring, and four rules for these: units, shapes, errors, source.

A name is public when a package's `__all__` has it, or when it is a public member of a class that is. The rules look
words up; they do not judge whether a sentence is true.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

from tests.raises import is_ours, plain, raised_by, raised_directly

PACKAGES = ("redline", "redline.encoders", "redline.encoders.lint", "redline.hsa", "redline.kernels", "radiowave")

#: What a parameter, field or property of this name counts, and the words of which its docstring has one.
UNITS = (
    (r"(n|.*_)?bytes|size|dynamic_lds|kernarg_align|length|root_offset|(entry_)?offset", r"\bbytes?\b|\b\d+-bit\b"),
    (r"address|.*_va|va|pc|base_address", r"\bbytes?\b|\bbyte-|-byte\b"),
    (r"start|stop", r"\bbytes?\b"),
    (r"timeout|timeout_s|seconds", r"\bseconds?\b"),
    (r"grid|workgroups|free", r"\bworkgroups?\b"),
    (r"global_size|block|max_grid|max_workgroup|required_block|required_workgroup|workgroup_hint", r"\bwork-items?\b"),
    (r"wave", r"\blanes?\b"),
    (r"dwords|words|dword", r"\bdwords?\b|\bwords?\b"),
    (r"packets|queue_m.._size|(read|write)_index", r"\bpackets?\b|\bslots?\b"),
    (r"bits", r"\bbits?\b"),
    (r"count", r"\bitems?\b"),
    (r"pointers", r"\bpointers?\b|\barguments?\b|\baddresses\b"),
    (r"(v|s)gpr(_spill)?_count", r"\bregisters?\b"),
    (r"ticks_per_second", r"\b(per second|hertz|Hz)\b"),
    (r"drains|acquires", r"\b(drains|packets)\b"),
)
#: Annotations of what is counted; a name above with another one (a bool, a buffer) counts nothing.
COUNTED = re.compile(
    r"^(int|float|Size|Triple|Dims|Sequence\[int\]|tuple\[(int, )*int(, \.\.\.)?\]|NDArray.*uint32.*)\b"
)

SHAPE = re.compile(r"\bshape\b|\bflat\b|\brows of\b")

#: Where the exceptions of our own are.
TREES = ("redline.errors", "radiowave.errors")

#: Modules that state facts of hardware, of the ABI or of a file format. Each public name of theirs has a source.
FACTS = ("redline.encoders.", "redline.hsa.", "redline.kernel", "radiowave.")
NO_FACTS = (
    "redline.kernels",
    "redline.encoders.findings",
    "redline.hsa.rocm_version",
    "radiowave.toolchain",
    "radiowave.compile",
    "radiowave.contracts",
    "radiowave.difference",
    "radiowave.errors",
    "radiowave.manifest",
    "radiowave.recipes",
    "radiowave.verification",
)
SOURCE = re.compile(
    r"AMDGPUUsage|AMDHSAKernelDescriptor\.h|ClangOffloadBundler|ELF\.h|llvm-c/|\bhsa\.h|hsa_ext_amd\.h"
    r"|\bMesa\b|\bKFD\b|`redline tables|`source`"
)


@dataclass(frozen=True)
class Public:
    """One public name: the object, the class that it is a member of, and its docstring."""

    name: str
    thing: Any
    owner: type | None
    home: ModuleType
    doc: str

    def function(self) -> FunctionType | None:
        """What runs when it is called or read; a class runs its own constructors and operators."""
        return None if isinstance(self.thing, type) else plain(self.thing)


def public_names() -> list[Public]:
    """Each name of each `__all__` once, and the public members of the classes among them."""
    found: dict[int, list[Public]] = {}
    for package in PACKAGES:
        home = importlib.import_module(package)
        for name in home.__all__:
            thing = getattr(home, name)
            if id(thing) not in found:
                found[id(thing)] = list(entries(package, name, thing))
    return [public for group in found.values() for public in group]


def entries(package: str, name: str, thing: Any) -> Iterator[Public]:
    """A name and, where it is a class, its members."""
    home = _home(package, name, thing)
    doc = _constant_doc(home, name) if not callable(thing) else inspect.cleandoc(thing.__doc__ or "")
    yield Public(f"{package}.{name}", thing, None, home, doc)
    for member, value in vars(thing).items() if isinstance(thing, type) else ():
        function = plain(value)
        if function is not None and not member.startswith("_"):
            yield Public(f"{package}.{name}.{member}", value, thing, home, inspect.getdoc(function) or "")


def _home(package: str, name: str, thing: Any) -> ModuleType:
    """The module that a name was written in; a constant does not know, so it is the one that assigns it."""
    if callable(thing):
        return importlib.import_module(thing.__module__)
    home = importlib.import_module(package)
    modules = [module for at, module in sorted(sys.modules.items()) if at.startswith(f"{package}.") or module is home]
    return next(module for module in modules if re.search(_assignment(name), inspect.getsource(module), re.MULTILINE))


def _assignment(name: str) -> str:
    return rf"^{name}\b.*=(?!=)"


def _constant_doc(home: ModuleType, name: str) -> str:
    """The `#:` lines over the assignment of a constant."""
    lines = re.search(rf"((?:^#: .*\n)+){_assignment(name)}", inspect.getsource(home), re.MULTILINE)
    return lines[1].replace("#: ", "") if lines else ""


# -- the rules: each returns what is missing --


def missing_units(public: Public) -> list[str]:
    """Sizes, addresses, times and counts whose unit neither the docstring nor the class's one names."""
    doc = public.doc if public.owner is None else f"{public.doc}\n{public.owner.__doc__}"
    return [
        f"{name}: a unit such as {unit}"
        for name, annotation in _counted(public)
        for pattern, unit in UNITS
        if re.fullmatch(pattern, name) and COUNTED.match(annotation) and not re.search(unit, doc, re.IGNORECASE)
    ]


def _counted(public: Public) -> Iterator[tuple[str, str]]:
    """Parameters, fields and results, with their annotations as written."""
    annotations: dict[str, Any] = {}
    if isinstance(public.thing, type):
        written = plain(vars(public.thing).get("__init__"))
        annotations = {**(written.__annotations__ if written else {}), **vars(public.thing).get("__annotations__", {})}
    own = public.function()
    if own is not None:
        annotations = dict(own.__annotations__)
        annotations[public.name.rpartition(".")[2]] = annotations.pop("return", "None")
    for name, annotation in annotations.items():
        known = getattr(annotation, "__forward_arg__", getattr(annotation, "__name__", str(annotation)))
        text = annotation if isinstance(annotation, str) else str(known)
        yield name, text


def missing_shapes(public: Public) -> list[str]:
    """Arrays whose shape the docstring does not tell."""
    arrays = [name for name, annotation in _counted(public) if "NDArray" in annotation]
    return [f"{name}: its shape" for name in arrays if not SHAPE.search(public.doc)]


def missing_errors(public: Public) -> list[str]:
    """Classes that a call raises and the docstring does not name. A base of one names it, unless raised right there."""
    said = re.search(r"\b[Rr]aises?\b", public.doc) is not None
    words = {word: kinds for word in re.findall(r"\w+", public.doc) if (kinds := _exceptions(word))}
    missing = []
    for kind, is_direct in sorted(_raised(public).items(), key=lambda pair: pair[0].__name__):
        named = kind.__name__ in words if is_direct else any(issubclass(kind, bases) for bases in words.values())
        if not said or not named:
            missing.append(f"Raises {kind.__name__}")
    return missing


def _exceptions(word: str) -> tuple[type[BaseException], ...]:
    """The exceptions of that name: both trees have an UnsupportedTarget."""
    kinds = (getattr(importlib.import_module(module), word, None) for module in (*TREES, "builtins"))
    return tuple(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseException))


def _raised(public: Public) -> dict[type[BaseException], bool]:
    """The classes of the error trees that a call raises, and any that its own text raises (True)."""
    found: dict[type[BaseException], bool] = {}
    own = public.function()
    functions = [own] if own is not None else []
    owner = public.owner
    if isinstance(public.thing, type) and not issubclass(public.thing, BaseException):
        owner = public.thing
        special = (plain(value) for name, value in vars(owner).items() if name.startswith("__"))
        functions = [function for function in special if function and is_ours(function)]
    for function in functions:
        followed = {kind: False for kind in raised_by(function, owner) if kind.__module__ in TREES}
        found = {**followed, **found}
        found |= dict.fromkeys(raised_directly(function, owner), True)
    return found


def missing_source(public: Public) -> list[str]:
    """Whether a fact's name says where the fact is from: itself, its class or its module."""
    place = public.home.__name__
    if not place.startswith(FACTS) or place.startswith(NO_FACTS):
        return []
    texts = (public.doc, public.owner.__doc__ if public.owner else "", public.home.__doc__)
    return [] if any(SOURCE.search(text or "") for text in texts) else [f"a source: {place} names none"]
