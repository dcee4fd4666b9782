# SPDX-License-Identifier: Apache-2.0
"""Benchmarks that need no GPU: `python -m redline_bench`. Each figure is a ratio against a limit in the same run."""
