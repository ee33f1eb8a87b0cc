"""The dashboard's pages with millions of finished jobs behind them: how long the server takes for each.

Some thousand jobs are worked off for real, by the supervisor and worker that `penstock run` starts. Their
rows, and their lines of the journal, are then copied until there are as many as asked for. Measured is the
whole answer as a client on this machine gets it.
"""

from __future__ import annotations

import asyncio
import re
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psycopg
from starlette.routing import Route

from bench import projects
from bench.browsers import processor_seconds, watching
from bench.projects import SQLITE, nothing, project_in, span
from penstock import Project
from penstock.web.access import Access
from penstock.web.application import application
from penstock.web.dashboard import ROUTES
from penstock.web.listener import Listener
from penstock.web.settings import WebSettings

# Rows of a job, and of what hangs on it: the columns of each table that name the job, a line of the journal,
# something that must differ, and a time.
Tables = dict[str, dict[str, str]]
TABLES: Tables = {
    "job": {"id": "job", "key": "key", "at": "time"},
    "job_item": {"job_id": "job"},
    "job_key": {"job_id": "job", "key": "key"},
    "event": {"id": "line", "job_id": "job", "at": "time"},
}
PARAMETER = re.compile(r"\{(\w+)(:\w+)?\}")
WARM_UP = 2


