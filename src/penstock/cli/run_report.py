"""One run, whole: its two sums, what it cost, what failed and was rejected, and the runs it is linked to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from penstock.cli.first_errors import tell_first_errors
from penstock.cli.run_words import asked_for, kind_of, next_of, result_of
from penstock.cli.wording import duration, local_time
from penstock.counting import count

if TYPE_CHECKING:
    from penstock.cli.output import Output
    from penstock.jobs.account import Account, CandidateSum, PageSum
    from penstock.project import Project
    from penstock.store.replays import ReplayRow
    from penstock.store.rows import RunRow

LATEST = 10
_PAGES = ("extracted", "skipped", "failed", "cancelled")
_CANDIDATES = ("accepted", "rejected", "duplicate", "dropped", "failed")
# Shown where there are any: they are in no sum that came to its end by itself.
_RARE = ("passed", "cancelled", "open")
_SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def run_report(project: Project, row: RunRow, now: float) -> dict[str, Any]:
    """All that is known of a run, as programs read it."""
    from penstock.cli.shapes import run_shape

    store = project.store
    account = store.account(row)
    made_from = _made_from(project, row)
    return {
        **run_shape(row, now),
        "end_reason": row.end_reason,
        "options": msgspec.to_builtins(row.options),
        "replay": _replay_shape(project, row),
        "account": account_shape(account),
        "usage": {name: getattr(row, name) for name in ("requests", "bytes", "seconds", "money")},
        "failures": store.failures_by_kind(row.id),
        "first_errors": [msgspec.to_builtins(each) for each in store.failures_by_cause(row.id)],
        "rejects": store.rejects_by_code(row.id),
        "made_from": None if made_from is None else _link(made_from),
        "led_to": [_link(each) for each in store.runs_made_of(row.id)],
    }


def account_shape(account: Account) -> dict[str, Any]:
    return {
        "pages": _sum_shape(account.pages),
        "candidates": _sum_shape(account.candidates),
        "is_kept": account.is_kept,
    }


def _sum_shape(found: PageSum | CandidateSum) -> dict[str, int]:
    return {**msgspec.to_builtins(found), "unaccounted": found.unaccounted}


def tell_run(project: Project, row: RunRow, now: float, out: Output) -> None:
    """The same for people, with the latest events and what can be done next."""
    report = run_report(project, row, now)
    account = project.store.account(row)
    made_from, led_to = _made_from(project, row), project.store.runs_made_of(row.id)
    out.fields(
        [
            ("run", row.id),
            ("source", row.source),
            ("kind", kind_of(row)),
            ("state", row.state),
            ("because", row.end_reason),
            ("started by", row.actor),
            ("reason", row.reason),
            ("queued", local_time(row.created_at)),
            ("began", local_time(row.started_at)),
            ("ended", local_time(row.finished_at)),
            ("took", duration(report["seconds"])),
            ("pipeline", row.pipeline_version),
            *asked_for(row),
            ("pages", pages_line(account.pages, account.is_kept)),
            ("candidates", candidates_line(account.candidates, account.is_kept)),
            ("records", _records(row)),
            ("result", result_of(row, *_replay(project, row))),
            ("usage", _usage(row)),
            ("retried", row.retried or ""),
            ("throttled", row.throttled or ""),
            ("failed by", _listed(report["failures"])),
            ("rejected by", _listed(report["rejects"])),
            ("made from", _linked(made_from)),
            *(("led to", _linked(each)) for each in led_to),
        ]
    )
    if row.quarantined:
        out.line()
        out.line("What failed")
        tell_first_errors(project, row.id, out)
    _tell_events(project, row, out)
    _tell_next(row, report, next_of(row, *_replay(project, row)), out)


def pages_line(pages: PageSum, is_kept: bool = True) -> str:
    """`220 discovered = 217 extracted + 3 skipped + 0 failed + 0 cancelled; unaccounted 0`."""
    return _sum(f"{pages.discovered:,} discovered", pages, _PAGES, ("open",), is_kept)


def candidates_line(found: CandidateSum, is_kept: bool = True) -> str:
    return _sum(count(found.candidates, "candidate"), found, _CANDIDATES, _RARE, is_kept)


def _sum(
    left: str,
    found: PageSum | CandidateSum,
    names: tuple[str, ...],
    rare: tuple[str, ...],
    is_kept: bool,
) -> str:
    shown = (*names, *(name for name in rare if getattr(found, name)))
    right = " + ".join(f"{getattr(found, name):,} {name}" for name in shown)
    if not is_kept:
        return f"{left}: {right} (an older Penstock had a hand in it, which kept no sums)"
    return f"{left} = {right}; unaccounted {found.unaccounted:,}"


def _records(row: RunRow) -> str:
    shown = [
        f"{getattr(row, name):,} {name}"
        for name in ("inserted", "updated", "unchanged")
        if getattr(row, name)
    ]
    # What a replay would do to records is done by its commit.
    return ", ".join(shown) + (" (on the stage)" if shown and row.options.is_staged else "")


def _usage(row: RunRow) -> str:
    if not (row.requests or row.bytes or row.seconds or row.money):
        return ""
    size = next((f"{row.bytes / n:.1f} {unit}" for n, unit in _SIZES if row.bytes >= n), "")
    words = [
        count(row.requests, "request"),
        size or count(row.bytes, "byte"),
        duration(row.seconds),
    ]
    return ", ".join([*words, f"{row.money:g} money"] if row.money else words)


def _listed(found: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in found.items())


def _link(row: RunRow) -> dict[str, Any]:
    return {
        "run": row.id,
        "kind": row.kind,
        "is_undo": row.options.is_undo,
        "state": row.state,
    }


def _linked(row: RunRow | None) -> str:
    return "" if row is None else f"run {row.id} ({kind_of(row)}, {row.state})"


def _made_from(project: Project, row: RunRow) -> RunRow | None:
    return None if row.of_run_id is None else project.store.run(row.of_run_id)


def _replay(project: Project, row: RunRow) -> tuple[ReplayRow, bool]:
    """What became of what it has staged, and whether some of it is staged still."""
    return project.store.replay_state(row.id), project.store.has_staged(row.id)


def _replay_shape(project: Project, row: RunRow) -> dict[str, Any] | None:
    if not (row.options.is_staged or row.options.is_undo):
        return None
    found, is_staged = _replay(project, row)
    counts = {name: getattr(found, name) for name in ("added", "changed", "removed")}
    return {"state": found.state, "is_staged": is_staged, **counts}


def _tell_events(project: Project, row: RunRow, out: Output) -> None:
    from penstock.cli.events import COLUMNS, event_line

    events = project.store.events(run_id=row.id, limit=LATEST)
    if events:
        out.line()
        out.table(COLUMNS, (event_line(event) for event in events))


def _tell_next(
    row: RunRow, report: dict[str, Any], decisions: list[tuple[str, str]], out: Output
) -> None:
    hints = []
    if not row.is_ended:
        hints.append(("why not now", f"penstock explain {row.id}"))
    if row.quarantined:
        hints.append(("send it back", f"penstock retry {row.id} --failed"))
    hints += decisions
    if report["rejects"]:
        hints.append(("what was rejected", f"penstock rejects list --run {row.id}"))
        hints.append(("judge it again", f"penstock rejects redrive --run {row.id}"))
    if hints:
        out.line()
    for what, command in hints:
        out.line(f"{what + ':':<19}{command}")
