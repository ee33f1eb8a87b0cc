"""Jobs as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.view import Time, View

if TYPE_CHECKING:
    from penstock.store.rows import JobRow


class JobView(View, frozen=True, kw_only=True):
    """A job: where it stands, and why it failed last."""

    id: int = msgspec.field(name="job")
    run_id: int = msgspec.field(name="run")
    source: str
    stage: str
    unit: str
    key: str
    state: str
    attempt: int
    tries: int
    throttles: int
    deaths: int
    worker: str | None
    at: Time
    due_at: Time | None
    error: str | None
    kind: str | None = msgspec.field(name="error_kind")


def job_view(row: JobRow) -> JobView:
    return JobView(**msgspec.structs.asdict(row))
