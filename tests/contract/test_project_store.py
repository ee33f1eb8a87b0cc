"""The database of a project as a whole: its verbs work where the project's store can't be opened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock import Project
from penstock.cli.remedies import hint_of
from penstock.errors import PenstockError, Refused, StoreCorrupt, UsageError
from tests.contract.scenes import PLAIN_STEPS, Place


@pytest.fixture
def folder(tmp_path: Path, place: Place) -> Path:
    (tmp_path / "steps.py").write_text(PLAIN_STEPS)
    call(tmp_path, "shop", place)
    with Project.open(tmp_path) as project:
        project.run("acme.com")
    return tmp_path


def call(folder: Path, name: str, place: Place) -> None:
    """Write a configuration in which the project has this name."""
    settings = {
        "project": name,
        "store": f"sqlite:{place}" if isinstance(place, Path) else place,
        "sources": {"acme.com": {"pipeline": "steps:plain"}},
    }
    (folder / "penstock.yaml").write_text(json.dumps(settings))


def journaled(project: Project, kind: str) -> list[tuple[str, str]]:
    events = project.connection.journal.events(after_id=0, limit=1000)
    return [(event.actor, event.detail) for event in events if event.kind == kind]


def refusal(act: object) -> PenstockError:
    with pytest.raises(PenstockError) as refused:
        act()  # type: ignore[operator]
    return refused.value


def test_a_database_that_no_verb_can_open_is_looked_at_and_renamed(
    folder: Path, place: Place
) -> None:
    call(folder, "market", place)
    with Project.open(folder) as project:
        with pytest.raises(Refused, match="holds the project 'shop'"):
            project.runs.list()

        assert project.store.plan().is_empty
        assert project.store.view().bytes > 0
        planned = project.store.rename(dry_run=True)
        assert (planned.before, planned.project) == ("shop", "market")
        assert project.store.rename(dry_run=True).before == "shop", "it was only asked about"

        project.store.rename(actor="ops", reason="new owner")
        assert [run.source for run in project.runs.list().items] == ["acme.com"]
        assert journaled(project, "db.renamed") == [("ops", "from shop to market: new owner")]


def test_a_migration_with_nothing_to_do_says_so_and_changes_nothing(folder: Path) -> None:
    with Project.open(folder) as project:
        plan = project.store.plan()
        assert (plan.schema, plan.pending, plan.leftovers) == (plan.known, [], [])
        done = project.store.migrate()
        assert (done.schema, done.applied, done.dropped) == (plan.known, [], [])
        assert project.store.view().schema == plan.known


def test_what_only_one_kind_of_database_has_is_refused_on_the_other(
    folder: Path, place: Place
) -> None:
    with Project.open(folder) as project:
        if isinstance(place, Path):
            assert refusal(lambda: project.store.grants("worker")).code == "store_is_a_file"
            return
        refused = refusal(lambda: project.store.backup(folder / "copy.db"))
        assert refused.code == "store_on_server"
        assert "penstock db copy" in hint_of(refused)
        assert any("GRANT" in each for each in project.store.grants("worker"))


def test_a_damaged_file_is_named_and_replaced_by_its_backup(folder: Path, place: Place) -> None:
    if not isinstance(place, Path):
        pytest.skip("a server's files are its own")
    copy, parts = folder / "copy.db", list[float]()
    with Project.open(folder) as project:
        made = project.store.backup(copy, on_progress=parts.append)
        assert (made.bytes, parts[-1]) == (copy.stat().st_size, 1.0)
        refused = refusal(lambda: project.store.backup(copy))
        assert (refused.code, hint_of(refused)) == ("file_exists", "--yes replaces it")
    place.write_bytes(b"no database" * 1000)

    with Project.open(folder) as project:
        damage = refusal(project.store.check)
        assert isinstance(damage, StoreCorrupt)
        assert damage.remedy is not None
        assert damage.remedy.verb == "store.restore"
        assert refusal(lambda: project.store.restore(folder / "none.db")).code == "no_file"
        assert not project.store.restore(copy, dry_run=True).is_done
        assert place.read_bytes().startswith(b"no database"), "it was only asked about"

        kept = project.store.restore(copy, actor="ops", reason="bad disk").kept
        assert kept is not None
        assert place.with_name(kept).read_bytes().startswith(b"no database")
        assert project.store.check().is_sound
        assert journaled(project, "db.restored") == [("ops", "copy.db: bad disk")]


def test_a_copy_needs_two_addresses_of_different_kinds(folder: Path, place: Place) -> None:
    with Project.open(folder) as project:
        odd = refusal(lambda: project.store.copy("mysql://there"))
        assert (type(odd), odd.code) == (UsageError, "bad_address")
        if isinstance(place, Path):
            refused = refusal(lambda: project.store.copy("sqlite:other.db"))
            assert (refused.code, refused.remedy and refused.remedy.verb) == (
                "both_are_files",
                "store.backup",
            )
