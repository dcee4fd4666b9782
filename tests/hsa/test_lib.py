# SPDX-License-Identifier: Apache-2.0
"""Finding the HSA runtime, and what its refusals say. No test here needs a GPU or the library."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import pytest

from redline.errors import HsaError
from redline.hsa import Runtime, lib
from redline.hsa.abi import QUEUE_ERROR_CALLBACK, Status, status_text
from redline.hsa.callbacks import guarded
from redline.hsa.lib import Hsa, callback_table
from redline.hsa.prototypes import PROTOTYPES


@pytest.fixture(name="places")
def _places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Look nowhere but in a temporary folder."""
    monkeypatch.setattr(lib, "_places", lambda: [str(tmp_path / lib.LIBRARY_NAME), "libno-such-runtime.so.9"])
    return tmp_path


def test_a_missing_library_is_reported_with_every_place(places: Path) -> None:
    """Where it was looked for, what the loader said, and what to do instead."""
    with pytest.raises(HsaError) as caught:
        lib.load_real_table()
    assert caught.value.code == "RL0901"
    assert f"{places / lib.LIBRARY_NAME}: not there" in caught.value.seen
    assert "libno-such-runtime.so.9: " in caught.value.seen
    assert "cannot open shared object" in caught.value.seen
    assert "sim:gfx1201" in caught.value.do


def test_a_file_that_is_no_library_is_reported_in_the_loaders_words(places: Path) -> None:
    """The next place is still tried."""
    (places / lib.LIBRARY_NAME).write_bytes(b"not an ELF file")
    library, attempts = lib.search_library()
    assert library is None
    assert [attempt.place for attempt in attempts] == [str(places / lib.LIBRARY_NAME), "libno-such-runtime.so.9"]
    assert "file too short" in attempts[0].outcome or "invalid ELF header" in attempts[0].outcome


def test_a_library_without_our_calls_is_named_with_the_first_that_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some other library under that name."""
    libc = find_library("c")
    assert libc is not None
    monkeypatch.setattr(lib, "_places", lambda: [libc])
    with pytest.raises(HsaError, match=r"RL0904 .*libc.*: no symbol hsa_init"):
        lib.load_real_table()


def test_rocm_path_comes_first_then_the_sdk_layout_then_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """$ROCM_PATH and $ROCM_HOME, each once, the two layouts, and last the loader's own search."""
    monkeypatch.delenv("REDLINE_LIBHSA", raising=False)
    monkeypatch.setenv("ROCM_PATH", "/my/rocm")
    monkeypatch.setenv("ROCM_HOME", "/my/rocm")
    assert lib._places() == [
        "/my/rocm/lib/libhsa-runtime64.so.1",
        "/opt/rocm/core/lib/libhsa-runtime64.so.1",
        "/opt/rocm/core-7.14/lib/libhsa-runtime64.so.1",
        "/opt/rocm/lib/libhsa-runtime64.so.1",
        "libhsa-runtime64.so.1",
    ]
    monkeypatch.setenv("ROCM_HOME", "/other")
    assert lib._places()[1] == "/other/lib/libhsa-runtime64.so.1"
    monkeypatch.setenv("ROCM_PATH", "")
    monkeypatch.delenv("ROCM_HOME")
    assert lib._places()[0] == "/opt/rocm/core/lib/libhsa-runtime64.so.1"


def test_a_library_that_the_user_names_is_the_only_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """REDLINE_LIBHSA is used or refused; nothing else is taken in its place."""
    monkeypatch.setenv("REDLINE_LIBHSA", str(tmp_path / "mine.so"))
    monkeypatch.setenv("ROCM_PATH", "/my/rocm")
    with pytest.raises(HsaError, match=r"RL0901 .*mine.so: not there; allowed"):
        lib.load_real_table()


def test_no_device_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """hsa_init's 0x1008 means that /dev/kfd cannot be reached, and the message says in which way."""
    table = _table(hsa_init=lambda: 0x1008)
    monkeypatch.setattr(Path, "exists", lambda self: str(self) != "/dev/kfd")
    with pytest.raises(HsaError, match=r"RL0903 hsa_init: HSA_STATUS_ERROR_OUT_OF_RESOURCES \(0x1008\): no /dev/kfd"):
        Runtime.of_table(table)
    monkeypatch.setattr(Path, "exists", lambda _: True)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(HsaError, match="may not be opened by this user.*join the group"):
        Runtime.of_table(table)
    monkeypatch.setattr(os, "access", lambda *_: True)
    with pytest.raises(HsaError, match="found no usable device.*ROCR_VISIBLE_DEVICES"):
        Runtime.of_table(table)


