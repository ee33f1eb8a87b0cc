"""Rewrite the asserts of all tests once, before the workers start.

pytest rewrites each file when it imports it, and every worker imports every file at about the same moment:
four workers would each do the whole of it, 11 CPU seconds. What is written here they read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

TESTS = Path(__file__).parent


def rewrite_ahead(config: pytest.Config) -> None:
    """Every file of the tests that has changed since, shared out to as many processes as there are cores."""
    files = sorted(TESTS.rglob("*.py"), key=lambda file: file.stat().st_size)
    count = os.cpu_count() or 1
    children = [_forked(config, files[share::count]) for share in range(count)]
    for child in children:
        os.waitpid(child, 0)


def _forked(config: pytest.Config, files: Iterable[Path]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        for file in files:
            _rewrite(config, file)
    finally:
        # A file that could not be rewritten is told by the worker that imports it.
        os._exit(0)


def _rewrite(config: pytest.Config, file: Path) -> None:
    state = config.stash[rewrite.assertstate_key]
    folder = rewrite.get_cache_dir(file)
    kept = folder / (file.stem + rewrite.PYC_TAIL)
    if rewrite.try_makedirs(folder) and rewrite._read_pyc(file, kept, state.trace) is None:
        facts, code = rewrite._rewrite_test(file, config)
        rewrite._write_pyc(state, code, facts, kept)
