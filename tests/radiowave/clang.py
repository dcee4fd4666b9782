# SPDX-License-Identifier: Apache-2.0
"""Runs Debian's clang 19 and 22 for tests: HIP and OpenCL sources in, code objects and fat binaries out.

Needs the packages clang-19, clang-22, lld-22, clang-tools-19 and clang-tools-22. What is missing is an error, not a
skip. No header of HIP or OpenCL is needed: the sources say what they use.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

VERSIONS = (19, 22)
DEMO_TARGETS = ("gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201")

HIP = """
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
typedef int hipError_t;
typedef void *hipStream_t;
struct dim3 { unsigned x, y, z; };
extern "C" hipError_t hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, hipStream_t);
extern "C" unsigned __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, hipStream_t *);
"""

SCALE = (
    HIP
    + """
extern "C" __global__ void NAME(float *y, const float *x, float a, int n) {
  int i = __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
  if (i < n) y[i] = a * x[i];
}
"""
)

# Every kind of explicit argument that OpenCL has.
KINDS = """
kernel __attribute__((reqd_work_group_size(8, 4, 1))) void kinds(
    global float *restrict y, const global float *x, constant int *c, local float *l, read_only image2d_t image,
    write_only image1d_t line, sampler_t s, read_only pipe int p, queue_t q, float a, int4 v, uchar b) {
  y[0] = a + x[0] + b;
}
kernel __attribute__((work_group_size_hint(64, 1, 1))) void plain(global volatile int *y) { y[0] = 1; }
"""


def program(name: str, version: int) -> str:
    """The path of `clang-22` and its like."""
    found = shutil.which(f"{name}-{version}")
    if found is None:
        package = {"clang-offload-bundler": "clang-tools", "ld.lld": "lld"}.get(name, name)
        raise FileNotFoundError(f"{name}-{version} is not installed: apt-get install {package}-{version}")
    return found


def run(*command: str | Path) -> None:
    """Run to success, or fail with what it printed."""
    # clang looks for a program called lld; the package has one in a folder of its own.
    linker = Path(program("ld.lld", 22)).resolve().parent
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:{linker}"}
    done = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stderr}"


def hip(folder: Path, version: int, *options: str, source: str = SCALE, name: str = "scale") -> Path:
    """Compile HIP; the options say for what and into which container."""
    text = folder / f"{name}.hip"
    text.write_text(source.replace("NAME", name))
    output = text.with_suffix(f".{version}.out")
    run(program("clang", version), "-x", "hip", "-nogpuinc", "-nogpulib", "-O3", *options, text, "-o", output)
    return output


def fat(folder: Path, version: int, *options: str, targets: tuple[str, ...] = DEMO_TARGETS) -> bytes:
    """A fat binary with one code object for each target, as `hipcc --genco` writes it."""
    chosen = [f"--offload-arch={target}" for target in targets]
    return hip(folder, version, "--offload-device-only", "--gpu-bundle-output", *chosen, *options).read_bytes()


def bare(folder: Path, version: int, target: str, *options: str) -> bytes:
    """One linked code object."""
    device = ("--offload-device-only", "--no-gpu-bundle-output", f"--offload-arch={target}")
    return hip(folder, version, *device, *options).read_bytes()


def opencl(folder: Path, version: int, target: str, *options: str) -> bytes:
    """`KINDS` for a target, linked, or relocatable with `-c`."""
    text = folder / "kinds.cl"
    text.write_text(KINDS)
    output = folder / f"kinds.{version}.out"
    language = ("-x", "cl", "-cl-std=CL2.0", "--target=amdgcn-amd-amdhsa", f"-mcpu={target}", "-nogpulib", "-O2")
    run(program("clang", version), *language, *options, text, "-o", output)
    return output.read_bytes()


def library(folder: Path, version: int, *options: str) -> bytes:
    """A host library of two translation units, `scale` and `other`, with their fat binaries inside."""
    chosen = ("--offload-arch=gfx1100", "--offload-arch=gfx1201", "-fPIC", "-c", *options)
    parts = [hip(folder, version, *chosen, name=name) for name in ("scale", "other")]
    output = folder / f"library.{version}.so"
    run(program("ld.lld", 22), "-shared", *parts, "-o", output)
    return output.read_bytes()


def unbundled(folder: Path, version: int, data: bytes, name: str) -> bytes:
    """What clang's own bundler takes out of a bundle for an entry id."""
    source, output = folder / "in.hipfb", folder / "out.o"
    source.write_bytes(data)
    bundler = program("clang-offload-bundler", version)
    run(bundler, "--unbundle", "--type=o", f"--input={source}", f"--targets={name}", f"--output={output}")
    return output.read_bytes()
