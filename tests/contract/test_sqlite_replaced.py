"""A database file that is taken away while it is open: nobody makes an empty one in its place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock import Project
from penstock.errors import StoreReplaced

REPLACED = "was removed or replaced while it was in use"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    (tmp_path / "penstock.yaml").write_text("project: p\n")
    with Project.open(tmp_path) as opened:
        yield opened


def test_who_opens_a_file_that_was_taken_away_is_told_and_makes_no_empty_one(
    project: Project,
) -> None:
    file = project.settings.store_file
    with closing(project.open_store()):
        file.unlink()

        with pytest.raises(StoreReplaced, match=REPLACED):
            project.open_store()
        assert not file.exists()


def test_a_file_that_was_closed_may_be_replaced(project: Project) -> None:
    first = project.open_store()
    first.close()
    project.settings.store_file.unlink()

    project.open_store().close()
    assert project.settings.store_file.exists()
