# SPDX-License-Identifier: Apache-2.0
"""Objects that several Radiowave tests read, each compiled once in a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from radiowave import CodeObject, CompileJob, Disassembler, compile_many
from tests.radiowave import sources

Matrix = dict[tuple[str, int], bytes]


@pytest.fixture(scope="session")
def saxpy() -> Matrix:
    """`sources.SAXPY`, linked, for every target and wave size."""
    from radiowave.targets import TARGETS, WAVES

    keys = [(target, wave) for target in TARGETS for wave in WAVES]
    return dict(zip(keys, compile_many([CompileJob(sources.SAXPY, *key) for key in keys]), strict=True))


@pytest.fixture(scope="session")
def globals_object() -> bytes:
    """`sources.GLOBALS`, linked, for gfx1201 wave32."""
    return compile_many([CompileJob(sources.GLOBALS, "gfx1201")])[0]


@pytest.fixture(scope="session")
def argument_objects() -> dict[str, CodeObject]:
    """The modules about arguments, for gfx1100 wave32."""
    texts = {"implicit": sources.IMPLICIT, "arguments": sources.ARGUMENTS}
    objects = compile_many([CompileJob(text, "gfx1100") for text in texts.values()])
    return {name: CodeObject.parse(linked) for name, linked in zip(texts, objects, strict=True)}


@pytest.fixture(scope="session")
def disassembler() -> Iterator[Disassembler]:
    """One disassembler for the tests that do not kill it."""
    with Disassembler() as shared:
        yield shared
