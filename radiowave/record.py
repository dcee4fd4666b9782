# SPDX-License-Identifier: Apache-2.0
"""What is written down about a compilation: enough to do it again and to see that it was the same.

Names no folder of this machine and no time. The manifest holds it as its `build`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from radiowave.compilers import ToolIdentity

SCHEMA: Final = 1


@dataclass(frozen=True)
class CompileRecord:
    """One compilation. Hashes are sha256 in hex; sizes of waves in lanes.

    `argv` is the compiler's command with `{source_folder}`, `{include}` and `{output}` where its folders were.
    `headers` are pairs of the name and hash of every file that the source included, by path below the source's folder
    or Radiowave's headers, else by file name alone. `fp_contract` None: as each instruction of the LLVM IR says.
    """

    language: str
    source: str
    source_sha256: str
    target: str
    wave: int
    code_object_version: int
    scheduler: str
    fast_math: bool
    fp_contract: str | None
    defines: tuple[str, ...]
    arguments: tuple[str, ...]
    toolchain: ToolIdentity
    argv: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]
    object_sha256: str

    def as_json(self) -> dict[str, Any]:
        """Ready for `json.dumps`, with a `schema` version; equal compilations give equal documents."""
        document: dict[str, Any] = {"schema": SCHEMA, **asdict(self), "headers": _files(self.headers)}
        for name in ("defines", "arguments", "argv"):
            document[name] = list(document[name])
        document["toolchain"]["files"] = _files(self.toolchain.files)
        return document


def _files(pairs: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    """A list, because two files may have the same name."""
    return [{"name": name, "sha256": sha256} for name, sha256 in pairs]


@dataclass(frozen=True)
class Compiled:
    """A linked code object and the record of how it was made."""

    code_object: bytes
    record: CompileRecord
