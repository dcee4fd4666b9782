# SPDX-License-Identifier: Apache-2.0
"""Settings of the whole test suite: repeatable examples, and a skip counts as a failure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import redline as rl

# A registry of kernels: imported by its test under one name; as doctest modules its files would register twice.
collect_ignore_glob = ["sim/clang_corpus/*"]

# The disk is shared with whatever else runs here; only the number of examples bounds a test, never the clock.
settings.register_profile(
    "default",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("prove", parent=settings.get_profile("default"), max_examples=600)
settings.load_profile("default")

# Kernels built by the tests are cached apart from the user's.
os.environ["XDG_CACHE_HOME"] = str(Path(__file__).parent.parent / ".cache" / "tests")


@pytest.fixture(scope="module")
def device() -> Iterator[rl.Device]:
    """One software device for the file; every test must leave it usable."""
    with rl.open("sim:gfx1201") as opened:
        yield opened


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name every skip: a test that did not run proved nothing."""
    for report in terminalreporter.stats.get("skipped", []):
        terminalreporter.write_line(f"skipped, which counts as a failure: {report.nodeid}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a session with skips."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
