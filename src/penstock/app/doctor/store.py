"""The database: whether it can be opened, which schema it has, its size, its log, and whether it is sound."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from penstock.app.doctor.findings import Area, size
from penstock.app.project import Project
from penstock.app.views.doctor import CheckupFindingView
from penstock.errors import PenstockError
from penstock.store.schema import Plan, Schema

AREA = Area("store")
LARGE_LOG = 512_000_000


def look(project: Project, is_quick: bool) -> Iterator[CheckupFindingView]:
    settings = project.settings
    if not settings.is_on_postgres and not settings.store_file.exists():
        yield AREA.ok(f"there is no database at {settings.store_name} yet; the first run makes it")
        return
    try:
        with closing(project.open_schema()) as schema:
            yield from _schema(settings.store_name, schema)
            yield from _log(project)
            yield from _soundness(schema, is_quick)
        # Opening it to work says whose project it is, and whether it was copied as a whole.
        if not project.store.plan().pending:
            project.connection.now()
    except PenstockError as error:
        yield AREA.error(error)


def _schema(name: str, schema: Schema) -> Iterator[CheckupFindingView]:
    plan = schema.plan()
    state, newest = plan.state, schema.schema
    if state.contract > newest:
        yield AREA.problem(
            f"{name} has schema {state.number}, this Penstock knows up to {newest}",
            "upgrade Penstock on this host",
        )
    elif not plan.pending:
        yield AREA.ok(f"{name}: schema {state.number}, {size(schema.size_bytes())}")
    elif any(each.contracts for each in plan.pending) and state.number:
        yield AREA.problem(
            _behind(name, plan, newest), "penstock db migrate --plan shows what changes"
        )
    else:
        remedy = "the next command that works on it migrates it; penstock db migrate does it now"
        yield AREA.warning(_behind(name, plan, newest), remedy)


def _behind(name: str, plan: Plan, newest: int) -> str:
    return f"{name} has schema {plan.state.number}, and this Penstock has {newest}"


def _log(project: Project) -> Iterator[CheckupFindingView]:
    """SQLite's log is merged and begun again at each checkpoint, unless somebody reads for ever."""
    settings = project.settings
    if settings.is_on_postgres:
        return
    log = settings.store_file.with_name(f"{settings.store_file.name}-wal")
    try:
        found = log.stat().st_size
    except OSError:
        found = 0
    if found > LARGE_LOG:
        yield AREA.warning(
            f"its log {log.name} has {size(found)}: a process reads an old moment of the database",
            f"find it with `lsof {log}` and end it; the next checkpoint merges the log",
        )
    else:
        yield AREA.ok(f"its log has {size(found)}")


def _soundness(schema: Schema, is_quick: bool) -> Iterator[CheckupFindingView]:
    if is_quick:
        yield AREA.skipped("the database was not read (--quick)")
        return
    problems = schema.problems()
    for problem in problems:
        yield AREA.problem(
            problem, "stop Penstock, keep the file, and restore a backup: penstock db restore FILE"
        )
    if not problems:
        yield AREA.ok("the database is sound; penstock db check compares rows and stored pages too")
