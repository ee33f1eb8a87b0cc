"""The rules on trial: each labelled history is looked at as a leader would, run by run.

Every opening of an alert counts, also of alerts that one message would join. `python -m tests.alert_trial`
writes the figures into docs/alerts.md.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from penstock.alerts.history import Finding, History, ScheduleFacts
from penstock.alerts.judge import judge
from penstock.alerts.lifecycle import Standing, next_step
from penstock.alerts.rules import thresholds_by_rule
from penstock.alerts.run_rules import RULES as RUN_RULES
from penstock.alerts.sample import MOST_RUNS, USUAL_S, is_sampled, plan_of
from tests.labelled import DAY_S, KINDS, Half, Labelled, labelled

QUARTER_S = 90 * DAY_S
# How often a source is looked at that does not run, from one start to the next.
LOOKS = 4
THRESHOLDS = thresholds_by_rule()


@dataclass(frozen=True)
class Opened:
    """An alert that opened, and whether it was the fault: while it lasted, or with the first run after it."""

    rule: str
    at: float
    is_true: bool


@dataclass(frozen=True)
class Figures:
    """Of all openings of alerts, how many were right; of all faults, how many raised one."""

    tried: Sequence[Tried]

    @property
    def faults(self) -> int:
        return sum(each.history.fault is not None for each in self.tried)

    @property
    def found(self) -> int:
        return sum(each.is_found for each in self.tried)

    @property
    def true(self) -> int:
        return sum(len(each.opened) for each in self.tried) - self.false

    @property
    def false(self) -> int:
        return sum(each.false_alerts for each in self.tried)

    @property
    def recall(self) -> float:
        return self.found / self.faults

    @property
    def precision(self) -> float:
        return self.true / (self.true + self.false)

    @property
    def false_per_quarter(self) -> float:
        """False alerts per source and 90 days without a fault."""
        return self.false / (sum(each.healthy_s for each in self.tried) / QUARTER_S)


@dataclass(frozen=True)
class Tried:
    """What the rules made of one history."""

    history: Labelled
    opened: tuple[Opened, ...]

    @property
    def is_found(self) -> bool:
        return any(each.is_true for each in self.opened)

    @property
    def false_alerts(self) -> int:
        return sum(not each.is_true for each in self.opened)

    @property
    def healthy_s(self) -> float:
        """How long nothing was wrong."""
        fault, whole = self.history.fault, self.history.ends_at - self.history.begins_at
        return whole if fault is None else whole - (fault.ended_at - fault.began_at)

    @property
    def false_in_a_quarter(self) -> int:
        """The most false alerts within 90 days."""
        times = [each.at for each in self.opened if not each.is_true]
        return max((sum(0 <= at - first < QUARTER_S for at in times) for first in times), default=0)


def tried(history: Labelled) -> Tried:
    """Look after every run, and while none comes."""
    standing: dict[str, Standing] = {}
    since: dict[str, float] = {}
    opened = []
    for now, has_ended in _looks(history):
        shown = _shown(history, now)
        rules = {rule: by for rule, by in THRESHOLDS.items() if has_ended or rule not in RUN_RULES}
        judgement = judge(shown, rules, now, dict(since))
        silent = {each.rule for each in judgement.silent}
        found = {each.rule: each for each in judgement.findings}
        for rule in {*found, *(standing.keys() & rules.keys())}:
            finding = None if rule in silent else found.get(rule)
            if _moved(rule, finding, standing, since, now, rule not in silent):
                is_true = _is_true(history, now)
                opened += [Opened(rule, now, is_true)]
    return Tried(history, tuple(opened))


def _looks(history: Labelled) -> Iterator[tuple[float, bool]]:
    """When it is looked at, and whether a run has ended since the look before."""
    ends = [run.ended_at for run in history.runs]
    for end, following in zip(ends, [*ends[1:], history.ends_at], strict=True):
        yield end, True
        later = end + 1.5 * history.interval_s
        while later < following:
            yield later, False
            later += history.interval_s / LOOKS


def _shown(history: Labelled, now: float) -> History:
    """As the engine shows it to the rules."""
    last = bisect_right(history.runs, now, key=lambda run: run.ended_at)
    newest = history.runs[max(0, last - MOST_RUNS) : last]
    plan = plan_of([run.started_at for run in newest], now)
    runs = newest[plan.first :]
    whole_from = 0.0
    if plan.share:
        whole_from = runs[0].started_at
        earlier = history.runs[: last - len(runs)]
        runs = (
            *(r for r in earlier if is_sampled(r.run, plan.share) and r.started_at > now - USUAL_S),
            *runs,
        )
    good = [run.ended_at for run in runs if run.outcome in ("completed", "partial")]
    schedule = ScheduleFacts(name="usual", interval_s=history.interval_s)
    return History(
        source=history.name,
        runs=runs,
        whole_from=whole_from,
        schedules=(schedule,),
        last_good_at=good[-1] if good else None,
    )


def _moved(
    rule: str,
    finding: Finding | None,
    standing: dict[str, Standing],
    since: dict[str, float],
    now: float,
    is_judged: bool,
) -> bool:
    """Take the alert of a rule one step on; whether it opened."""
    step = next_step(standing.get(rule), finding, now, is_judged=is_judged)
    if step.verb in ("open", "reopen"):
        standing[rule] = Standing(rule=rule, state="open", severity="high", memory=step.memory)
        since[rule] = now
        return True
    if step.verb == "end":
        standing[rule] = Standing(
            rule=rule, state="resolved", severity="high", resolved_at=now, memory=step.memory
        )
        since.pop(rule)
    elif step.verb in ("note", "remember"):
        standing[rule] = msgspec.structs.replace(standing[rule], memory=step.memory)
    return False


def _is_true(history: Labelled, now: float) -> bool:
    fault = history.fault
    return fault is not None and fault.began_at <= now <= fault.ended_at + history.interval_s


# What the documentation says.

PAGE = Path(__file__).parents[1] / "docs" / "alerts.md"
HEAD = (
    "| history | sources | faults found | alerts | false | false per source and 90 days |\n"
    "|---|---|---|---|---|---|\n"
)


def table(figures: Figures) -> str:
    """One row for each kind of history, and what it comes to."""
    kinds = {kind: [each for each in figures.tried if each.history.kind == kind] for kind in KINDS}
    rows = [_row(kind, Figures(some)) for kind, some in kinds.items()]
    said = f"Recall **{figures.recall:.2f}**, precision **{figures.precision:.2f}**.\n"
    return f"{HEAD}{''.join(rows)}{_row('**all**', figures)}\n{said}"


def _row(name: str, of: Figures) -> str:
    found = f"{of.found} of {of.faults}" if of.faults else "–"
    counts = f"{of.true + of.false} | {of.false} | {of.false_per_quarter:.2f}"
    return f"| {name} | {len(of.tried)} | {found} | {counts} |\n"


def marks(half: Half) -> tuple[str, str]:
    return f"<!-- trial: {half} -->\n\n", f"\n<!-- end of trial: {half} -->"


def trial(half: Half) -> Figures:
    return Figures([tried(each) for each in labelled(half)])


def main() -> None:
    text = PAGE.read_text("utf-8")
    halves: tuple[Half, Half] = ("development", "held out")
    for half in halves:
        first, last = marks(half)
        before, rest = text.split(first)
        text = f"{before}{first}{table(trial(half))}{last}{rest.split(last)[1]}"
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
