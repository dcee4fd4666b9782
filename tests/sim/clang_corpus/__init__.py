# SPDX-License-Identifier: Apache-2.0
"""Kernels that clang 19 and 22 compile, and what each of them means in numpy.

`*.hip` and `kernels.ll` are the sources; a Python file of the same name holds one oracle a kernel, entered into
`registry.KERNELS`. `build.py` compiles, `runs.py` runs and compares. To add a kernel: write it, write its oracle in the
file beside it; every run takes it in.
"""
