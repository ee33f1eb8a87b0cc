"""The databases that agents are tried on."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.clock import Clock
from penstock.settings import Settings
from penstock.store import address
from penstock.store.postgres.store import PostgresStore


@pytest.fixture
def postgres_on_virtual_time(schema_database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database whose clock is that of the project."""

    def opened(settings: Settings, clock: Clock) -> PostgresStore:
        return PostgresStore(settings.store, clock, time=clock)

    monkeypatch.setattr(address, "_open", opened)
    return schema_database


@pytest.fixture(params=["sqlite", "postgres"])
def either_store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """What `store:` says."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'penstock.db'}"
    return str(request.getfixturevalue("postgres_on_virtual_time"))
