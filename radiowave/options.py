# SPDX-License-Identifier: Apache-2.0
"""What can be asked of a compilation, and what each choice means to clang and to LLVM.

Checks names and combinations; starts nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from radiowave.compilers import IR, Toolchain
from radiowave.errors import ToolchainError
from radiowave.targets import check_code_object_version, check_target, check_wave

#: Scheduler profiles and the options of LLVM's AMDGPU back end behind them, in the order in which they are given.
SCHEDULERS: dict[str, tuple[str, ...]] = {
    "default": (),
    "max_ilp": ("-misched=gcn-max-ilp",),
    "iterative_ilp": ("-misched=gcn-iterative-ilp",),
    "memory_clause": ("-misched=gcn-max-memory-clause", "-amdgpu-max-memory-clause=4"),
    "pipeline_ilp": (
        "-misched=gcn-max-ilp",
        "-amdgpu-schedule-relaxed-occupancy",
        "-amdgpu-igrouplp-exact-solver",
        "-enable-pipeliner",
    ),
}

# The first clang that has a profile, where it is not the oldest that is supported.
FIRST_CLANG = {"memory_clause": 20}

FP_CONTRACT = ("off", "on", "fast")

_DEFINE = re.compile(r"[A-Za-z_]\w*(=.*)?", re.DOTALL)

# Arguments that would contradict the record, with the option that decides instead.
_DECIDED = {
    r"-(o|c|S|E|x|M\w*|save-temps|emit-llvm)(=.*)?|-o.+|--offload-\w+.*|-fgpu-rdc": "one linked code object is made",
    r"--?(target|march|mcpu|offload-arch|cuda-gpu-arch|amdgpu-target)(=.*)?": "target= (--target)",
    r"-m(no-)?wavefrontsize64": "wave= (--wave)",
    r"-mcode-object-version.*": "code_object_version= (--code-object-version)",
    r"-f(no-)?fast-math|-Ofast|-ffp-model.*": "fast_math= (--fast-math)",
    r"-ffp-contract.*": "fp_contract= (--fp-contract)",
    r"-misched.*|-amdgpu-max-memory-clause.*": "scheduler= (--scheduler)",
    r"-D.*": "defines= (--define)",
    r"@.*": "arguments that are read from a file would not be recorded",
}


@dataclass(frozen=True)
class Options:
    """One compilation's choices.

    `wave` is 32 or 64 lanes. `code_object_version` None is 5, and for LLVM IR what the source says. `fast_math` is off
    unless asked for; `fp_contract` says where a * b + c may become one rounding: `off` nowhere, `on` inside an
    expression of the source, `fast` anywhere; None is `on`, and `fast` with fast math. `defines` are `NAME` or
    `NAME=VALUE`; `arguments` go to the compiler as they are, relative paths in them from the source's folder.
    """

    target: str
    wave: int = 32
    code_object_version: int | None = None
    scheduler: str = "default"
    fast_math: bool = False
    fp_contract: str | None = None
    defines: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()

    def check(self, where: str) -> None:
        """Refuse what no compiler should see. Raises UnsupportedTarget and ToolchainError."""
        check_target(self.target, where=where)
        check_wave(self.wave, where=where)
        if self.code_object_version is not None:
            check_code_object_version(self.code_object_version, where=where)
        if self.scheduler not in SCHEDULERS:
            raise _unknown(where, f"scheduler profile {self.scheduler!r}", SCHEDULERS)
        if self.fp_contract not in (None, *FP_CONTRACT):
            raise _unknown(where, f"fp_contract {self.fp_contract!r}", FP_CONTRACT)
        for define in self.defines:
            if not _DEFINE.fullmatch(define):
                raise _misfit(where, f"definition {define!r}", "NAME or NAME=VALUE", "write a C name before any =")
        for argument in self.arguments:
            _check_argument(argument, where)

    def check_toolchain(self, toolchain: Toolchain, where: str) -> None:
        """Refuse what this toolchain lacks. Raises ToolchainError."""
        first = FIRST_CLANG.get(self.scheduler, 0)
        if toolchain.clang_release and toolchain.clang_release < first:
            seen = f"{toolchain.name} ({toolchain.version}) has no scheduler for the profile {self.scheduler}"
            raise _lacks(where, seen, f"clang {first} or newer for it", "choose another profile, or a newer compiler")
        if toolchain.language == IR:
            self._check_ir(where)

    def _check_ir(self, where: str) -> None:
        asked = {
            "fast_math": self.fast_math,
            "fp_contract": self.fp_contract,
            "defines": self.defines,
            "arguments": self.arguments,
        }
        for name, value in asked.items():
            if value:
                seen = f"{name}={value!r} for LLVM IR, whose instructions carry their own flags"
                raise _lacks(where, seen, "target, wave, code object version, scheduler", f"leave {name} out")

    @property
    def contract(self) -> str:
        """`fp_contract` with its default filled in."""
        return self.fp_contract or ("fast" if self.fast_math else "on")


def scheduler_arguments(scheduler: str) -> list[str]:
    """A profile as clang takes it.

    >>> scheduler_arguments("max_ilp")
    ['-mllvm', '-misched=gcn-max-ilp']
    """
    return [word for option in SCHEDULERS[scheduler] for word in ("-mllvm", option)]


def _check_argument(argument: str, where: str) -> None:
    for pattern, instead in _DECIDED.items():
        if re.fullmatch(pattern, argument):
            raise _misfit(where, f"argument {argument}", f"not as an argument: {instead}", "leave it out")


def _unknown(where: str, seen: str, allowed: dict[str, tuple[str, ...]] | tuple[str, ...]) -> ToolchainError:
    return _misfit(where, seen, ", ".join(allowed), "name one of these")


def _misfit(where: str, seen: str, allowed: str, do: str) -> ToolchainError:
    return ToolchainError("RW0111", where=where, seen=seen, allowed=allowed, do=do)


def _lacks(where: str, seen: str, allowed: str, do: str) -> ToolchainError:
    return ToolchainError("RW0110", where=where, seen=seen, allowed=allowed, do=do)
