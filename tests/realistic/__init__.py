# SPDX-License-Identifier: Apache-2.0
"""Three graphs as programs have them, with their fences worked out by hand before any planner saw them.

`decode.py` (one token of a 28-layer transformer), `cg.py` (one iteration of conjugate gradients) and `vcycle.py` (one
five-level multigrid V-cycle) each hold a `record` function and the expectation with its reasoning, launch by launch.
`tables.py` prints the tables of `docs/fences.md`. To add a graph: write its file in the same shape, reasoning first,
and list it in `tables.py`. An expectation changes only with the error in its reasoning named beside it.
"""
