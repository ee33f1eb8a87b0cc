"""What every test gets."""

from __future__ import annotations

import compileall
import gc
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

import penstock
from tests.order import arranged
from tests.postgres.workspace import roomy_folder
from tests.rewriting import rewrite_ahead

# A shell starts what runs in its background without Ctrl-C, and our processes would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Each process that may fetch reads all authorities of the system, twice: 50 ms, a thousand times. No test
# goes out to the network, so one is enough. Nobody has its key.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("only_authority.pem"))

pytest_plugins = ["tests.clocked", "tests.postgres.fixtures"]

# Without a deadline: a busy machine is no counterexample.
settings.register_profile("house", deadline=None, print_blob=True)
settings.load_profile("house")


def pytest_configure(config: pytest.Config) -> None:
    """Compile Penstock once: the tests start it a thousand times, and have it write no bytecode."""
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(Path(penstock.__file__).parent, quiet=1)
        _keep_files_in_memory()
        if config.getoption("numprocesses", None):
            rewrite_ahead(config)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = arranged(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def pytest_collection_finish() -> None:
    """Twelve thousand collected tests are no garbage: to look through them takes 0.2 s, each time."""
    gc.collect()
    gc.freeze()


def _keep_files_in_memory() -> None:
    """Where there is room: SQLite waits for the disk at each commit, and no test outlives a power cut."""
    place = roomy_folder()
    if not os.statvfs(place).f_flag & os.ST_NOEXEC:  # some tests start what they have written
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(place))


@pytest.fixture(autouse=True)
def _no_environment_of_the_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PENSTOCK_ENV in the shell must not choose an overlay for the tests' projects."""
    monkeypatch.delenv("PENSTOCK_ENV", raising=False)


@pytest.fixture(autouse=True)
def _steps_of_this_test_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many projects of tests have a module of this name, and Python remembers the first it has seen.

    By its bytecode it would take a module that a test writes anew, at the same length and within the same
    second, for the one that was there before.
    """
    sys.modules.pop("steps", None)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
