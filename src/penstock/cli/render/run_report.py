"""One run, whole: its two sums, what it cost, what failed and was rejected, and the runs it is linked to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.render.first_errors import tell_first_errors
from penstock.cli.render.run_words import asked_for, kind_of, next_of, result_of
from penstock.cli.render.wording import duration, local_time
from penstock.counting import count

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.runs import (
        CandidatesView,
        LinkView,
        PagesView,
        RunDetail,
        UsageView,
    )
    from penstock.cli.render.output import Output

LATEST = 10
_PAGES = ("extracted", "skipped", "failed", "cancelled")
_CANDIDATES = ("accepted", "rejected", "duplicate", "dropped", "failed")
# Shown where there are any: they are in no sum that came to its end by itself.
_RARE = ("passed", "cancelled", "open")
_SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def tell_run(project: Project, run: RunDetail, out: Output) -> None:
    """All that is known of a run, with the latest events and what can be done next."""
    account = run.account
    out.fields(
        [
            ("run", run.id),
            ("source", run.source),
            ("kind", kind_of(run)),
            ("state", run.state),
            ("because", run.end_reason),
            ("started by", run.actor),
            ("reason", run.reason),
            ("queued", local_time(run.created_at)),
            ("began", local_time(run.started_at)),
            ("ended", local_time(run.finished_at)),
            ("took", duration(run.seconds)),
            ("pipeline", run.pipeline_version),
            *asked_for(run),
            ("pages", pages_line(account.pages, account.is_kept)),
            ("candidates", candidates_line(account.candidates, account.is_kept)),
            ("records", _records(run)),
            ("result", "" if run.replay is None else result_of(run, run.replay, _is_staged(run))),
            ("usage", _usage(run.usage)),
            ("retried", run.counts["retried"] or ""),
            ("throttled", run.counts["throttled"] or ""),
            ("failed by", _listed(run.failures)),
            ("rejected by", _listed(run.rejects)),
            ("made from", _linked(run.made_from)),
            *(("led to", _linked(each)) for each in run.led_to),
        ]
    )
    if run.quarantined:
        out.line()
        out.line("What failed")
        tell_first_errors(project, run.id, out)
    _tell_events(project, run, out)
    _tell_next(run, out)


def pages_line(pages: PagesView, is_kept: bool = True) -> str:
    """`220 discovered = 217 extracted + 3 skipped + 0 failed + 0 cancelled; unaccounted 0`."""
    return _sum(f"{pages.discovered:,} discovered", pages, _PAGES, ("open",), is_kept)


def candidates_line(found: CandidatesView, is_kept: bool = True) -> str:
    return _sum(count(found.candidates, "candidate"), found, _CANDIDATES, _RARE, is_kept)


def _sum(
    left: str,
    found: PagesView | CandidatesView,
    names: tuple[str, ...],
    rare: tuple[str, ...],
    is_kept: bool,
) -> str:
    shown = (*names, *(name for name in rare if getattr(found, name)))
    right = " + ".join(f"{getattr(found, name):,} {name}" for name in shown)
    if not is_kept:
        return f"{left}: {right} (an older Penstock had a hand in it, which kept no sums)"
    return f"{left} = {right}; unaccounted {found.unaccounted:,}"


def _records(run: RunDetail) -> str:
    shown = [
        f"{run.counts[name]:,} {name}"
        for name in ("inserted", "updated", "unchanged")
        if run.counts[name]
    ]
    # What a replay would do to records is done by its commit.
    return ", ".join(shown) + (" (on the stage)" if shown and run.options.is_staged else "")


def _usage(used: UsageView) -> str:
    if not (used.requests or used.bytes or used.seconds or used.money):
        return ""
    size = next((f"{used.bytes / n:.1f} {unit}" for n, unit in _SIZES if used.bytes >= n), "")
    words = [
        count(used.requests, "request"),
        size or count(used.bytes, "byte"),
        duration(used.seconds),
    ]
    return ", ".join([*words, f"{used.money:g} money"] if used.money else words)


def _listed(found: dict[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in found.items())


def _linked(run: LinkView | None) -> str:
    return "" if run is None else f"run {run.id} ({kind_of(run)}, {run.state})"


def _is_staged(run: RunDetail) -> bool:
    return run.replay is not None and run.replay.is_staged


def _tell_events(project: Project, run: RunDetail, out: Output) -> None:
    from penstock.cli.commands.events import COLUMNS, event_line, latest

    events = latest(project, run=run.id, limit=LATEST)
    if events:
        out.line()
        out.table(COLUMNS, (event_line(event) for event in events))


def _tell_next(run: RunDetail, out: Output) -> None:
    hints = []
    if not run.is_ended:
        hints.append(("why not now", f"penstock explain {run.id}"))
    if run.quarantined:
        hints.append(("retry them", f"penstock retry {run.id} --failed"))
    if run.replay is not None:
        hints += next_of(run, run.replay, _is_staged(run))
    if run.rejects:
        hints.append(("what was rejected", f"penstock rejects list --run {run.id}"))
        hints.append(("judge it again", f"penstock rejects redrive --run {run.id}"))
    if hints:
        out.line()
    for what, command in hints:
        out.line(f"{what + ':':<19}{command}")
