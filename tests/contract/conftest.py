"""The stores that must keep the contract. A new one is added to the list, and every test runs on it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.store.sqlite.store import SqliteStore
from penstock.testing import VirtualClock
from tests.contract.scenes import POOLED, POSTGRES, SQLITE, Place, StoreKind, World
from tests.contract.schedule_bench import Bench
from tests.postgres.pgbouncer import PgBouncer

STORES = [SQLITE, POSTGRES, POOLED]
# A pooler could break transactions, locks and connections: these modules meet it in `make test`, the others
# in `make torture` only.
POOLED_ALWAYS = {
    "test_budgets", "test_claims", "test_copying", "test_enqueue", "test_hosts", "test_leading",
    "test_migrations", "test_pacing", "test_runs", "test_turn", "test_workers",
}  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test of the contract on every store; `make test` makes none that it would leave out."""
    names_its_own = hasattr(metafunc.module, "kind") or any(
        mark.args[0] == "kind" for mark in metafunc.definition.iter_markers("parametrize")
    )
    if "kind" not in metafunc.fixturenames or names_its_own:
        return
    stores = STORES if _meets_pooler(metafunc) else STORES[:-1]
    metafunc.parametrize("kind", stores, ids=[kind.name for kind in stores], indirect=True)


def _meets_pooler(metafunc: pytest.Metafunc) -> bool:
    is_quick = metafunc.config.getoption("markexpr") == "not torture"
    return not is_quick or metafunc.definition.path.stem in POOLED_ALWAYS


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        found = getattr(item, "callspec", None)
        is_pooled = found is not None and found.params.get("kind") is POOLED
        if is_pooled and item.path.stem not in POOLED_ALWAYS:
            item.add_marker(pytest.mark.torture)


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> StoreKind:
    found: StoreKind = request.param
    return found


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the schema and nothing in it: all migrations take twenty times what a copy takes."""
    made = tmp_path_factory.mktemp("template") / "penstock.db"
    SqliteStore(made, VirtualClock()).close()
    return made


@pytest.fixture
def place(kind: StoreKind, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A file or a database of the test's own, each with the schema that the store has made once."""
    if kind is SQLITE:
        template: Path = request.getfixturevalue("sqlite_template")
        return Path(shutil.copy(template, tmp_path / "penstock.db"))
    url: str = request.getfixturevalue("schema_database")
    if kind is POOLED:
        pooler: PgBouncer = request.getfixturevalue("pgbouncer")
        return pooler.through(url)
    return url


@pytest.fixture
def world(kind: StoreKind, place: Place) -> Iterator[World]:
    made = World(kind, place)
    yield made
    made.close()


@pytest.fixture
def bench(world: World, tmp_path: Path) -> Callable[..., Bench]:
    """A scheduler with these schedules of acme.com, and with these other sources."""

    def make(schedule: Any = None, **sources: Any) -> Bench:
        folder = tmp_path / "project"
        folder.mkdir(exist_ok=True)
        wanted = {"acme.com": {"schedule": schedule}} if schedule else {}
        return Bench(world, folder, {**wanted, **sources})

    return make
