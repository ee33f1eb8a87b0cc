"""Whose database it is: a database, or a schema of one, holds one project and never two.

Two projects in one place would replace each other's schedules and take each other's jobs.
"""

from __future__ import annotations

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


def name_in(db: Database) -> str | None:
    """The name of the project that a database holds; None if nobody has worked on it yet."""
    found = db.value("project_name")
    return None if found is None else str(found)


def rename(db: Database, name: str, actor: str, reason: str = "") -> str | None:
    """Let the database hold the project of this name from now on; answers with the name it had."""
    with db.writing() as now:
        before = name_in(db)
        db.do("rename_project", project=storable_text(name), now=now)
        ledger = Ledger(db, now)
        ledger.journal(DbRenamed(before, name, reason), actor=actor)
        ledger.write()
    return before
