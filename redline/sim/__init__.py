# SPDX-License-Identifier: Apache-2.0
"""The software device: a GPU below the HSA table that knows nothing but the bytes in memory.

Three parts, each replaceable by another:

- the HSA table (`runtime.py`): agents, pools, signals, queues, executables, loader, over one arena of memory
  (`memory.py`; `arena.py`, `gaps.py` and `allocations.py` are its address space, its free ranges and its table);
- the packet reader (`aql*.py`, `kernel_dispatch.py`, `descriptor.py`; `packets.py`, `transfers.py`, `waits.py`,
  `families.py`): ring, AQL packets, kernel descriptors and PM4 words, with tables of its own;
- the back end (`executor.py`): runs a `Dispatch` from its machine code. `launch.py` starts waves, `code.py` and
  `compiler.py` turn LLVM's text into steps, `scheduler.py` runs them over all waves at once; `salu*.py`, `smem.py`,
  `vmem*.py`, `flat.py`, `lds.py`, `control.py` and `valu*.py` are the instructions, `elements.py` what a lane moves to
  and from memory, `floats.py`, `fma.py` and `division.py` numbers.

Imports nothing of graphs, plans, programs or encoders: it is their judge. For correctness, never for timing.
"""
