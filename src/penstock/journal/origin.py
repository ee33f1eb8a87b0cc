"""The origin of an act: by which front end a person acted.

    with acting_from("api"):
        project.sources.pause("acme.com", actor="ann", reason="…")

Every event that the verbs of `app` write has it. Unless a front end says otherwise it is `python`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

CLI = "cli"
PYTHON = "python"
API = "api"
DASHBOARD = "dashboard"
TRIGGER = "trigger"
MCP = "mcp"
# A client of the SQL interface: what it asked for, the leader did.
SQL = "sql"
# What Penstock does by itself: a schedule that is due, and what else the leader does.
SCHEDULE = "schedule"
LEADER = "leader"

_origin: ContextVar[str] = ContextVar("origin", default=PYTHON)


def current_origin() -> str:
    """From where the calling thread or task acts."""
    return _origin.get()


@contextmanager
def acting_from(origin: str) -> Iterator[None]:
    """While this lasts, the acts of this thread or task come from there."""
    token = _origin.set(origin)
    try:
        yield
    finally:
        _origin.reset(token)
