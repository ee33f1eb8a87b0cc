"""Tests of a bridge need its engine, and engines can't share an environment; see `make test-bridges`."""

from __future__ import annotations

from importlib.util import find_spec

ENGINES = [
    engine
    for engine in ("airflow", "dagster", "prefect")
    if find_spec(f"penstock.bridges.{engine}") is not None
]

# tests/bridges/test_engines.py names them.
collect_ignore = [engine for engine in ENGINES if find_spec(engine) is None]
