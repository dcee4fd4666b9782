# SPDX-License-Identifier: Apache-2.0
"""Random and hostile inputs for Redline, each judged by an oracle that shares nothing with what it judges.

Here now, the executor's proof: random straight-line LLVM IR, compiled for the host and for each target and
wave size, must give equal bits (`ir_run`). Read `ir_operations` and `ir_rows` (what programs are made of),
`ir_programs` (how one is drawn), `ir_inputs` (data), `ir_modules` (kernel and host wrapping), `ir_host` and
`bare_device` (the two sides), `ir_compare`, `ir_bisect` (which operation went wrong), `ir_mutation` (would a
wrong instruction be noticed). `kernel_runs` compares the example kernels with their oracles in the same way.

To add an operation, add a row to `ir_rows`; the docstring of `ir_operations` says what a row must promise.
"""
