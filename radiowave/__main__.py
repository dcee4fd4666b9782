# SPDX-License-Identifier: Apache-2.0
"""`python -m radiowave` is the command `radiowave`."""

from __future__ import annotations

import sys

from radiowave.cli import main

if __name__ == "__main__":
    sys.exit(main())
