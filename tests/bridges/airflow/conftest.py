"""What the tests of the bridge to Airflow get: Airflow with a database, and DAGs of a project."""

from __future__ import annotations

import pytest

from tests.bridges.airflow.home import migrate, prepare_home

prepare_home()


@pytest.fixture(scope="session", autouse=True)
def _airflow_has_a_database() -> None:
    migrate()
