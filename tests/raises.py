# SPDX-License-Identifier: Apache-2.0
"""Which exceptions a function of ours raises, read from the source.

Follows calls as far as names resolve inside our packages: functions, classes (their constructors), methods and
properties of `self`, of annotated parameters and of what `__init__` keeps of them. Does not follow local variables and
callbacks: what it finds is raised, what it misses may be.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import importlib.util
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

OURS = ("redline", "radiowave")
CONSTRUCTORS = ("__init__", "__post_init__", "__new__")
Classes = frozenset[type[BaseException]]


@dataclass
class Body:
    """What one function raises itself, and what it calls with the classes that it catches around the call."""

    direct: set[type[BaseException]] = field(default_factory=set)
    calls: list[tuple[FunctionType, Classes]] = field(default_factory=list)
    returned: set[type[BaseException]] = field(default_factory=set)


def is_ours(thing: object) -> bool:
    """Whether a class or function was defined in one of our packages."""
    return str(getattr(thing, "__module__", "")).split(".")[0] in OURS


def plain(value: object) -> FunctionType | None:
    """The function behind a property, a class method, a cached property or a cached function."""
    if isinstance(value, property):
        value = value.fget
    value = getattr(value, "func", value) if isinstance(value, functools.cached_property) else value
    value = inspect.unwrap(value) if callable(value) else getattr(value, "__func__", value)
    return value if isinstance(value, FunctionType) else None


def raised_by(function: FunctionType, owner: type | None = None) -> set[type[BaseException]]:
    """All classes that a call of `function` may raise; `owner` is the class that `self` belongs to."""
    found: dict[tuple[FunctionType, type | None], set[type[BaseException]]] = {}
    pending = [(function, owner)]
    while pending:
        key = pending.pop()
        if key not in found:
            found[key] = set(_body(*key).direct)
            pending.extend((callee, _owner(callee)) for callee, _ in _body(*key).calls)
    changed = True
    while changed:
        changed = False
        for key, classes in found.items():
            for callee, caught in _body(*key).calls:
                new = {c for c in found[callee, _owner(callee)] if not issubclass(c, tuple(caught))} - classes
                classes |= new
                changed = changed or bool(new)
    return found[function, owner]


def raised_directly(function: FunctionType, owner: type | None = None) -> set[type[BaseException]]:
    """The classes that `function` raises in its own text."""
    return set(_body(function, owner).direct)


def constructors(kind: type) -> Iterator[FunctionType]:
    """What a call of a class runs, as far as it is written here."""
    for name in CONSTRUCTORS:
        written = plain(inspect.getattr_static(kind, name, None))
        if written is not None and is_ours(written) and _tree(written) is not None:
            yield written


def _owner(function: FunctionType) -> type | None:
    """The class that a method was written in, by its qualified name."""
    outer = function.__qualname__.split(".")[:-1]
    thing: Any = importlib.import_module(function.__module__)
    for name in outer:
        thing = getattr(thing, name, None)
    return thing if outer and isinstance(thing, type) else None


@functools.cache
def _tree(function: FunctionType) -> ast.FunctionDef | None:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, SyntaxError, IndexError):  # generated, as the __init__ of a dataclass is
        return None
    return tree if isinstance(tree, ast.FunctionDef) else None


@functools.cache
def _body(function: FunctionType, owner: type | None) -> Body:
    tree, body = _tree(function), Body()
    if tree is not None:
        _Reader(function, owner, tree, body).read(tree.body, frozenset())
    return body


@functools.cache
def _typing_names(module: str) -> dict[str, Any]:
    """What a module imports under `if TYPE_CHECKING`, which is where annotations come from."""
    home = importlib.import_module(module)
    found: dict[str, Any] = {}
    for node in ast.walk(ast.parse(inspect.getsource(home))):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for inner in node.body:
                found |= _imported(inner, home.__package__ or "")
    return found


def _imported(node: ast.AST, package: str) -> dict[str, Any]:
    if isinstance(node, ast.ImportFrom):
        base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
        if base.split(".")[0] in OURS:
            home = importlib.import_module(base)
            for alias in node.names:
                if not hasattr(home, alias.name):
                    importlib.import_module(f"{base}.{alias.name}")
            return {alias.asname or alias.name: getattr(home, alias.name) for alias in node.names}
    return {}


class _Reader:
    """Walks one function's statements with the classes that are caught around them."""

    def __init__(self, function: FunctionType, owner: type | None, tree: ast.FunctionDef, body: Body) -> None:
        self.body, self.package = body, function.__globals__.get("__package__") or ""
        self.names: dict[str, Any] = {**vars(builtins), **_typing_names(function.__module__), **function.__globals__}
        for node in ast.walk(tree):
            self.names |= _imported(node, self.package)
        self.typed: dict[str, type] = {}
        self.elements: dict[str, type] = {}
        for argument in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs):
            self.names.pop(argument.arg, None)
            text = ast.unparse(argument.annotation) if argument.annotation else ""
            self.typed |= _only(argument.arg, _annotated(text, function.__module__))
            self.elements |= _only(argument.arg, _annotated(_inner(text), function.__module__))
        if owner is not None and tree.args.args:
            self.typed[tree.args.args[0].arg] = owner
        for node in ast.walk(tree):
            self._name_locals(node)

    def _name_locals(self, node: ast.AST) -> None:
        """What local names are, where an assignment, a `with` or a `for` says so."""
        for target, value in _assigned(node):
            if isinstance(target, ast.Name):
                self.typed |= _only(target.id, self._type_of(value))
        for item in node.items if isinstance(node, ast.With) else []:
            if isinstance(item.optional_vars, ast.Name):
                kind = self._type_of(item.context_expr) or self._element_of(item.context_expr)
                self.typed |= _only(item.optional_vars.id, kind)
        if isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name):
            self.typed |= _only(node.target.id, self._element_of(node.iter))

    def read(self, nodes: list[Any], caught: Classes) -> None:
        for node in nodes:
            self._node(node, caught)

    def _node(self, node: ast.AST, caught: Classes) -> None:
        if isinstance(node, ast.Try):
            self.read(node.body, caught | {c for h in node.handlers for c in self._catches(h)})
            self.read([*node.handlers, *node.orelse, *node.finalbody], caught)
            return
        if isinstance(node, ast.Raise) and node.exc is not None:
            self.body.direct |= {c for c in self._exceptions(node.exc) if not issubclass(c, tuple(caught))}
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Call):
            kind = self._resolve(node.value.func)
            if isinstance(kind, type) and issubclass(kind, BaseException):
                self.body.returned.add(kind)
        if isinstance(node, ast.Name | ast.Attribute):  # called, or handed to somebody who calls it
            self._calls(self._resolve(node), caught)
        self.read(list(ast.iter_child_nodes(node)), caught)

    def _calls(self, target: Any, caught: Classes) -> None:
        if isinstance(target, type) and is_ours(target) and not issubclass(target, BaseException):
            self.body.calls.extend((function, caught) for function in constructors(target))
        elif (function := plain(target)) is not None and is_ours(function):
            self.body.calls.append((function, caught))

    def _catches(self, handler: ast.ExceptHandler) -> Iterator[type[BaseException]]:
        """What a handler swallows; one that raises again swallows nothing."""
        if any(isinstance(node, ast.Raise) and node.exc is None for node in ast.walk(handler)):
            return
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        for kind in kinds:
            found = self._resolve(kind) if kind is not None else BaseException
            if isinstance(found, type) and issubclass(found, BaseException):
                yield found

    def _exceptions(self, raised: ast.expr) -> set[type[BaseException]]:
        made = self._resolve(raised.func if isinstance(raised, ast.Call) else raised)
        if isinstance(made, type) and issubclass(made, BaseException):
            return {made}
        function: Callable[..., Any] | None = plain(made)
        if isinstance(function, FunctionType) and is_ours(function):
            return set(_body(function, _owner(function)).returned)
        return set()

    def _resolve(self, node: ast.expr) -> Any:
        """The object that an expression names, looked up and never run."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Attribute):
            if (kind := self._type_of(node.value)) is not None:
                return inspect.getattr_static(kind, node.attr, None)
            home = self._resolve(node.value)
            return getattr(home, node.attr, None) if isinstance(home, ModuleType | type) else None
        return None

    def _type_of(self, node: ast.expr) -> type | None:
        """The class of ours that an expression has: `self`, annotated parameters, their members, results of calls."""
        if isinstance(node, ast.Name):
            return self.typed.get(node.id)
        if isinstance(node, ast.Attribute) and (outer := self._type_of(node.value)) is not None:
            member = inspect.getattr_static(outer, node.attr, None)
            return member_types(outer).get(node.attr) if plain(member) is None else _result(plain(member))
        if isinstance(node, ast.Call):
            made = self._resolve(node.func)
            return made if isinstance(made, type) and is_ours(made) else _result(plain(made))
        return None

    def _element_of(self, node: ast.expr) -> type | None:
        """The class of ours of what comes out of an iterable or a context manager."""
        if isinstance(node, ast.Name):
            return self.elements.get(node.id)
        function = plain(self._resolve(node.func)) if isinstance(node, ast.Call) else None
        if function is None:
            return None
        return _annotated(_inner(str(function.__annotations__.get("return"))), function.__module__)


@functools.cache
def member_types(kind: type) -> dict[str, type]:
    """Classes of ours by attribute: annotated fields, and what `__init__` assigns from a parameter or a call."""
    found: dict[str, type] = {}
    for name, text in vars(kind).get("__annotations__", {}).items():
        found |= _only(name, _annotated(text, kind.__module__))
    for function in (function for base in kind.__mro__ if is_ours(base) for function in constructors(base)):
        tree = _tree(function)
        assert tree is not None
        reader = _Reader(function, None, tree, Body())
        for node in ast.walk(tree):
            pairs = _assigned(node)
            for target, value in pairs:
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                    found |= _only(target.attr, reader._type_of(value))
    return found


def _assigned(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """The (target, value) pairs of one assignment; `a, b = x, y` is two."""
    if not isinstance(node, ast.Assign):
        return []
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _only(name: str, kind: type | None) -> dict[str, type]:
    return {} if kind is None else {name: kind}


def _result(function: FunctionType | None) -> type | None:
    return None if function is None else _annotated(function.__annotations__.get("return"), function.__module__)


def _inner(text: str) -> str:
    """The X of `Sequence[X]`, `tuple[X, ...]` or `Iterator[X]`."""
    return text.partition("[")[2].removesuffix("]").removesuffix(", ...")


def _annotated(text: object, module: str) -> type | None:
    """The class of ours that an annotation names; unions and containers name none."""
    if isinstance(text, str) and text and text.replace(".", "").replace("_", "").isalnum():
        thing: Any = {**_typing_names(module), **vars(importlib.import_module(module))}
        for name in text.split("."):
            thing = thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)
        text = thing
    return text if isinstance(text, type) and is_ours(text) else None
