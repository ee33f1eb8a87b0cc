"""One database holds one project: a second is refused before it can touch anything."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from penstock.clock import SystemClock
from penstock.errors import Refused
from penstock.settings import Settings, load_settings
from penstock.store.address import open_end, open_store
from penstock.store.project_name import name_in, rename
from penstock.store.sqlite.backup import restore
from penstock.store.store import Store
from tests.contract.scenes import SQLITE, Place, StoreKind
from tests.contract.test_copying import moved

CLOCK = SystemClock()


def settings_of(folder: Path, name: str, place: Place) -> Settings:
    home = folder / name
    home.mkdir(exist_ok=True)
    store = f"sqlite:{place}" if isinstance(place, Path) else place
    (home / "penstock.yaml").write_text(f"project: {name}\nstore: {store}\n", "utf-8")
    return load_settings(home)


def open_as(folder: Path, name: str, place: Place) -> Store:
    return open_store(settings_of(folder, name, place), CLOCK)


def test_second_project_is_refused_and_told_what_to_do(
    kind: StoreKind, place: Place, tmp_path: Path
) -> None:
    with closing(open_as(tmp_path, "shop", place)) as store:
        store.sources.ensure(["acme.com"])

    with pytest.raises(Refused, match="holds the project 'shop', and this is 'blog'") as refused:
        open_as(tmp_path, "blog", place)

    own = "sqlite:blog.db" if kind is SQLITE else "?schema=blog"
    assert own in refused.value.hint
    assert "penstock db rename" in refused.value.hint
    with closing(open_as(tmp_path, "shop", place)) as store:
        assert [row.key for row in store.sources.all()] == ["acme.com"]


def test_database_without_a_name_takes_that_of_the_first_project(
    kind: StoreKind, place: Place, tmp_path: Path
) -> None:
    kind.open(place, CLOCK).close()
    open_as(tmp_path, "shop", place).close()

    with pytest.raises(Refused):
        open_as(tmp_path, "blog", place)


def test_renamed_project_goes_on_in_its_database(place: Place, tmp_path: Path) -> None:
    open_as(tmp_path, "shop", place).close()
    renamed = settings_of(tmp_path, "store", place)

    with closing(open_end(renamed.store, renamed.root, CLOCK)) as end:
        assert rename(end.db, "store", "ops") == "shop"

    with closing(open_store(renamed, CLOCK)) as store:
        [event] = [each for each in store.journal.events() if each.kind == "db.renamed"]
        assert (event.actor, event.detail) == ("ops", "from shop to store")
    with pytest.raises(Refused, match="'store', and this is 'shop'"):
        open_as(tmp_path, "shop", place)


def test_copy_keeps_the_name_and_spares_a_project_that_has_not_run_yet(
    schema_database: str, tmp_path: Path
) -> None:
    place = tmp_path / "origin.db"
    open_as(tmp_path, "shop", place).close()
    open_as(tmp_path, "blog", schema_database).close()
    with pytest.raises(Refused, match="holds the project 'blog', and this is 'shop'"):
        moved(place, schema_database, CLOCK)

    with closing(open_end(schema_database, tmp_path, CLOCK)) as end:
        rename(end.db, "shop", "ops")
    moved(place, schema_database, CLOCK)

    with closing(open_end(schema_database, tmp_path, CLOCK)) as end:
        assert name_in(end.db) == "shop"


def test_backup_of_another_project_is_not_put_back(tmp_path: Path) -> None:
    file, backup = tmp_path / "blog.db", tmp_path / "shop.db"
    open_as(tmp_path, "shop", backup).close()
    open_as(tmp_path, "blog", file).close()

    with pytest.raises(Refused, match="holds the project 'shop', and this is 'blog'"):
        restore(backup, file, CLOCK, "blog")

    open_as(tmp_path, "blog", file).close()
    restore(backup, file, CLOCK, "shop")
    open_as(tmp_path, "shop", file).close()
