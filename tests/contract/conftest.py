"""The stores that must keep the contract. A new one is added to the list, and every test runs on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.scenes import POOLED, POSTGRES, SQLITE, Place, StoreKind, World
from tests.postgres.pgbouncer import PgBouncer

STORES = [SQLITE, POSTGRES, POOLED]
# A pooler could break transactions, locks and connections: these modules meet it in `make test`, the others
# in `make torture` only.
POOLED_ALWAYS = {
    "test_budgets", "test_claims", "test_copying", "test_enqueue", "test_hosts", "test_leading",
    "test_migrations", "test_pacing", "test_runs", "test_turn", "test_workers",
}  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        found = getattr(item, "callspec", None)
        is_pooled = found is not None and found.params.get("kind") is POOLED
        if is_pooled and item.path.stem not in POOLED_ALWAYS:
            item.add_marker(pytest.mark.torture)


@pytest.fixture(params=STORES, ids=[kind.name for kind in STORES])
def kind(request: pytest.FixtureRequest) -> StoreKind:
    found: StoreKind = request.param
    return found


@pytest.fixture
def place(kind: StoreKind, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A file or a database of the test's own."""
    if kind is SQLITE:
        return tmp_path / "penstock.db"
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
