"""Labelled histories, watched as the leader watches sources: what opens, and whether it should have."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from statistics import median

from penstock.alerts.history import History, ScheduleFacts
from penstock.alerts.judge import judge
from penstock.alerts.lifecycle import Memory, Standing, next_step
from penstock.alerts.rules import thresholds_by_rule
from tests.labelled import DAY_S, FAULTY, HEALTHY, START, Half, Labelled, labelled

THRESHOLDS = thresholds_by_rule()
# As much as is gathered of a source.
HISTORY_S = 120 * DAY_S
NINETY_DAYS_S = 90 * DAY_S


@dataclass
class Watched:
    """What opened in one history: the rules, and when."""

    of: Labelled
    opened: list[tuple[float, str]] = field(default_factory=list)

    @property
    def true(self) -> list[tuple[float, str]]:
        """Openings while the fault lasted, or with the first run after it."""
        fault = self.of.fault
        if fault is None:
            return []
        until = fault.ended_at + self.of.interval_s
        return [each for each in self.opened if fault.began_at <= each[0] <= until]

    @property
    def false(self) -> list[tuple[float, str]]:
        return [each for each in self.opened if each not in self.true]

    @property
    def false_per_90_days(self) -> float:
        return len(self.false) * NINETY_DAYS_S / (self.of.ends_at - START)

    @property
    def most_false_in_90_days(self) -> int:
        times = [at for at, _ in self.false]
        return max(
            (sum(at <= each < at + NINETY_DAYS_S for each in times) for at in times), default=0
        )

    @property
    def delay_s(self) -> float | None:
        fault = self.of.fault
        return self.true[0][0] - fault.began_at if fault is not None and self.true else None


def watch(history: Labelled) -> Watched:
    """Look after each run, and where none comes, when one is due."""
    watched = Watched(history)
    alerts: dict[str, tuple[Standing, float]] = {}
    for now in _looks(history):
        seen = _seen(history, now)
        standing = {
            rule: since for rule, (each, since) in alerts.items() if each.state != "resolved"
        }
        judgement = judge(seen, THRESHOLDS, now, standing)
        findings = {each.rule: each for each in judgement.findings}
        silent = {each.rule for each in judgement.silent}
        for rule in {*findings, *alerts}:
            before, since = alerts.get(rule, (None, now))
            step = next_step(before, findings.get(rule), now, is_judged=rule not in silent)
            if step.verb in ("open", "reopen"):
                watched.opened.append((now, rule))
                alerts[rule] = _alert(rule, step.memory), findings[rule].since
            elif step.verb == "end":
                alerts[rule] = _alert(rule, step.memory, resolved_at=now), since
            elif before is not None and step.verb in ("remember", "note"):
                alerts[rule] = _alert(rule, step.memory), since
    return watched


def _alert(rule: str, memory: Memory, resolved_at: float | None = None) -> Standing:
    state = "open" if resolved_at is None else "resolved"
    return Standing(rule=rule, state=state, severity="high", resolved_at=resolved_at, memory=memory)  # type: ignore[arg-type]


def _looks(history: Labelled) -> Iterator[float]:
    """Shortly after each run, but once a day at most, and where no run comes, when one is due."""
    ends = [run.ended_at + 60 for run in history.runs]
    due = START
    while due < history.ends_at:
        following = due + max(history.interval_s, DAY_S)
        within = ends[bisect_right(ends, due) : bisect_right(ends, following)]
        yield within[-1] if within else following
        due = following


def _seen(history: Labelled, now: float) -> History:
    ended = bisect_right(history.runs, now, key=lambda run: run.ended_at)
    first = bisect_right(history.runs, now - HISTORY_S, key=lambda run: run.ended_at)
    runs = history.runs[min(first, max(0, ended - 30)) : ended]
    good = [run.ended_at for run in runs if run.outcome in ("completed", "partial")]
    started = bisect_right(history.runs, now, key=lambda run: run.started_at)
    overdue = history.runs[started - 1].started_at + history.interval_s if started else None
    schedule = ScheduleFacts(
        name="",
        interval_s=history.interval_s,
        overdue_since=overdue if overdue is not None and overdue < now - 1800 else None,
    )
    return History(
        source=history.name,
        runs=runs,
        schedules=(schedule,),
        last_good_at=good[-1] if good else None,
    )


@cache
def watch_all(half: Half) -> tuple[Watched, ...]:
    return tuple(watch(each) for each in labelled(half))


@dataclass(frozen=True)
class Figures:
    """What a half of the histories comes to."""

    histories: int
    alerts: int
    precision: float
    recall: float
    false_per_source: float
    most_false: int
    delay_days: float


def figures(watched: Sequence[Watched]) -> Figures:
    faulty = [each for each in watched if each.of.kind in FAULTY]
    healthy = [each for each in watched if each.of.kind in HEALTHY]
    true, alerts = (
        sum(len(each.true) for each in watched),
        sum(len(each.opened) for each in watched),
    )
    delays = [each.delay_s / DAY_S for each in faulty if each.delay_s is not None]
    return Figures(
        len(watched),
        alerts,
        true / alerts if alerts else 1.0,
        sum(bool(each.true) for each in faulty) / len(faulty) if faulty else 1.0,
        sum(each.false_per_90_days for each in healthy) / len(healthy) if healthy else 0.0,
        max((each.most_false_in_90_days for each in healthy), default=0),
        median(delays) if delays else 0.0,
    )
