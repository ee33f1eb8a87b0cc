"""The SQL interface as front ends see it: where its views are, and what clients have asked for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.views.view import Content, Time, View

if TYPE_CHECKING:
    from penstock.store.inbox import RequestRow
    from penstock.store.sql_answer import SqlAnswer


class SqlInterfaceView(View, frozen=True, kw_only=True):
    """Where the views are; `schema` is null if there are none. `sources` is how many sources they show."""

    schema: str | None
    sources: int
    problems: list[str]
    notes: list[str]

    @property
    def is_sound(self) -> bool:
        return self.schema is not None and not self.problems


class SqlRequestView(View, frozen=True, kw_only=True):
    """What a client has asked for: `open`, `blocked` or `taken`, then `done`, `refused` or `cancelled`."""

    id: int = msgspec.field(name="request")
    verb: str
    state: str
    source: str
    run: int | None
    asked_at: Time
    due_at: Time | None
    actor: str
    reason: str
    ended_at: Time | None
    error: Content[str]


class SqlAnswerView(View, frozen=True, kw_only=True):
    """The rows of a statement, each as long as `columns`; `has_more`: there were others.

    It shows what the user in `store:` may read, private sources and all.
    """

    columns: list[str]
    rows: list[list[Any]]
    has_more: bool


def answer_view(answer: SqlAnswer) -> SqlAnswerView:
    rows = [[_plain(value) for value in row] for row in answer.rows]
    return SqlAnswerView(columns=[*answer.columns], rows=rows, has_more=answer.has_more)


def _plain(value: object) -> object:
    """As JSON has it: what has no form there is its text."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return value if isinstance(value, bool | int | float | str | list | dict | None) else str(value)


def request_view(row: RequestRow) -> SqlRequestView:
    return SqlRequestView(
        id=row.id,
        verb=row.verb,
        state=row.state,
        source=row.source,
        run=row.run_id,
        asked_at=row.at,
        due_at=row.due_at,
        actor=row.actor,
        reason=row.reason,
        ended_at=row.ended_at,
        error=row.error,
    )
