"""Which environments have a database of their own, and which are another configuration on the same one."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import Project
from penstock.errors import Refused

POLICY = "promotion: {live: {after: rehearsal}}\n"


def used(folder: Path, environment: str | None) -> None:
    with Project.open(folder, environment) as project:
        assert project.overview().queued == 0


@pytest.mark.parametrize("first", [None, "next"])
@pytest.mark.parametrize("apart", ["production", "live", "rehearsal", "guarded"])
def test_an_environment_that_is_apart_shares_its_database_with_no_other(
    tmp_path: Path, first: str | None, apart: str
) -> None:
    (tmp_path / "penstock.yaml").write_text(
        f"project: p\nstore: sqlite:p.db\n{POLICY}sources: {{}}\n"
    )
    for name in ("next", "production", "live", "rehearsal", "guarded"):
        overlay = "release: {required: true}\n" if name == "guarded" else "project: p\n"
        (tmp_path / f"penstock.{name}.yaml").write_text(overlay)

    used(tmp_path, first)
    used(tmp_path, "next")
    used(tmp_path, None)
    with pytest.raises(Refused) as caught:
        used(tmp_path, apart)
    assert caught.value.code == "other_environment"


@pytest.mark.parametrize("other", [None, "next", "rehearsal"])
@pytest.mark.parametrize("apart", ["production", "live"])
def test_nothing_else_reaches_the_database_of_an_environment_that_is_apart(
    tmp_path: Path, apart: str, other: str | None
) -> None:
    (tmp_path / "penstock.yaml").write_text(
        f"project: p\nstore: sqlite:p.db\n{POLICY}sources: {{}}\n"
    )
    for name in ("next", "production", "live", "rehearsal"):
        (tmp_path / f"penstock.{name}.yaml").write_text("project: p\n")

    used(tmp_path, apart)
    with pytest.raises(Refused) as caught:
        used(tmp_path, other)
    assert caught.value.code == "other_environment"
