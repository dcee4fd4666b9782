# SPDX-License-Identifier: Apache-2.0
"""What numba keeps of our compiled functions: a place that can be written, and no file that cannot be read.

numba refuses to import a cached function without a writable place, as in a container with a read-only package and no
home; and it ends with EOFError or worse where a file was cut short by a full disk or an unfinished copy. Does not
notice other bytes of the right length inside a file. Runs before anything imports numba; imports only the standard
library and changes nothing that is already set.
"""

from __future__ import annotations

import glob
import io
import os
import pickle
import tempfile
from contextlib import suppress
from typing import Any

VARIABLE = "NUMBA_CACHE_DIR"
# numba's names: <module>.<function>-<line>.py<version>.nbi is an index, with .<number>.nbc its data.
COMPILED = ("encoders/emit", "hsa/null_calls", "hsa/publish", "sim/fma", "stabbing", "sweep")


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


def remove_damaged(package: str) -> list[str]:
    """Delete the cached files of our own functions that cannot be read; numba then compiles them again. Their names."""
    damaged = [file for file in _files(package) if not _readable(file)]
    for file in damaged:
        with suppress(OSError):  # numba does not use a folder that it cannot write
            os.unlink(file)
    return damaged


def _files(package: str) -> list[str]:
    """Everything that numba may have kept for us, in each of its three places."""
    found = []
    for name in COMPILED:
        folder, module = os.path.split(os.path.join(package, name))
        places = [os.path.join(glob.escape(folder), "__pycache__")]
        chosen = os.environ.get(VARIABLE)
        for cache in (chosen, os.path.join(_user_cache(), "numba")):
            if cache:
                # numba names a folder there after the source's own; a hash of the whole path follows.
                places.append(os.path.join(glob.escape(cache), f"{glob.escape(os.path.basename(folder))}_*"))
        for place in places:
            found += glob.glob(os.path.join(place, f"{module}.*.nb[ic]"))
    return found


def _readable(file: str) -> bool:
    """Whether the file is whole pickles: two in an index (numba's version, then the rest), one in data."""
    try:
        with open(file, "rb") as opened:
            content = io.BytesIO(opened.read())
        for _ in range(2 if file.endswith(".nbi") else 1):
            _Skeleton(content).load()
    except FileNotFoundError:
        return True  # another process was faster
    except Exception:  # damaged pickles raise nearly anything
        return False
    return not content.read()


class _Anything:
    """Stands for every class and function that a pickle names."""

    def __init__(self, *_arguments: object, **_named: object) -> None:
        pass

    def __setstate__(self, _state: object) -> None:
        pass


class _Skeleton(pickle.Unpickler):
    """Reads the structure of a pickle, imports nothing and runs nothing of it."""

    def find_class(self, _module: str, _name: str) -> Any:
        return _Anything
