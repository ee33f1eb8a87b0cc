"""What a scene is given, and what it is."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from penstock.counting import count
from penstock.prove.processes import CLOCK
from penstock.prove.scratch import Scratch
from penstock.prove.site import Site
from penstock.prove.verdict import Verdict
from penstock.prove.workplace import Workplace


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a scene is played: a scratch project, a site on loopback, chance, and how long there is."""

    scratch: Scratch
    site: Site
    rng: random.Random
    kills: int
    tell: Callable[[str], None]
    ends_at: float = float("inf")

    def has_time(self) -> bool:
        return CLOCK.monotonic() < self.ends_at

    @property
    def left_s(self) -> float:
        return self.ends_at - CLOCK.monotonic()


@dataclass(frozen=True, slots=True)
class Scene:
    """One kind of fault. `why_not` says why it can't be had here, and is empty where it can.

    `least_s`: it is not begun with less time than this.
    """

    name: str
    title: str
    play: Callable[[Stage], Verdict]
    why_not: Callable[[Stage], str] = lambda _: ""
    least_s: float = 15.0
    # Whether it is played again while there is time.
    is_repeated: bool = True


def look_at(
    place: Workplace, run_id: int, expected: set[str], verdict: Verdict, requests: int
) -> None:
    """Hold a run that has ended against what it must come to."""
    run = place.run(run_id)
    lost, twice, strange = place.record_problems(expected)
    # A record that was saved again, with what it had already, counts as unchanged.
    twice = max(twice, run.updated + run.unchanged)
    verdict.rounds += 1
    verdict.records += len(expected)
    verdict.lost += lost
    verdict.duplicated += twice
    verdict.unfinished += len(expected) - min(len(expected), run.pages_done)
    if run.state != "completed":
        verdict.wrong(f"the run ended {run.state} ({run.end_reason or 'no reason'})")
    if lost:
        verdict.wrong(f"{lost} of {len(expected)} records are lost")
    if twice:
        verdict.wrong(f"{count(twice, 'record')} saved more than once")
    if run.rejected or run.quarantined:
        verdict.wrong(f"{run.rejected} rejected, {run.quarantined} in quarantine")
    verdict.wrong(*strange, *place.problems(), *place.checked())
    if requests:
        verdict.requests += requests
        counted = counted_requests(place, run_id)
        verdict.counted += counted
        if counted < requests:
            verdict.wrong(
                f"the site was asked {count(requests, 'time')}, and the budget counted {counted}"
            )


def counted_requests(place: Workplace, run_id: int) -> int:
    """What the budget of the source has paid for."""
    rows = place.store.budgets.all(run_id)
    return int(sum(row.used for row in rows if row.measure == "requests"))


def asked_in_vain(place: Workplace, asked: int, pages: int, stage: str = "extract") -> list[str]:
    """Whether pages were fetched again without a reason: an attempt that died before it stored the answer."""
    again = sum(job.attempt - 1 for job in place.jobs(stage=stage))
    if asked <= pages + again:
        return []
    return [
        f"{count(asked, 'request')} for {count(pages, 'page')}, and only {count(again, 'attempt')} died"
    ]
