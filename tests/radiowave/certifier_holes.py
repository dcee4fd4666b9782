# SPDX-License-Identifier: Apache-2.0
"""Three mistakes that an earlier certifier made, each put into this one: random programs must find every one of them.

A check of the check. Each hole replaces one function of the certifier for as long as its context lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from unittest import mock

from radiowave import Site, flow, flow_state, memory_flow, scalar_flow, values
from radiowave.values import Base, Half, Value, inexact

MODULES: tuple[ModuleType, ...] = (flow, flow_state, memory_flow, scalar_flow, values)


def _replaced(name: str, function: Callable[..., object]) -> ExitStack:
    """Under its name, wherever the certifier imports it."""
    stack = ExitStack()
    for module in MODULES:
        if hasattr(module, name):
            stack.enter_context(mock.patch.object(module, name, function))
    return stack


@contextmanager
def sign_of_the_low_half() -> Iterator[None]:
    """Adding 0xfffffff8 counts as -8, whatever is added to the high half."""

    def signed(low: int, high: int) -> int:
        return low - (1 << 32) if low >> 31 else low

    with _replaced("signed", signed):
        yield


@contextmanager
def halves_of_two_offsets() -> Iterator[None]:
    """Halves make a pointer when they point into the same object, wherever each of them was taken from."""

    def pointer(low: Value, high: Value) -> frozenset[Base] | None:
        if not isinstance(low, Half) or not isinstance(high, Half) or low.is_high or not high.is_high:
            return None
        return low.bases if inexact(low.bases) == inexact(high.bases) else None

    with _replaced("pointer", pointer):
        yield


@contextmanager
def first_visit_counts() -> Iterator[None]:
    """A load keeps the class of the first visit, though another path comes to it later."""
    first: dict[int, Site] = {}

    def note(walker: flow._Walker, site: Site | None) -> None:
        if site is not None:
            first.setdefault(site.address, site)

    def last_pass(walker: flow._Walker) -> set[Site]:
        found = {first[pc] for pc in walker._reached if pc in first}
        first.clear()
        return found

    with mock.patch.object(flow._Walker, "_note", note), mock.patch.object(flow._Walker, "_last_pass", last_pass):
        yield


HOLES = {
    "sign_of_the_low_half": sign_of_the_low_half,
    "halves_of_two_offsets": halves_of_two_offsets,
    "first_visit_counts": first_visit_counts,
}
