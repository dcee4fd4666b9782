# SPDX-License-Identifier: Apache-2.0
"""Which further arguments and definitions may go to a HIP compiler, and which would make its record untrue."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from radiowave.errors import ToolchainError

_NAME: Final = re.compile(r"[A-Za-z_]\w*(\([^)]*\))?")

# Arguments that something else decides, with what does.
_DECIDED: Final = {
    r"-(o|c|S|E|x|M\w*|emit-llvm|fgpu-rdc|fsyntax-only|###)|-o.+|--?save-temps.*|--(no-)?offload-.*": "one object is "
    "compiled and linked",
    r"--?(target|march|mcpu|cuda-gpu-arch|amdgpu-target)(=.*)?": "target (--target)",
    r"-m(no-)?wavefrontsize64": "wave (--wave)",
    r"-mcode-object-version.*": "code_object_version (--code-object-version)",
    r"-f(no-)?fast-math|-Ofast|-ffp-model.*": "fast_math (--fast-math)",
    r"-ffp-contract.*": "fp_contract (--fp-contract)",
    r"-misched.*|-amdgpu-max-memory-clause.*": "profile (--profile)",
    r"-[DU].*": "defines (--define)",
    r"-I.*|-isystem.*|-iquote.*|-include.*|-idirafter.*": "include (--include)",
    r"@.*": "what is read from such a file would not be recorded",
}


def check_arguments(arguments: Iterable[str], defines: Iterable[str], where: str) -> None:
    """Refuse what contradicts the other options, and a macro that is none. Raises ToolchainError (RW0111)."""
    for argument in arguments:
        for pattern, decides in _DECIDED.items():
            if re.fullmatch(pattern, argument):
                raise ToolchainError(
                    "RW0111",
                    where=where,
                    seen=f"argument {argument}",
                    allowed=f"not as an argument: {decides}",
                    do="leave it out, and use the option for it where there is one",
                )
    for name in defines:
        if not _NAME.fullmatch(name):
            raise ToolchainError(
                "RW0111", where=where, seen=f"macro {name!r}", allowed="a C name", do="write NAME or NAME=VALUE"
            )
