# SPDX-License-Identifier: Apache-2.0
"""Recipes: ways to compile a kernel that are worth trying, and what was measured about each. Schema 1.

A recipe says for which kernels it is and what it changes: wave size, scheduler profile, defines, the kernel's variant.
Evidence is bound to one target and to the hash of what was measured. By itself only what was promoted on exactly this
target is applied; everything else is a candidate, for whoever asks for candidates. Measures nothing, compiles nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Final, Literal

import msgspec

from radiowave.documents import canonical, read_object
from radiowave.errors import RecipeError
from radiowave.targets import check_target

SCHEMA: Final = 1
#: Of one workgroup, on every target.
MOST_WORK_ITEMS: Final = 1024

Profile = Literal["default", "max_ilp", "iterative_ilp", "memory_clause", "pipeline_ilp"]
WorkItems = Annotated[int, msgspec.Meta(ge=1, le=MOST_WORK_ITEMS)]
Samples = Annotated[int, msgspec.Meta(ge=0, le=1 << 32)]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Verdict = Literal["promoted", "correctness_only", "rejected"]
_STRONGEST_FIRST: Final[tuple[Verdict, ...]] = ("rejected", "promoted", "correctness_only")


@dataclass(frozen=True)
class Selector:
    """For which kernels: of these names or beginnings of names, families and tags; an empty list asks for nothing.

    A kernel fits when its name is listed or begins as listed, its family is listed, it has all `tags` and none of
    `without_tags`.
    """

    kernels: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    without_tags: tuple[str, ...] = ()

    def fits(self, kernel: str, family: str, tags: frozenset[str]) -> bool:
        """Whether a kernel is meant."""
        named = (
            not (self.kernels or self.prefixes) or kernel in self.kernels or kernel.startswith(self.prefixes or "\0")
        )
        of_family = not self.families or family in self.families
        return named and of_family and tags.issuperset(self.tags) and tags.isdisjoint(self.without_tags)


@dataclass(frozen=True)
class Action:
    """What a recipe changes; None leaves a thing as it is. `wave` is 32 or 64 lanes, `workgroup` counts work-items."""

    wave: Literal[32, 64] | None = None
    profile: Profile | None = None
    workgroup: WorkItems | None = None
    variant: str | None = None
    defines: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Evidence:
    """What was measured on one target. `artifact` is the sha256 (hex) of the code object that was measured; `gain` the
    median gain of throughput in percent, None where only correctness was looked at; `samples` how many rows stand
    behind it."""

    target: str
    verdict: Verdict
    artifact: Sha256
    gain: float | None = None
    samples: Samples = 0
    note: str = ""


@dataclass(frozen=True)
class Recipe:
    """One recipe. `id` is its name for ever; `why` says what it is hoped to do."""

    id: str
    why: str
    action: Action
    selector: Selector = Selector()
    evidence: tuple[Evidence, ...] = ()

    def verdict(self, target: str) -> Verdict | None:
        """What is known on a target: rejected once is rejected, promoted once is promoted; None where nothing is."""
        found = {row.verdict for row in self.evidence if row.target == target}
        return next((verdict for verdict in _STRONGEST_FIRST if verdict in found), None)


def _profile(name: Profile, why: str) -> Recipe:
    return Recipe(name, why, Action(profile=name))


#: Radiowave's own: candidates for every kernel and target, none of them measured by us.
BUILTIN: Final[tuple[Recipe, ...]] = (
    Recipe("wave32", "more waves to choose from, cheaper divergence", Action(wave=32)),
    Recipe("wave64", "half the scalar work and half the instructions to issue for each lane", Action(wave=64)),
    _profile("max_ilp", "independent instructions apart, so that latency hides within a wave"),
    _profile("iterative_ilp", "the same, tried again until occupancy would fall"),
    _profile("memory_clause", "loads together in clauses, for streaming kernels"),
    _profile("pipeline_ilp", "loops pipelined and groups solved exactly, at the price of occupancy"),
    Recipe("wave64_memory_clause", "streaming kernels with wide waves", Action(wave=64, profile="memory_clause")),
    Recipe("wave32_max_ilp", "short kernels bound by latency", Action(wave=32, profile="max_ilp")),
)


@dataclass(frozen=True)
class Catalogue:
    """Recipes with their evidence.

    Raises RecipeError for two of one id, UnsupportedTarget for evidence about a GPU that is not on the list.
    """

    recipes: tuple[Recipe, ...] = BUILTIN
    schema: Literal[1] = SCHEMA

    def __post_init__(self) -> None:
        ids = [recipe.id for recipe in self.recipes]
        twins = sorted({one for one in ids if ids.count(one) > 1})
        if twins:
            raise _damaged("catalogue", f"two recipes of one id: {', '.join(twins)}", "ids that differ")
        for row in (row for recipe in self.recipes for row in recipe.evidence):
            check_target(row.target, where="catalogue")

    @classmethod
    def parse(cls, data: bytes, label: str = "catalogue") -> Catalogue:
        """Read a catalogue; `label` names the file in errors. Raises RecipeError, and UnsupportedTarget for evidence
        about a GPU that is not on the list."""
        try:
            found = msgspec.convert(read_object(data), cls)
            if json.loads(found.to_bytes()) != json.loads(data):
                raise ValueError("fields that catalogues do not have")
        except (ValueError, msgspec.ValidationError) as error:
            raise _damaged(label, str(error), f"a catalogue of schema {SCHEMA}") from error
        return found

    def to_bytes(self) -> bytes:
        """As canonical JSON and a newline."""
        return canonical(asdict(self)) + b"\n"

    def select(
        self, target: str, kernel: str, *, family: str = "", tags: Iterable[str] = (), candidates: bool = False
    ) -> tuple[Recipe, ...]:
        """The recipes to apply to a kernel, or with `candidates` those to try; never one that was rejected there.

        Raises UnsupportedTarget for a GPU that is not on the list, RecipeError where two that were promoted contradict
        each other.
        """
        check_target(target, where="recipes")
        fitting = [r for r in self.recipes if r.selector.fits(kernel, family, frozenset(tags))]
        if candidates:
            return tuple(r for r in fitting if r.verdict(target) != "rejected")
        chosen = tuple(r for r in fitting if r.verdict(target) == "promoted")
        _check_together(chosen)
        return chosen

    def ingest(self, ledger: bytes, label: str = "ledger") -> tuple[Catalogue, int]:
        """Take in the won rows of a ledger, one JSON object a line; the new catalogue, and how much evidence came new.

        A row counts when its `verdict` is "WIN" and it names recipes (`recipe`, or `recipes`): it needs `target` and
        `artifact`, and may have `gain`, `samples` and `note`. What is known already is passed over. Raises RecipeError
        for a row that is no such object or names a recipe that is not here, UnsupportedTarget for one about a GPU that
        is not on the list; nothing is taken in then.
        """
        found, count = {recipe.id: recipe for recipe in self.recipes}, 0
        for number, line in enumerate(ledger.splitlines(), 1):
            if not line.strip():
                continue
            for name, evidence in _won(line, f"{label}, line {number}"):
                if name not in found:
                    known = ", ".join(sorted(found))
                    raise _unusable(f"{label}, line {number}", f"recipe {name!r}", known)
                rows = found[name].evidence
                if all((row.target, row.artifact) != (evidence.target, evidence.artifact) for row in rows):
                    found[name] = replace(found[name], evidence=(*rows, evidence))
                    count += 1
        return Catalogue(tuple(found.values())), count


@dataclass(frozen=True)
class _Row:
    """What is read of a row that won."""

    target: str
    artifact: Sha256
    recipe: str = ""
    recipes: tuple[str, ...] = ()
    gain: float | None = None
    samples: Samples = 0
    note: str = ""


def _won(line: bytes, where: str) -> list[tuple[str, Evidence]]:
    try:
        document = read_object(line)
        if document.get("verdict") != "WIN" or not (document.get("recipe") or document.get("recipes")):
            return []
        row = msgspec.convert(document, _Row)
    except (ValueError, msgspec.ValidationError) as error:
        raise _unusable(where, str(error), "a JSON object with verdict, recipe, target and artifact") from error
    check_target(row.target, where=where)
    evidence = Evidence(row.target, "promoted", row.artifact, row.gain, row.samples, row.note)
    return [(name, evidence) for name in dict.fromkeys((*row.recipes, *([row.recipe] if row.recipe else [])))]


def _check_together(chosen: tuple[Recipe, ...]) -> None:
    """No two of them may want another value for one thing."""
    said: dict[str, tuple[Any, str]] = {}
    for recipe in chosen:
        action = asdict(recipe.action)
        wanted = {**{f"define {k}": v for k, v in action.pop("defines").items()}, **action}
        for what, value in wanted.items():
            if value is not None and said.setdefault(what, (value, recipe.id))[0] != value:
                other, first = said[what]
                raise RecipeError(
                    "RW0503",
                    where="recipes",
                    seen=f"{first} wants {what} {other}, {recipe.id} wants {value}",
                    allowed="one value for each thing",
                    do="reject one of them for this target, or narrow its selector",
                )


def _damaged(where: str, seen: str, allowed: str) -> RecipeError:
    return RecipeError("RW0501", where=where, seen=seen, allowed=allowed, do="see `radiowave recipes builtin`")


def _unusable(where: str, seen: str, allowed: str) -> RecipeError:
    return RecipeError("RW0502", where=where, seen=seen, allowed=allowed, do="correct the row, or leave it out")
