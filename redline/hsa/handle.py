# SPDX-License-Identifier: Apache-2.0
"""The base of everything that owns one HSA resource: a context manager that releases it once.

A handle keeps alive what it depends on by holding it (a buffer its agent, an agent its runtime). When the
runtime has been closed first, its resources went with it, and `close()` has nothing left to do.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

from redline.errors import HsaError

if TYPE_CHECKING:
    from redline.hsa.runtime import Runtime


class Handle(ABC):
    """Subclasses set `runtime` and implement `_release`; a constructor that fails calls `abandon`."""

    runtime: Runtime

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.closed = False

    def close(self) -> None:
        """Release the resource. The second call does nothing."""
        if self.closed:
            return
        self.closed = True
        if not self.runtime.closed:
            self._release()

    def abandon(self) -> None:
        """Release while an error is on its way: that one is kept, a second one is not raised."""
        with contextlib.suppress(HsaError):
            self.close()

    @abstractmethod
    def _release(self) -> None:
        """Give the resource back to the runtime."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