def pages(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The median time of every page in ms, under its path, and that of the slowest."""
    with project_in(folder, nothing(size["sources"]), size.get("store", SQLITE)) as project:
        runs = [project.run(key) for key in project.settings.sources]
        worked_off = min(size["jobs"], 10 * size["sources"])
        projects.enqueue(project.connection, runs, worked_off, 10_000)
        project.runs.finish(runs, tell=print)
        copy_jobs(project, size["jobs"] // worked_off - 1)
        found = asyncio.run(_timed(project, size["looks"]))
    return {"p50_ms": max(found.values()), "points": found}


def copy_jobs(project: Project, times: int) -> None:
    """Copy every job so many times, with keys of their own."""
    if project.settings.is_on_postgres:
        with (
            psycopg.connect(project.settings.store, autocommit=True) as connection,
            _without_indexes(connection, TABLES),
        ):
            _copy(connection, TABLES, "penstock.", times)
    else:
        tables = {name: which for name, which in TABLES.items() if name != "job_key"}
        _copy(project.connection._db.connection, tables, "", times)


@contextmanager
def _without_indexes(connection: psycopg.Connection, tables: Tables) -> Iterator[None]:
    """Without their indexes tables fill in minutes, with them in hours; each is built again at the end."""
    names = ", ".join(f"'penstock.{name}'::regclass" for name in tables)
    keys = connection.execute(f"""
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE conrelid IN ({names}) AND contype IN ('p', 'u')
    """).fetchall()
    others = connection.execute(f"""
        SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index
        WHERE indrelid IN ({names}) AND NOT indexrelid IN (SELECT conindid FROM pg_constraint)
    """).fetchall()
    connection.execute("SET synchronous_commit = off")
    connection.execute("SET maintenance_work_mem = '1GB'")
    for table, key, _ in keys:
        connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {key}")
    for index, _ in others:
        connection.execute(f"DROP INDEX {index}")
    yield
    for table, key, definition in keys:
        connection.execute(f"ALTER TABLE {table} ADD CONSTRAINT {key} {definition}")
    for _, definition in others:
        connection.execute(definition)
    connection.execute("VACUUM ANALYZE")


def _copy(connection: Any, tables: Tables, schema: str, times: int) -> None:
    def one(query: str) -> float:
        found: float = next(iter(connection.execute(query)))[0]
        return found

    steps = {
        "job": one(f"SELECT max(id) FROM {schema}job"),
        "line": one(f"SELECT max(id) FROM {schema}event"),
        "time": one(f"SELECT max(at) - min(at) + 1 FROM {schema}event"),
    }
    statements = []
    for table, which in tables.items():
        # The rows to copy, apart: the table itself grows, and may have no index meanwhile.
        connection.execute(
            f"CREATE TEMPORARY TABLE {table}_copied AS SELECT * FROM {schema}{table} "
            f"WHERE {next(name for name, role in which.items() if role == 'job')} IS NOT NULL"
        )
        columns = _columns(connection, table, bool(schema))
        statements.append(_copying(schema + table, f"{table}_copied", columns, which, steps))
    for number in range(1, times + 1):
        for statement in statements:
            connection.execute(statement.replace("NUMBER", str(number)))
    connection.execute("ANALYZE")


def _columns(connection: Any, table: str, is_shared: bool) -> list[str]:
    query = (
        "SELECT column_name FROM information_schema.columns "
        f"WHERE table_schema = 'penstock' AND table_name = '{table}'"
        if is_shared
        else f"SELECT name FROM pragma_table_info('{table}')"
    )
    return [name for (name,) in connection.execute(query)]


def _copying(
    table: str, copied: str, columns: list[str], which: dict[str, str], steps: dict[str, float]
) -> str:
    made = {name: name for name in columns}
    for name, role in which.items():
        made[name] = (
            f"{name} || '#' || NUMBER" if role == "key" else f"{name} + NUMBER * {steps[role]}"
        )
    return (
        f"INSERT INTO {table} ({', '.join(made)}) SELECT {', '.join(made.values())} FROM {copied}"
    )


async def _timed(project: Project, looks: int) -> dict[str, float]:
    found = {}
    async with _browser(project) as (browser, origin):
        for path in paths(project):
            times = [await _took_ms(browser, origin + path) for _ in range(WARM_UP + looks)]
            found[path] = statistics.median(times[WARM_UP:])
    return found


async def _took_ms(browser: aiohttp.ClientSession, url: str) -> float:
    began = time.perf_counter()
    async with browser.get(url, headers={"Accept": "text/html"}) as answer:
        text = await answer.text()
    if answer.status != 200:
        raise RuntimeError(f"{url} answered {answer.status}: {text[:500]}")
    return (time.perf_counter() - began) * 1000


def paths(project: Project) -> Iterator[str]:
    """Every page that can be opened without knowing more than a job, its run and its source.

    The job is one of the middle, so that as much happened before it as after it.
    """
    [newest] = project.journal.list(kind="job.succeeded", limit=1).items
    job = project.jobs.get(max(1, (newest.job_id or 0) // 2))
    known = {"source": job.source, "run": str(job.run_id), "job": str(job.id)}
    for route in ROUTES:
        if not isinstance(route, Route) or "GET" not in (route.methods or ()):
            continue
        wanted = {name for name, _ in PARAMETER.findall(route.path)}
        if wanted <= known.keys() and not f"{route.path}?".startswith(NEED_MORE):
            query = "?q=source-7" if route.path == "/search" else ""
            yield PARAMETER.sub(lambda name: known[name[1]], route.path) + query
    # Few of them, or none, among millions of others.
    for query in ("kind=run", "kind=job.quarantined", f"run={job.run_id}&kind=run"):
        yield f"/events?{query}"


# They show one thing that their query names, or databases that this project does not have.
NEED_MORE = ("/record?", "/quarantine/jobs?", "/cells")


@asynccontextmanager
async def _browser(project: Project) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    """A browser that is logged in at the real server, and the server's address."""
    settings = WebSettings(port=0)
    access = Access(settings, "bench")
    listener = Listener(application(project, settings, access), settings, print)
    is_listening = asyncio.Event()

    def begin(port: int) -> None:
        access.listens_at(port)
        is_listening.set()

    listener.on_listening = begin
    serving = asyncio.create_task(listener.serve())
    await is_listening.wait()
    try:
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as browser:
            async with browser.get(access.new_link()) as answer:
                answer.raise_for_status()
            yield browser, access.settings.address
    finally:
        listener.stop()
        await serving


def watched(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Work off no-op jobs while so many browsers have the overview open."""
    with project_in(folder, nothing(size["sources"]), size.get("store", SQLITE)) as project:
        runs = [project.run(key) for key in project.settings.sources]
        projects.enqueue(project.connection, runs, size["jobs"], size["chunk"])
        with watching(folder, size["browsers"]) as web:
            before, began = processor_seconds(web), time.perf_counter()
            project.runs.finish(runs, tell=print)
            used = processor_seconds(web) - before
            web_ms_per_s = 1000 * used / (time.perf_counter() - began)
        seconds, done = span(project, runs)
    return {"seconds": seconds, "done": done - len(runs), "web_ms_per_s": web_ms_per_s}
