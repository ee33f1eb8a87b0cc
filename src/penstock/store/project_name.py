"""Whose database it is: a database, or a schema of one, holds one project and never two.

Two projects in one place would replace each other's schedules and take each other's jobs.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import Refused
from penstock.journal.service_events import DbRenamed
from penstock.store.database import Database, storable_text
from penstock.store.ledger import Ledger


def claim_for(db: Database, project: str, place: str, another: str) -> None:
    """Name an unnamed database after the project; refuse one that holds another project.

    `another` is an address where the project could have a place of its own.
    """
    found = db.value("project_name") or _name(db, storable_text(project))
    if found != storable_text(project):
        raise Refused(
            f"{place} holds the project {found!r}, and this is {project!r}",
            f"give it its own place, such as `store: {another}`; for the same project under a new "
            f"name: penstock db rename; under its old name: `project: {found}` in penstock.yaml",
        )


def _name(db: Database, project: str) -> str:
    with db.writing() as now:
        db.do("name_project_if_unnamed", project=project, now=now)
    return str(db.value("project_name"))


def claim_environment(
    db: Database, environment: str, place: str, is_apart: Callable[[str], bool]
) -> None:
    """Note in a new database which environment it is of; refuse another one if either `is_apart`.

    What `staging` is meant for must not reach the data of `production` because an overlay lacks `store:`.
    An environment that is not apart may be another configuration on the same data.
    """
    found = db.value("project_environment")
    if found is None:
        with db.writing():
            db.do("name_environment_if_unnamed", environment=environment)
        found = db.value("project_environment")
    if found != environment and (is_apart(str(found)) or is_apart(environment)):
        raise Refused(
            f"{place} belongs to the environment {found}, and this is {environment}",
            f"say --env {found} if you mean it, or give {environment} its own `store:` in "
            f"penstock.{environment}.yaml; if the database moves to {environment}: penstock db rename",
            code="other_environment",
        )


def name_in(db: Database) -> str | None:
    """The name of the project that a database holds; None if nobody has worked on it yet."""
    found = db.value("project_name")
    return None if found is None else str(found)


def names_in(db: Database) -> tuple[str | None, str | None]:
    """The name of the project, and the environment that it is in there."""
    environment = db.value("project_environment")
    return name_in(db), None if environment is None else str(environment)


def rename(
    db: Database, name: str, actor: str, reason: str = "", environment: str | None = None
) -> str | None:
    """Let the database hold the project of this name from now on; answers with the name it had.

    With `environment`, it belongs to this one from now on.
    """
    with db.writing() as now:
        before, environment_before = names_in(db)
        db.do("rename_project", project=storable_text(name), now=now)
        environment = environment or environment_before
        db.do("set_environment", environment=environment)
        ledger = Ledger(db, now)
        ledger.journal(
            DbRenamed(before, name, reason, environment_before or "", environment or ""),
            actor=actor,
        )
        ledger.write()
    return before
