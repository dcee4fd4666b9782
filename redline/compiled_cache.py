# SPDX-License-Identifier: Apache-2.0
"""Where numba may keep what it compiled, when neither the installed package nor the user's cache can be written.

numba refuses to import a cached function without a writable place, as in a container with a read-only package and no
home. Runs before anything imports numba; imports only the standard library and changes nothing that is already set.
"""

from __future__ import annotations

import os
import tempfile

VARIABLE = "NUMBA_CACHE_DIR"


def provide(package: str) -> str | None:
    """Name a folder of this user in the temporary directory if numba would find none; the folder, or None."""
    if (
        os.environ.get(VARIABLE)
        or _writable(os.path.join(package, "encoders", "__pycache__"))
        or _writable(_user_cache())
    ):
        return None
    os.environ[VARIABLE] = os.path.join(tempfile.gettempdir(), f"redline-numba-{os.getuid()}")
    return os.environ[VARIABLE]


def _user_cache() -> str:
    """numba's own second choice: the user's cache folder."""
    return os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")


def _writable(folder: str) -> bool:
    """Whether the folder, or the nearest one above it that exists, can be written."""
    while not os.path.exists(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)
