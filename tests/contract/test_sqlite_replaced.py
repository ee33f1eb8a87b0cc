"""A database file that is taken away while it is open: nobody makes an empty one in its place."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from penstock.clock import SystemClock
from penstock.errors import StoreReplaced
from penstock.store.sqlite.store import SqliteStore

REPLACED = "was removed or replaced while it was in use"


def test_who_opens_a_file_that_was_taken_away_is_told_and_makes_no_empty_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "penstock.db"
    with closing(SqliteStore(path, SystemClock())):
        path.unlink()

        with pytest.raises(StoreReplaced, match=REPLACED):
            SqliteStore(path, SystemClock())
        assert not path.exists()


def test_a_file_that_was_closed_may_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "penstock.db"
    SqliteStore(path, SystemClock()).close()
    path.unlink()

    SqliteStore(path, SystemClock()).close()
    assert path.exists()
