"""Clients of the SQL interface.

In a file by apsw: two copies of SQLite in one process take each other's locks away, and the standard library
has one of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import psycopg

from penstock import Project
from penstock.gates.capacity import Capacity
from penstock.jobs.effects import Effects
from penstock.jobs.job import JobState, NewJob
from penstock.jobs.outcome import Settlement
from tests.contract.scenes import Place

STEPS = """
from penstock import Pipeline

mapper = Pipeline("mapper")
validator = Pipeline("validator")
for pipeline in (mapper, validator):

    @pipeline.step(unit="run")
    async def look(ctx):
        pass

    @pipeline.step(after="look", unit="page", key="url")
    async def read(page, ctx):
        pass
"""
SOURCES = {
    "acme.com": ("mapper", {"site_url": "https://www.acme.com/", "organization_id": "org-1"}),
    "acme.com/check": ("validator", {"site_url": "https://acme.com", "organization_id": "org-1"}),
    "beta.com": ("mapper", {"organization_id": "org-2", "organization_name": "Beta Ltd"}),
    "gamma.com": ("mapper", {}),
}
# What a client of either database says.
TURNS = 20
ERRORS = (apsw.Error, psycopg.Error)


def write_site_agents(folder: Path, place: Place, **more: Any) -> Path:
    """A project of site agents over a store of the contract."""
    (folder / "steps.py").write_text(STEPS)
    store = f"sqlite:{place}" if isinstance(place, Path) else place
    sources = {
        key: {"pipeline": f"steps:{pipeline}", "params": params}
        for key, (pipeline, params) in SOURCES.items()
    }
    settings = {"project": "agents", "store": store, "sources": sources, **more}
    (folder / "penstock.yaml").write_text(json.dumps(settings))
    return folder


class Client:
    """A program that knows SQL and nothing of Penstock."""

    def __init__(self, place: Place, *, role: str = "") -> None:
        self._is_file = isinstance(place, Path)
        self._connection: Any
        if isinstance(place, Path):
            self._connection = apsw.Connection(str(place))
        else:
            self._connection = psycopg.connect(place, autocommit=True)
            if role:
                self._connection.execute(f"SET ROLE {role}".encode())

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        with self._one_transaction():
            return [tuple(row) for row in self._connection.execute(text).fetchall()]

    def do(self, text: str) -> None:
        with self._one_transaction():
            self._connection.execute(text)

    @contextmanager
    def _one_transaction(self) -> Iterator[None]:
        """Behind PgBouncer, what a statement sets holds for its own transaction alone."""
        if self._is_file:
            yield
            return
        with self._connection.transaction():
            self._connection.execute("SET LOCAL search_path = penstock_sql, public")
            yield

    def close(self) -> None:
        self._connection.close()


@contextmanager
def client_of(place: Place, role: str = "") -> Iterator[Client]:
    found = Client(place, role=role)
    try:
        yield found
    finally:
        found.close()


def settle(project: Project, state: JobState = JobState.SUCCEEDED, **about: Any) -> int:
    """The next job ends like this; answers with its run."""
    store = project.connection
    # A turn leaves alone what it can't lock at once, as a server's own upkeep may have it for a moment.
    turns = (store.turn("w", [], Capacity(1), project.limits()).claimed for _ in range(TURNS))
    [job] = next(claimed for claimed in turns if claimed)
    end = Settlement(job.id, job.attempt, state, **about)
    store.turn("w", [end], Capacity(0), project.limits())
    return job.run_id


def look(project: Project, *urls: str) -> int:
    """The next first job finds these pages."""
    children = [NewJob("read", url, json.dumps({"url": url}).encode(), 5) for url in urls]
    return settle(project, effects=Effects(children=children))


def fail(project: Project, error: str = "TimeoutError: no answer in 30 s") -> int:
    return settle(project, JobState.QUARANTINED, spends_try=True, reason="transient", error=error)


def a_failed_run(project: Project, source: str) -> int:
    """A run that has ended partial or failed, with one page in quarantine and one that was read."""
    run_id = make(project, source, "https://acme.com/1", "https://acme.com/2")
    fail(project)
    settle(project)
    return run_id


def make(project: Project, source: str, *urls: str) -> int:
    """A run of this source whose first job has found these pages; no other run may have a job to start."""
    run_id = project.run(source)
    assert look(project, *urls) == run_id
    return run_id
