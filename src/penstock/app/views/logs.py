"""Lines of logs as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.view import Content, View

if TYPE_CHECKING:
    from penstock.store.logs import LogRow


class LogLineView(View, frozen=True, kw_only=True):
    """A line that a step printed (`stdout`, `stderr`) or logged (`info` and above)."""

    id: int = msgspec.field(name="line")
    at: float
    source: str | None
    run_id: int = msgspec.field(name="run")
    job_id: int = msgspec.field(name="job")
    attempt: int
    level: str
    text: Content[str]


def log_line_view(row: LogRow) -> LogLineView:
    return LogLineView(**msgspec.structs.asdict(row))
