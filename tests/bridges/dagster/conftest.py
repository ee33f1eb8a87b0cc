"""A Dagster instance in a folder of its own, which sends nothing to anybody."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

# Before any process of Dagster starts.
os.environ["DAGSTER_DISABLE_TELEMETRY"] = "yes"


@pytest.fixture
def dagster_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("dagster")
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    return home


@pytest.fixture
def instance(dagster_home: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.get() as found:
        yield found