def test_the_real_runtime_keeps_one_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opened twice and closed twice, it is initialised once and never shut down; a failed start may be retried."""
    calls: list[str] = []
    answers = [0x1008, 0]

    def init() -> int:
        calls.append("init")
        return answers.pop(0)

    def shut_down() -> int:
        calls.append("down")
        return 0

    table = _table(hsa_init=init, hsa_shut_down=shut_down)
    monkeypatch.setattr("redline.hsa.runtime.load_real_table", lambda: table)
    monkeypatch.setattr("redline.hsa.runtime._real", None)
    with pytest.raises(HsaError, match="RL0903"):
        Runtime.real()
    for _ in range(2):
        with Runtime.real() as runtime:
            assert runtime.fault_text() == ""
    assert calls == ["init", "init"]


def test_a_status_becomes_an_error_with_call_name_and_number() -> None:
    """Known statuses by name, unknown ones by number alone; success is silent."""
    hsa = Hsa(_table(hsa_shut_down=lambda: 0x1007))
    hsa.check("hsa_init")
    with pytest.raises(HsaError, match=r"RL0902 hsa_shut_down: HSA_STATUS_ERROR_INVALID_QUEUE \(0x1007\)"):
        hsa.check("hsa_shut_down")
    assert status_text(0x4242) == "unknown status (0x4242)"


def test_a_callback_that_raises_returns_a_value_that_satisfies_nothing() -> None:
    """ctypes would return garbage: a status is HSA_STATUS_ERROR, a signal's value is beyond every wait."""
    errors: list[BaseException] = []

    def fail(*_args: Any) -> int:
        raise KeyError("inside")

    table = callback_table("test", dict.fromkeys(PROTOTYPES, fail), remember=errors.append)
    hsa = Hsa(table)
    assert hsa.call("hsa_init") == Status.HSA_STATUS_ERROR
    assert hsa.call("hsa_signal_load_scacquire", 1) == 2**63 - 1
    assert hsa.call("hsa_queue_load_read_index_scacquire", 1) == 0
    assert hsa.call("hsa_signal_store_screlease", 1, 2) is None
    assert [str(error) for error in errors] == ["'inside'"] * 4
    callback = guarded(QUEUE_ERROR_CALLBACK, fail, errors.append)
    assert callback(1, None, None) is None
    assert len(errors) == 5


def test_no_interrupt_is_lost_in_a_callback() -> None:
    """Ctrl-C in the middle of calls that are Python behind C, also before the callback's first line: it reaches us."""
    hsa = Hsa(_table(hsa_signal_load_scacquire=lambda _signal: 0))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    lost = 0
    for _ in range(100):
        timer = threading.Timer(0.002, signal.raise_signal, [signal.SIGINT])
        deadline = time.monotonic() + 20
        try:
            timer.start()
            while time.monotonic() < deadline:
                for _ in range(1000):
                    hsa.call("hsa_signal_load_scacquire", 1)
            lost += 1
        except KeyboardInterrupt:
            timer.join()
        if lost:
            break
    signal.signal(signal.SIGINT, before)
    assert lost == 0


def test_functions_are_made_from_integer_addresses() -> None:
    """Real and sim tables alike: the address is enough to call, and compiled code may use it."""
    table = _table(hsa_signal_load_scacquire=lambda handle: -handle)
    address = table.addresses["hsa_signal_load_scacquire"]
    assert isinstance(address, int)
    raw = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64)(address)
    assert raw(5) == Hsa(table).call("hsa_signal_load_scacquire", 5) == -5


def _table(**functions: Any) -> lib.RuntimeTable:
    """A table where every other status call succeeds."""

    def nothing(*_args: Any) -> int:
        return 0

    everything = {name: functions.get(name, nothing) for name in PROTOTYPES}
    return callback_table("test", everything, remember=_raise)


def _raise(error: BaseException) -> None:
    raise error
