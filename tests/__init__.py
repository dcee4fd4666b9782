# SPDX-License-Identifier: Apache-2.0
"""The test suite; `graphs.py`, `devices.py` and `exhaustive.py` are shared by several files."""
