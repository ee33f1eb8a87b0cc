"""The overview: what needs a person, what is going on, what is late, and what comes next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.counting import count
from penstock.web.dashboard.figures import backlog_chart, runs_chart
from penstock.web.dashboard.page import Visit

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.alerts import AlertView
    from penstock.app.views.status import StatusView

# How many of each kind of thing are listed; the pages of their own have all.
SHOWN = 12


class Way(NamedTuple):
    """An act that helps: its name in the table of acts, what its button says, and what it acts on."""

    act: str
    label: str
    target: str | int | None


class Concern(NamedTuple):
    """Something that needs a person: how bad it is, what it is, and what to do about it."""

    state: str
    text: str
    link: str
    detail: str
    since: float | None
    ways: tuple[Way, ...]


def read(visit: Visit) -> dict[str, Any]:
    project = visit.project
    status = project.status(outlook=False)
    alerts = project.alerts.list(limit=SHOWN).items
    concerns = [*_alerted(alerts), *concerns_of(project, status)]
    return {
        "status": status,
        "alerts": alerts,
        "slots": sum(each.slots for each in status.workers if each.is_alive),
        "working": sum(each.running for each in status.workers if each.is_alive),
        "concerns": concerns[:SHOWN],
        "more_concerns": max(0, len(concerns) - SHOWN),
        "late": [each for each in status.next_runs if each.is_overdue],
        "coming": [each for each in status.next_runs if not each.is_overdue][:SHOWN],
        "runs_chart": runs_chart(project, status.now),
        "backlog_chart": backlog_chart(project, status.now),
    }


def _alerted(alerts: Sequence[AlertView]) -> Iterator[Concern]:
    """Alerts that nobody takes care of yet."""
    for alert in alerts:
        if alert.state == "open":
            way, page = Way("alerts.acknowledge", "Acknowledge", alert.id), f"/alerts/{alert.id}"
            text = f"{alert.source}: {alert.summary}" if alert.source else alert.summary
            yield Concern(alert.severity, text, page, alert.cause, alert.opened_at, (way,))


def concerns_of(project: Project, status: StatusView) -> Iterator[Concern]:
    """What needs a person, the worst first."""
    yield from _unworked(project, status)
    yield from _other_release(status)
    yield from _ended_badly(project, status)
    yield from _stopped(status)
    yield from _undecided(status)
    yield from _not_loaded(status)


def _unworked(project: Project, status: StatusView) -> Iterator[Concern]:
    waiting, cell = status.overview.queued, project.settings.cell
    if waiting and not any(each.is_alive for each in status.workers):
        text = f"No workers are running; {count(waiting, 'job')} queued"
        chosen = f" --cell {cell.name}" if cell is not None and cell.number else ""
        yield Concern("dead", text, "/workers", f"Start one: penstock{chosen} up", None, ())


def _other_release(status: StatusView) -> Iterator[Concern]:
    """Workers that do not run the release of the environment."""
    others = status.release.others
    if others:
        workers = f"{count(len(others), 'worker')} of {status.release.environment}"
        text = f"{workers} with something else than its release"
        detail = f"on {', '.join(sorted({each.host for each in others}))}"
        yield Concern("waiting", text, "/releases", detail, status.release.since, ())


def _ended_badly(project: Project, status: StatusView) -> Iterator[Concern]:
    """Sources whose last run failed or ended in part, the newest first."""
    bad = [each for each in status.sources if each.last_state in ("failed", "partial")]
    bad.sort(key=lambda each: (each.last_state != "failed", -(each.last_finished_at or 0.0)))
    for source in bad[: 2 * SHOWN]:
        run = source.last_run_id or 0
        causes = project.runs.causes(run, 1)
        detail = causes[0].error if causes else ""
        kept = f", {count(source.quarantined, 'job')} in quarantine" if source.quarantined else ""
        yield Concern(
            source.last_state or "failed",
            f"{source.key}: run {run} {source.last_state}{kept}",
            f"/runs/{run}",
            detail,
            source.last_finished_at,
            (_way_out(run, source.quarantined),),
        )


def _way_out(run: int, quarantined: int) -> Way:
    if quarantined:
        return Way("runs.retry", "Retry failed", run)
    return Way("runs.continue_from", "Continue", run)


def _stopped(status: StatusView) -> Iterator[Concern]:
    for hold in status.holds:
        scope = hold.source or "the whole project"
        why = _why(hold.actor, hold.reason)
        way = Way("sources.unhold", "End the hold", hold.source)
        yield Concern("held", f"{scope} is held", _page_of(hold.source), why, hold.at, (way,))
    for source in status.sources:
        way = Way("sources.resume", "Resume", source.key)
        page = _page_of(source.key)
        if source.degraded_at is not None:
            text = f"{source.key} is degraded: only probes run"
            ways = (Way("runs.probe", "Probe", source.key), way)
            yield Concern("degraded", text, page, source.degraded_reason, source.degraded_at, ways)
        elif source.paused_at is not None:
            text, since = f"{source.key} is paused", source.paused_at
            yield Concern("paused", text, page, source.pause_reason, since, (way,))
    for breaker in status.breakers:
        text = f"The breaker of {breaker.name} is {breaker.state}"
        way = Way("breakers.close", "Close", breaker.name)
        page = _page_of(breaker.name) if breaker.kind == "source" else "/workers"
        yield Concern(breaker.state, text, page, breaker.reason, breaker.since, (way,))
    for budget in status.exhausted_budgets:
        yield Concern("exhausted", budget.text, "/budgets", "", budget.resets_at, ())
    for breach in status.breaches:
        text, page = f"{breach.source}: {breach.rule} is broken", _page_of(breach.source)
        yield Concern("late", text, page, breach.detail, breach.since, ())


def _undecided(status: StatusView) -> Iterator[Concern]:
    for each in status.undecided:
        text = f"{each.source}: the {each.kind} of run {each.of_run_id} waits for a decision"
        page = f"/runs/{each.run_id}"
        ways = (
            Way("replays.commit", "Commit", each.run_id),
            Way("replays.drop", "Drop", each.run_id),
        )
        yield Concern("waiting", text, page, "", each.finished_at, ways)


def _not_loaded(status: StatusView) -> Iterator[Concern]:
    for each in status.not_loaded:
        what = each.source if each.stage is None else f"{each.source}, stage {each.stage}"
        detail = "Restart penstock up: its workers were started before this code"
        text = f"No worker has loaded {what}"
        yield Concern("waiting", text, "/workers", detail, None, ())


def _page_of(source: str | None) -> str:
    from penstock.web.dashboard.templates import piece

    return "/sources" if source is None else f"/sources/{piece(source)}"


def _why(actor: str, reason: str) -> str:
    return f"by {actor}: {reason}" if reason else f"by {actor}"
