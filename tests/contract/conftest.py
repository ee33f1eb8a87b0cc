"""The stores that must keep the contract. A new one is added to the list, and every test runs on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.scenes import SQLITE, StoreKind, World

STORES = [SQLITE]


@pytest.fixture(params=STORES, ids=[kind.name for kind in STORES])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    kind: StoreKind = request.param
    made = World(kind, tmp_path / "penstock.db")
    yield made
    made.close()
