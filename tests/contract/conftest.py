"""The stores that must keep the contract. A new one is added to the list, and every test runs on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.scenes import POOLED, POSTGRES, SQLITE, Place, StoreKind, World
from tests.postgres.pgbouncer import PgBouncer

STORES = [SQLITE, POSTGRES, POOLED]


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
