# SPDX-License-Identifier: Apache-2.0
"""C callbacks that cannot raise, and a Ctrl-C that cannot get lost in one.

ctypes gives the caller garbage when a callback raises, prints the error and forgets it. Here errors are handed on and
the caller gets a value that stands for failure. Python runs signal handlers in the main thread between any two
instructions, so also before a callback's first line, where it can catch nothing; such an interrupt is taken from
ctypes' own report of it, `sys.unraisablehook`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from redline.hsa.abi import Status

#: What a signal handler raised, such as Ctrl-C's KeyboardInterrupt, while a callback ran; `Hsa.call` raises it once C
#: has returned. Of the main thread alone, for there signal handlers run.
interrupts: list[BaseException] = []

_MARK = "a callback of redline's"


class _Entry:
    """What C calls."""

    def __init__(self, function: Callable[..., Any], remember: Callable[[BaseException], None], on_error: Any) -> None:
        self._function, self._remember, self._on_error = function, remember, on_error

    def __repr__(self) -> str:
        return f"<{_MARK}: {self._function!r}>"

    def __call__(self, *args: Any) -> Any:
        try:
            return self._function(*args)
        except KeyboardInterrupt as interrupt:
            interrupts.append(interrupt)
        except BaseException as error:
            self._remember(error)
        return self._on_error


def guarded(
    prototype: Any,
    function: Callable[..., Any],
    remember: Callable[[BaseException], None],
    on_error: int = Status.HSA_STATUS_ERROR,
) -> Any:
    """A C callback that cannot raise: ctypes would return garbage to the caller.

    What the function raises is handed to `remember`, and the caller gets `on_error` where a result is due.
    """
    return prototype(_Entry(function, remember, None if prototype._restype_ is None else on_error))


def _report(report: Any, next_hook: Callable[[Any], Any] = sys.unraisablehook) -> None:
    """Python's hook for errors that nobody can catch: keeps those that got past an `_Entry`, passes the others on.

    Only a signal handler can have raised them. Until 3.12 `object` is the callback, later the message has its name.
    """
    ours = isinstance(report.object, _Entry) or _MARK in (report.err_msg or "")
    if ours and report.exc_value is not None:
        interrupts.append(report.exc_value)
    else:
        next_hook(report)


sys.unraisablehook = _report
