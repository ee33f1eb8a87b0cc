"""What is known beforehand of acts that have no dry run of their own: how things stand now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.counting import count
from penstock.errors import UsageError
from penstock.settings import normalise_source

if TYPE_CHECKING:
    from penstock.app import Project

Given = Mapping[str, str]
Facts = dict[str, Any]
LONGEST_ERROR = 160


def looked_up(project: Project, act: str, given: Given) -> Facts | None:
    """What an act would meet now; None where there is nothing to say."""
    look = LOOKS.get(act)
    return None if look is None else look(project, given)


def _of_run(project: Project, given: Given) -> Facts:
    run = project.runs.get(_number(given, "run"))
    return {
        "run": run.id,
        "source": run.source,
        "state": run.state,
        "open jobs": run.open_jobs,
        "in quarantine": run.quarantined,
    }


def _retried(project: Project, given: Given) -> Facts:
    run = project.runs.get(_number(given, "run"))
    causes = project.runs.causes(run.id, 3)
    return {
        **_of_run(project, given),
        "would queue again": count(run.quarantined, "job"),
        **{f"cause {at}": f"{each.error} ({each.jobs})" for at, each in enumerate(causes, 1)},
    }


def _replayed(project: Project, given: Given) -> Facts:
    pages = project.replays.pages(_number(given, "run"))
    return {**_of_run(project, given), "would replay": count(pages.pages, "stored page")}


def _of_canary(project: Project, given: Given) -> Facts:
    canary = project.canaries.get(_number(given, "canary"))
    saved = sum(run.saved for run in canary.runs if run.arm == "canary")
    return {
        "canary": canary.id,
        "release": canary.release[:12],
        "state now": canary.state,
        "pages it has performed": canary.canary_pages,
        "records it has saved": saved,
    }


def _of_source(project: Project, given: Given) -> Facts:
    if "source" not in given:
        is_held = any(each.source is None for each in project.sources.holds())
        return {"about": "every source of the project", "state now": "held" if is_held else "open"}
    source = project.sources.get(given["source"])
    marks = {"paused": source.paused_at, "held": source.held, "degraded": source.degraded_at}
    state = ", ".join(name for name, is_so in marks.items() if is_so) or "open"
    counted = {name: getattr(source, name) for name in ("queued", "running", "waiting")}
    return {"source": source.key, "state now": state, "schedule": source.schedule, **counted}


def _proposed(project: Project, given: Given) -> Facts:
    key = normalise_source(given.get("source", ""))
    is_known = key in project.settings.sources or key in project.connection.sources.ids()
    return _onboarded(project, given) if is_known else {"source": key, "state now": "unknown"}


def _onboarded(project: Project, given: Given) -> Facts:
    """Where it stands, what it lacks, and what its last trial came to."""
    if "source" not in given:
        raise UsageError("it is about one source: name it", code="bad_parameter")
    seen = project.sources.onboarding(given["source"])
    report: Facts = {"source": seen.source, "state now": seen.state, "owner": seen.owner or "none"}
    if seen.keys:
        report["proposed configuration"] = dict(seen.keys)
    lacks = project.sources.compliance(seen.source).gaps
    report["missing before it may be fetched"] = ", ".join(lacks) or "nothing"
    trial = next(iter(project.sources.trials(seen.source)), None)
    if trial is not None:
        words = (
            f"{count(trial.records, 'record')}, {trial.rejected} rejected, {trial.failed} failed"
        )
        report["last trial"] = f"run {trial.run_id} {trial.state}: {words}"
    return report


def _of_job(project: Project, given: Given) -> Facts:
    job = project.jobs.get(_number(given, "job"))
    return {
        "job": job.id,
        "stage": job.stage,
        "key": job.key,
        "state": job.state,
        "error": _brief(job.error or "") or None,
    }


def _brief(text: str) -> str:
    return text if len(text) <= LONGEST_ERROR else f"{text[: LONGEST_ERROR - 1]}…"


def _of_breaker(project: Project, given: Given) -> Facts:
    name = given.get("name", "")
    found = [each for each in project.breakers.each() if each.name == name]
    state = found[0].state if found else "closed: nothing has failed lately"
    waiting: Facts = {}
    if name in project.settings.sources:
        source = project.sources.get(name)
        waiting = {"jobs that would wait": source.queued + source.waiting}
    return {"of": name, "state now": state, **waiting}


def _of_alert(project: Project, given: Given) -> Facts:
    alert = project.alerts.get(_number(given, "alert"))
    told = sorted({each.route for each in alert.notices})
    return {
        "alert": alert.summary,
        "source": alert.source or "the whole project",
        "state": alert.state,
        "notified routes": ", ".join(told) or "none",
    }


def _of_route(project: Project, given: Given) -> Facts:
    found = [each for each in project.alerts.routes() if each.name == given.get("route")]
    if not found:
        known = ", ".join(each.name for each in project.alerts.routes()) or "none"
        raise UsageError(f"there is no route {given.get('route')!r}", f"routes: {known}")
    return {"route": found[0].name, "by": found[0].kind, "usually when": found[0].when or "always"}


def _of_runbook(project: Project, given: Given) -> Facts:
    state = project.runbooks.state(given.get("runbook", ""), given.get("source"))
    steps = {each.name: each for each in state.steps}
    step = steps.get(given.get("step", ""))
    done = sum(1 for each in state.steps if each.state in ("done", "settled"))
    return {
        "step": None if step is None else f"{step.number}. {step.title}",
        "the fault": "is there" if state.is_raised else "shows no sign",
        "steps done or settled": f"{done} of {len(state.steps)}",
    }


def _of_delivery(project: Project, given: Given) -> Facts:
    wanted = _number(given, "delivery")
    for each in project.hooks.each():
        if each.id == wanted:
            return {"hook": each.hook, "state": each.state, "attempts": each.attempts}
        if each.id < wanted:
            break
    return {}


def _of_signal(project: Project, given: Given) -> Facts:
    name = given.get("name", "")
    raised = project.signals.list(name, limit=1).items if name else []
    return {"signal": name, "raised before": "yes" if raised else "no"}


def _of_token(project: Project, given: Given) -> Facts:
    found = [each for each in project.tokens.each() if each.name == given.get("name")]
    return {"token": found[0].name, "role": found[0].role} if found else {}


def _of_sql(project: Project, given: Given) -> Facts:
    found = project.sql.check()
    return {
        "views now": "none" if found.schema is None else f"in {found.schema}",
        "sources shown": found.sources,
    }


def _number(given: Given, name: str) -> int:
    value = given.get(name, "")
    if not value.isascii() or not value.isdigit() or len(value) > 18:
        raise UsageError(f"{name} is a number", code="bad_parameter")
    return int(value)


def _of_release(project: Project, given: Given) -> Facts:
    running = project.releases.running()
    return {"environment": running.environment, "runs now": running.release or "none"}


LOOKS: dict[str, Callable[[Project, Given], Facts]] = {
    **dict.fromkeys(("runs.pause", "runs.resume", "runs.cancel", "runs.begin"), _of_run),
    "runs.hand_over": _of_run,
    **dict.fromkeys(("runs.continue_from", "replays.commit", "replays.drop"), _of_run),
    "runs.retry": _retried,
    "replays.start": _replayed,
    **dict.fromkeys(("canaries.stop", "canaries.widen", "canaries.end"), _of_canary),
    "shadows.start": _of_source,
    **dict.fromkeys(("sources.pause", "sources.resume", "sources.hold"), _of_source),
    **dict.fromkeys(("sources.unhold", "runs.probe"), _of_source),
    **dict.fromkeys(("cells.place", "cells.move"), _of_source),
    "sources.propose": _proposed,
    **dict.fromkeys(("sources.own", "sources.check", "sources.accept_terms"), _onboarded),
    **dict.fromkeys(("sources.approve", "sources.trial", "sources.activate"), _onboarded),
    **dict.fromkeys(("sources.retire", "sources.legal_hold"), _onboarded),
    "sources.legal_release": _onboarded,
    **dict.fromkeys(("schedules.set_cadence", "schedules.undo_cadence"), _of_source),
    **dict.fromkeys(("jobs.retry", "jobs.cancel", "jobs.hold", "jobs.unhold"), _of_job),
    "quarantine.note": _of_job,
    "releases.approve": _of_release,
    **dict.fromkeys(("breakers.open", "breakers.close"), _of_breaker),
    **dict.fromkeys(("alerts.acknowledge", "alerts.snooze", "alerts.resolve"), _of_alert),
    "alerts.test": _of_route,
    **dict.fromkeys(("runbooks.skip", "runbooks.end"), _of_runbook),
    "hooks.redeliver": _of_delivery,
    "signals.raise_": _of_signal,
    "sql.install": _of_sql,
    "tokens.revoke": _of_token,
}
