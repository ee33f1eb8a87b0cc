"""Events that an older Penstock wrote as sentences: their data, where it can be derived.

What is derived is rendered again and compared: it is the event's data only if it gives the same sentence.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from penstock.journal.event import Event
from penstock.journal.registry import KINDS, current_kind

_AGAIN = r" \(again in (?P<again_in_s>[\d.]+) s\)"
_HOST = r"(?P<host>[^\s:]+(?::\d+)?): "
_REASON = r"(?:: (?P<reason>.*))?"

_PATTERNS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("job.retry_scheduled", "job.throttled"),
        (rf"(?P<reason>\w+): (?P<error>.*){_AGAIN}", rf"(?P<reason>.*){_AGAIN}"),
    ),
    "job.snoozed": (rf"(?P<reason>.*){_AGAIN}",),
    "job.skipped": (r"done in run (?P<done_in_run>\d+)",),
    "job.cancelled": (r"run (?P<with_run>\d+) was cancelled",),
    "job.quarantined": (r"(?P<reason>[a-z_]+): (?P<error>.*)",),
    "job.due": (r"the hours of (?P<host>\S+) have changed", "due"),
    "quarantine.expired": (r"in quarantine for more than (?P<keep_days>[\d,.]+) days?",),
    "quarantine.closed": (
        r"job (?P<by_job>\d+) of run (?P<by_run>\d+) (?P<outcome>failed|extracted|skipped|succeeded).*",
        r"job (?P<by_job>\d+) of run (?P<by_run>\d+) was (?P<outcome>skipped)",
        r"replay (?P<replay>\d+) was (?P<replay_was>committed|dropped)",
    ),
    "run.jobs_added": (r"(?P<jobs>[\d,]+) jobs?",),
    "run.version_changed": (r"performed with pipeline (?P<version>.*); until now (?P<before>.*)",),
    "run.limit_reached": (r"(?P<stage>.*) has its (?P<most_jobs>[\d,]+) jobs?; .*",),
    "run.completed": (r"the undo of run (?P<undo_of>\d+) is done",),
    "run.counts_mismatch": (
        r"not accounted for: (?P<pages>-?[\d,]+) pages?, (?P<candidates>-?[\d,]+) candidates?",
    ),
    "run.continued": (r"(?P<jobs>[\d,]+) jobs? left of run (?P<of_run>\d+)",),
    "run.committed": (
        r"(?P<added>\d+) added, (?P<changed>\d+) changed, (?P<removed>\d+) removed"
        r"(?:; left alone: (?P<conflicts>\d+) changed by others, (?P<newer>\d+) from later pages)?"
        + _REASON,
    ),
    "run.undo_started": (r"of run (?P<undo_of>\d+)" + _REASON,),
    "run.undone": (
        r"(?P<changed>\d+) brought back, (?P<added>\d+) returned, (?P<removed>\d+) removed"
        r" by run (?P<undo_run>\d+)"
        r"(?:; (?P<changed_later>\d+) changed by later runs are as they were)?" + _REASON,
    ),
    "rejects.redriven": (r"(?P<rejects>[\d,]+) rejects?, (?P<items>[\d,]+) items?",),
    "record.overwritten": (
        r"(?P<records>\d+) of (?P<collection>.*) were last written by (?P<written_by>.*)",
    ),
    "quality.zero_yield": (
        r"nothing came of it; (?P<yielded_before>\d+) of (?P<runs_before>[\d,]+) runs? before it yielded",
    ),
    "quality.anomaly": (
        r"it brought (?P<brought>[\d,]+) records?, where (?P<usual>[\d,]+) are usual",
    ),
    "source.degraded": (
        r"(?P<failed_runs>[\d,]+) runs? in a row failed, the last was run (?P<last_run>\d+)"
        + _REASON,
    ),
    "source.recovered": (r"run (?P<good_run>\d+) went well",),
    "source.concurrency_lowered": (
        r"(?P<jobs>\d+) jobs? at once instead of (?P<before>\d+): (?P<cause>.*)",
    ),
    "source.concurrency_restored": (r"(?P<jobs>[\d,]+) jobs? at once",),
    "cause.escalated": (r"(?P<cause>.*): (?P<failures>[\d,]+) jobs? quarantined; .*",),
    "breaker.opened": (r"(?P<reason>.*); tried again in (?P<again_in_s>\d+) s",),
    "breaker.half-open": (r"tried again after (?P<after_s>\d+) s",),
    "breaker.closed": (r"(?P<reason>.*); it was away for (?P<away_s>\d+) s",),
    **dict.fromkeys(
        ("sla.breached", "sla.restored", "schema.stale", "schema.restored"),
        (r"(?P<rule>[a-z_]+): (?P<breach>.*)",),
    ),
    "checkpoint.rewound": (
        r"(?P<partition>.*?): (?P<before>.*) → (?P<cursor>.*) \((?P<reason>.*)\)",
        r"(?P<partition>.*?): (?P<before>.*) → (?P<cursor>.*)",
    ),
    "checkpoint.refused": (
        r"(?P<partition>.*?): (?P<cursor>.*) is not moved to, (?P<reason>.*?): (?P<stays>.*) stays",
    ),
    **dict.fromkeys(
        ("cadence.proposed", "cadence.changed"),
        (r"(?P<before>\w+) to (?P<cadence>\w+): (?P<reason>.*)",),
    ),
    **dict.fromkeys(
        ("schedule.defined", "schedule.removed"),
        (r"(?P<schedule>.*?), version (?P<version>\d+): (?P<definition>.*)",),
    ),
    "schedule.skipped": (r"(?P<schedule>[^:()]*): run (?P<active_run>\d+) has not ended yet",),
    "schedule.denied": (r"(?P<schedule>[^:]*): (?P<reason>.*)",),
    "schedule.missed": (r"(?P<schedule>.*): (?P<ticks>[\d,]+) ticks? missed",),
    "schedule.replaced": (r"(?P<schedule>.*): run (?P<run>\d+) had not ended",),
    "signal.raised": (r"(?P<signal>.*) \((?P<signal_id>\d+)\)",),
    "hook.delivered": (r"(?P<hook>\S+) \((?P<delivery>\d+)\), (?P<attempts>[\d,]+) attempts?",),
    "hook.failed": (
        r"(?P<hook>\S+) \((?P<delivery>\d+)\), (?P<attempts>[\d,]+) attempts?: (?P<error>.*)",
    ),
    "hook.redelivery_requested": (r"(?P<hook>\S+) \((?P<delivery>\d+)\)" + _REASON,),
    **dict.fromkeys(
        ("leader.elected", "leader.resigned"), (r"(?P<matter>.*), term (?P<term>\d+)",)
    ),
    "db.migrated": (r"(?P<migration>\w+)" + _REASON,),
    "db.copied": (r"from (?P<origin>.*)",),
    "db.restored": (r"(?P<backup>.*)",),
    "db.renamed": (r"from (?P<before>.*) to (?P<name>.*)",),
    **dict.fromkeys(("job.noted", "quarantine.noted"), (r"(?P<text>.*)",)),
}
_COMPILED = {
    kind: [re.compile(each, re.DOTALL) for each in patterns] for kind, patterns in _PATTERNS.items()
}
# The breaker of a host says so at the beginning; that of a source is known by the event's source.
_OF_HOSTS = {
    kind: [re.compile(_HOST + each, re.DOTALL) for each in patterns]
    for kind, patterns in _PATTERNS.items()
    if kind.startswith("breaker.")
}


def data_of(kind: str, sentence: str, *, has_source: bool = True) -> dict[str, Any]:
    """The data of an event that was written as a sentence; `text` where nothing can be derived."""
    kind = current_kind(kind)
    known = KINDS.get(kind)
    if not sentence:
        return {}
    if known is None:
        return {"text": sentence}
    patterns = _COMPILED if has_source else {**_COMPILED, **_OF_HOSTS}
    readings = [_read(known, pattern, sentence) for pattern in patterns.get(kind, ())]
    readings += [_made(known, sentence, {"reason": sentence}), _made(known, sentence, {})]
    return next((_built(event) for event in readings if event is not None), {"text": sentence})


def _read(known: type[Event], pattern: re.Pattern[str], sentence: str) -> Event | None:
    found = pattern.fullmatch(sentence)
    if found is None:
        return None
    numbers = {f.name for f in msgspec.structs.fields(known) if f.type in (int, float)}
    values = {
        name: value.replace(",", "") if name in numbers else value
        for name, value in found.groupdict().items()
        if value is not None
    }
    return _made(known, sentence, values)


def _made(known: type[Event], sentence: str, values: dict[str, str]) -> Event | None:
    """The event with these values, if it gives this sentence."""
    if not set(values) <= set(known.__struct_fields__):
        return None
    try:
        event = msgspec.convert(values, known, strict=False)
    except msgspec.ValidationError:
        return None
    return event if event.sentence() == sentence else None


def _built(event: Event) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(event)
    return data
