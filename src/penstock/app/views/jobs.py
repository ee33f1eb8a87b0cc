"""Jobs as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.view import Content, ContentKey, Hidden, Time, View

if TYPE_CHECKING:
    from penstock.gates.budget import BudgetUsage
    from penstock.jobs.retry import RetryClass
    from penstock.store.rows import JobDetail as DetailRow
    from penstock.store.rows import JobRow
    from penstock.store.stories import Story


class JobView(View, frozen=True, kw_only=True):
    """A job, with its state and its last error."""

    id: int = msgspec.field(name="job")
    run_id: int = msgspec.field(name="run")
    source: str
    stage: str
    unit: str
    key: ContentKey[str]
    state: str
    attempt: int
    tries: int
    throttles: int
    deaths: int
    worker: str | None
    at: Time
    due_at: Time | None
    error: Content[str | None]
    kind: str | None = msgspec.field(name="error_kind")


class RetryView(View, frozen=True, kw_only=True):
    """How often a job is tried in all, and how long it waits between tries."""

    name: str
    tries: int
    base_s: float
    cap_s: float
    unknown_tries: int


class BudgetOfJob(View, frozen=True, kw_only=True):
    """A budget that a job counts against; the texts are what people call it, and what is left of it."""

    scope: str
    measure: str
    period: str
    bound: float
    used: float
    left: float
    text: Hidden[str]
    left_text: Hidden[str]


class TermsView(View, frozen=True, kw_only=True):
    """The limits and retries of a job, from its run's plan and the current penstock.yaml."""

    timeout_s: float | None
    retry: RetryView
    budgets: list[BudgetOfJob]


class JobDetail(JobView, frozen=True, kw_only=True):
    """One job in full. `terms` is None if its source or step no longer exists."""

    parent_id: int | None = msgspec.field(name="parent")
    item: Content[str | None]
    traceback: Content[str]
    terms: TermsView | None


class AttemptView(View, frozen=True, kw_only=True):
    """One attempt of a job, as the journal has it; `detail` says why it ended so."""

    attempt: int
    worker: str
    started_at: Time
    ended_at: Time | None
    outcome: str
    detail: Content[str]


class FetchedView(View, frozen=True, kw_only=True):
    """A page that a job fetched."""

    id: int = msgspec.field(name="snapshot")
    url: ContentKey[str]
    status: int
    fetched_at: Time
    hash: str


class ChildrenView(View, frozen=True, kw_only=True):
    """How many jobs of one stage and state a job has enqueued."""

    stage: str
    state: str
    jobs: int


class RecordKey(View, frozen=True, kw_only=True):
    """A record that a job has written."""

    collection: str
    key: ContentKey[str]


class JobTimeline(View, frozen=True, kw_only=True):
    """What became of a job: its attempts, what it fetched, enqueued and wrote, and what enqueued it."""

    attempts: list[AttemptView]
    snapshots: list[FetchedView]
    children: list[ChildrenView]
    records: list[RecordKey]
    parent_id: int | None = msgspec.field(name="parent")


def timeline_view(story: Story) -> JobTimeline:
    asdict = msgspec.structs.asdict
    return JobTimeline(
        attempts=[AttemptView(**asdict(each)) for each in story.attempts],
        snapshots=[FetchedView(**asdict(each)) for each in story.snapshots],
        children=[
            ChildrenView(stage=stage, state=state, jobs=jobs)
            for stage, state, jobs in story.children
        ],
        records=[RecordKey(collection=name, key=key) for name, key in story.records],
        parent_id=story.parent_id,
    )


def job_view(row: JobRow) -> JobView:
    return JobView(**msgspec.structs.asdict(row))


def job_detail(row: JobRow, detail: DetailRow, terms: TermsView | None) -> JobDetail:
    known = {**msgspec.structs.asdict(row), **msgspec.structs.asdict(detail)}
    return JobDetail(**known, terms=terms)


def terms_view(
    timeout_s: float | None, retry: RetryClass, budgets: list[tuple[BudgetUsage, str, str]]
) -> TermsView:
    return TermsView(
        timeout_s=timeout_s,
        retry=RetryView(
            name=retry.name,
            tries=retry.tries,
            base_s=retry.base_s,
            cap_s=retry.cap_s,
            unknown_tries=retry.unknown_tries,
        ),
        budgets=[
            BudgetOfJob(
                scope=each.bound.scope,
                measure=each.bound.measure,
                period=each.bound.period,
                bound=each.bound.amount,
                used=each.used,
                left=each.left,
                text=text,
                left_text=left_text,
            )
            for each, text, left_text in budgets
        ],
    )
