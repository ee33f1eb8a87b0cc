"""What each rule finds, and when it stays silent."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from penstock.alerts.history import (
    BreakerFacts,
    BudgetFacts,
    DeadWorker,
    DriftFacts,
    Finding,
    GivenUp,
    GivenUpTask,
    History,
    HourFigures,
    Judgement,
    ProjectHistory,
    RouteFacts,
    RunFigures,
    ScheduleFacts,
    SiteFacts,
    StoreFacts,
)
from penstock.alerts.judge import judge, judge_project
from penstock.alerts.rules import RULES, thresholds_by_rule
from penstock.alerts.sample import MOST_RUNS, is_sampled, plan_of

HOUR = 3600.0
DAY = 24 * HOUR
# A Monday.
START = 1_767_571_200.0
NIGHTLY = (ScheduleFacts(name="nightly", interval_s=DAY),)


def run(number: int, **changes: Any) -> RunFigures:
    at = START + number * DAY
    usual = {
        "jobs": 210,
        "failed": 2,
        "new": 5,
        "unchanged": 195 + number % 7,
        "rejected": 4,
        "duplicates": 6,
        "quality": 0.9,
    }
    values = usual | {"run": number, "started_at": at, "ended_at": at + 600} | changes
    return RunFigures(**{"outcome": "completed", **values})


def history(*last: dict[str, Any], days: int = 30, **facts: Any) -> History:
    """A month of steady nights, and then these."""
    runs = [run(number) for number in range(days)]
    runs += [run(days + number, **each) for number, each in enumerate(last)]
    usual = {"source": "acme.com", "runs": tuple(runs), "last_good_at": runs[-1].ended_at}
    return History(**{**usual, "schedules": NIGHTLY, **facts})


def judged(of: History, standing: dict[str, float] | None = None, **off: Any) -> Judgement:
    return judge(of, thresholds_by_rule(off), of.runs[-1].ended_at + 60, standing or {})


def rules(judgement: Judgement) -> list[str]:
    return [each.rule for each in judgement.findings]


NOTHING = {"new": 0, "unchanged": 0, "quality": None, "rejected": 0, "duplicates": 0}


def test_a_steady_source_raises_nothing() -> None:
    assert judged(history()) == Judgement()


@pytest.mark.parametrize(
    ("bad", "rule", "words"),
    [
        (NOTHING, "zero-yield", "2 runs in a row yielded nothing; usually 203 records per run"),
        ({"new": 0, "unchanged": 60}, "zero-yield", "records per run fell to 60 (last run)"),
        ({"failed": 80}, "extraction-failures", "failed jobs rose to 38 % (last run); usually"),
        ({"rejected": 200}, "rejection-rise", "rejected records rose to 50 %"),
        ({"duplicates": 900}, "duplicate-explosion", "duplicates rose to 82 %"),
        ({"quality": 0.6}, "quality-drop", "fell to 0.60 (last run); usually 0.90"),
    ],
)
def test_a_sharp_change_is_found_after_two_runs_and_not_after_one(
    bad: dict[str, Any], rule: str, words: str
) -> None:
    assert rules(judged(history(bad))) == []
    [found] = judged(history(bad, bad)).findings
    assert found.rule == rule
    assert words in found.summary
    assert found.run == 30
    assert found.since == START + 30 * DAY
    assert found.numbers[0].baseline is not None
    assert found.cause.kind == "site-change"


@pytest.mark.parametrize("end", [0, 1])
def test_an_alert_ends_well_inside_of_its_limit_and_not_at_it(end: int) -> None:
    """A share of failures around the limit of 15 % above the usual 1 % does not flap."""
    bad, nearly, good = {"failed": 60}, {"failed": 28}, {"failed": 2}
    standing = {"extraction-failures": START + 30 * DAY}
    assert rules(judged(history(bad, bad, nearly, nearly))) == []
    assert rules(judged(history(bad, bad, nearly, nearly), standing)) == ["extraction-failures"]
    last = ((nearly, good), (good, good))[end]
    expected = (["extraction-failures"], [])[end]
    assert rules(judged(history(bad, bad, *last), standing)) == expected


def test_what_is_open_does_not_become_usual_within_a_month_but_afterwards() -> None:
    standing = {"zero-yield": START + 30 * DAY}
    half = {"new": 0, "unchanged": 60}
    assert rules(judged(history(*[half] * 25), standing)) == ["zero-yield"]
    assert rules(judged(history(*[half] * 80), standing)) == []


def test_a_slow_decline_is_found_that_no_single_run_shows() -> None:
    chance = random.Random(7)
    noisy = [{"unchanged": int(300 * chance.lognormvariate(0, 0.4))} for _ in range(60)]
    fading = [
        {"unchanged": int(300 * 0.97**day * chance.lognormvariate(0, 0.4))} for day in range(45)
    ]
    assert rules(judged(history(*noisy, days=1))) == []
    each = [judged(history(*noisy, *fading[:day], days=1)).findings for day in range(45)]
    found = [day for day, findings in enumerate(each) if findings]
    assert found
    assert 0.97 ** found[0] < 0.6
    [first] = each[found[0]]
    assert first.rule == "zero-yield"
    assert "slowly" in first.summary


def test_a_holiday_that_is_like_a_sunday_is_no_fault_before_its_third_day() -> None:
    sunday = {"new": 0, "unchanged": 20}
    weeks = [sunday if day % 7 in (5, 6) else {} for day in range(42)]
    assert rules(judged(history(*weeks, sunday, sunday, days=0))) == []
    assert rules(judged(history(*weeks, *[sunday] * 3, days=0))) == ["zero-yield"]
    nothing = {"new": 0, "unchanged": 1}
    assert rules(judged(history(*weeks, nothing, nothing, days=0))) == ["zero-yield"]


def test_a_source_that_runs_every_quarter_of_an_hour_is_judged_by_hours_and_by_a_sample() -> None:
    """More than 8,000 runs in three months: the newest are seen, and some of the others."""
    runs = [
        run(number, started_at=START + number * HOUR / 4, ended_at=START + number * HOUR / 4 + 60)
        for number in range(30 * 96)
    ]
    now = runs[-1].ended_at

    def found(bad: int) -> list[str]:
        cut = [each.started_at for each in runs[-MOST_RUNS:]]
        plan = plan_of(cut, now)
        newest = runs[-MOST_RUNS:][plan.first :]
        earlier = [r for r in runs[: -len(newest)] if is_sampled(r.run, plan.share)]
        assert 50 < len(earlier) < 200
        broken = [msgspec.structs.replace(each, failed=80) for each in newest[-bad:]]
        shown = (*earlier, *newest[:-bad], *broken)
        seen = History(source="a", runs=shown, whole_from=newest[0].started_at, last_good_at=now)
        return rules(judge(seen, thresholds_by_rule(), now))

    assert found(bad=2) == []
    assert found(bad=20) == ["extraction-failures"]


def test_a_weekend_is_compared_with_weekends() -> None:
    quiet = {5: {"new": 0, "unchanged": 8}, 6: {"new": 0, "unchanged": 5}}
    weeks = [quiet.get(day % 7, {}) for day in range(42)]
    for days in range(1, 43):
        assert rules(judged(history(*weeks[:days], days=0))) == []
    tired = [{**each, "new": 0, "unchanged": 8} for each in weeks[:3]]
    assert rules(judged(history(*weeks, *tired, days=0))) == ["zero-yield"]


def test_with_too_little_history_a_rule_is_silent_and_says_so() -> None:
    found = judged(history(NOTHING, NOTHING, days=5))
    assert found.findings == ()
    assert {each.rule: each.why for each in found.silent}[
        "zero-yield"
    ] == "7 of 10 runs for a baseline"
    found = judged(history(NOTHING, NOTHING, days=9))
    assert found.findings == ()
    assert {each.rule: each.why for each in found.silent}[
        "zero-yield"
    ] == "8 of 14 days for a baseline"


def test_a_source_that_often_yields_nothing_has_its_own_limit() -> None:
    sparse = [
        {"new": 1 if day % 4 == 0 else 0, "unchanged": 0, "quality": None} for day in range(60)
    ]
    nothing = {"new": 0, "unchanged": 0, "quality": None}
    assert rules(judged(history(*sparse, *[nothing] * 9, days=0))) == []
    assert rules(judged(history(*sparse, *[nothing] * 36, days=0))) == ["zero-yield"]


def test_a_rule_that_is_off_finds_nothing() -> None:
    assert (
        rules(judged(history({"failed": 80}, {"failed": 80}), **{"extraction-failures": None}))
        == []
    )


def test_the_suspected_cause_is_the_host_then_our_own_change_then_the_site() -> None:
    bad = history({"failed": 80}, {"failed": 80})
    changed = msgspec.structs.replace(bad, changed_at=START + 30 * DAY - 2 * HOUR)
    down = msgspec.structs.replace(changed, failing_hosts=("shop.example",))
    causes = [judged(each).findings[0].cause for each in (bad, changed, down)]
    assert [each.kind for each in causes] == ["site-change", "own-change", "host"]
    assert causes[1].words == "its configuration or code changed 2 h before"
    assert causes[2].key == "shop.example"


def test_a_host_that_asks_to_wait_explains_what_is_late_or_given_up_and_not_what_was_read() -> None:
    failed, empty = history({"failed": 80}, {"failed": 80}), history(NOTHING, NOTHING)
    kinds = [
        judged(msgspec.structs.replace(each, closed_hosts=("shop.example",))).findings[0].cause.kind
        for each in (failed, empty)
    ]
    assert kinds == ["host", "site-change"]


# How a source stands now.

NOW = START + 30 * DAY


def now_finding(rule: str, **facts: Any) -> Finding | None:
    found = judge(History(source="acme.com", **facts), thresholds_by_rule(), NOW)
    return next((each for each in found.findings if each.rule == rule), None)


def test_a_schedule_is_missed_when_the_second_start_in_a_row_is_due() -> None:
    def found(overdue: float, **facts: Any) -> Finding | None:
        late = ScheduleFacts(name="hourly", interval_s=HOUR, overdue_since=NOW - overdue)
        return now_finding("schedule-missed", schedules=(late,), **facts)

    assert found(0.9 * HOUR) is None
    missed = found(1.1 * HOUR)
    assert missed is not None
    assert missed.summary == "2 starts of schedule hourly missed in a row, the first 66 min ago"
    assert found(9 * HOUR, is_waiting_on_purpose=True) is None


def test_more_failures_in_an_hour_than_the_limit_and_than_usual() -> None:
    def found(usual: int, failed: int) -> Finding | None:
        hours = [HourFigures(at=NOW - back * HOUR, failed=usual) for back in range(48, 1, -1)]
        return now_finding(
            "failures-in-an-hour", hours=(*hours, HourFigures(at=NOW - HOUR, failed=failed))
        )

    assert found(0, 49) is None
    assert found(0, 50) is not None
    assert found(40, 100) is None


def test_a_backlog_that_grows_says_how_long_it_will_take() -> None:
    def found(arrived: int, ended: int, waiting: int) -> Finding | None:
        hours = [
            HourFigures(at=NOW - back * HOUR, arrived=arrived, ended=ended) for back in (3, 2, 1)
        ]
        return now_finding("backlog-growth", hours=tuple(hours), waiting=waiting)

    grown = found(3000, 1000, 20_000)
    assert grown is not None
    assert grown.summary == (
        "20,000 jobs wait; 3,000 arrive and 1,000 are done per hour: the queue doubles in 10 h, "
        "and takes 20 h to empty once nothing more arrives"
    )
    assert found(900, 1000, 20_000) is None
    assert found(3000, 1000, 5000) is None
    assert found(10, 0, 2000) is not None


def test_a_source_is_stale_by_its_freshness_or_by_its_own_intervals() -> None:
    old = {"last_good_at": NOW - 2 * DAY}
    assert now_finding("stale-source", freshness_s=DAY, **old) is not None
    assert now_finding("stale-source", freshness_s=3 * DAY, **old) is None
    nights = history(days=20)
    for age, expected in {2.5 * DAY: [], 3.5 * DAY: ["stale-source"]}.items():
        at = nights.runs[-1].ended_at + age
        assert rules(judge(nights, thresholds_by_rule(), at)) == expected
    manual = msgspec.structs.replace(nights, schedules=())
    assert rules(judge(manual, thresholds_by_rule(), NOW + 90 * DAY)) == []


def test_a_budget_that_runs_out_before_its_reset_is_forecast() -> None:
    def found(used: float, hours: float, rate: float | None = None) -> Finding | None:
        budget = BudgetFacts(
            measure="requests",
            period="day",
            amount=1000,
            used=used,
            began_at=NOW - hours * HOUR,
            resets_at=NOW + (24 - hours) * HOUR,
            recent_rate_per_s=rate,
        )
        return now_finding("budget-running-out", budgets=(budget,))

    assert found(600, 18) is None
    short = found(600, 6)
    assert short is not None
    assert short.summary == (
        "the budget of requests per day is used to 60 % and runs out in 4 h, but resets in 18 h"
    )
    assert found(600, 6, rate=0.001) is None
    gone = found(1000, 6)
    assert gone is not None
    assert gone.severity == "medium"


def test_a_breaker_is_an_alert_only_when_it_has_been_open_for_long() -> None:
    def found(age: float) -> Finding | None:
        breaker = BreakerFacts(name="acme.com", opened_at=NOW - age, reason="12 of 20 failed")
        return now_finding("breaker-open", breakers=(breaker,))

    assert found(1800.0) is None
    opened = found(2 * HOUR)
    assert opened is not None
    assert opened.summary == "the breaker of acme.com has been open for 2 h: 12 of 20 failed"


def test_changed_fields_are_an_alert_for_a_day_and_new_ones_only_where_that_is_wanted() -> None:
    def found(age: float, **by: Any) -> Finding | None:
        drift = DriftFacts(
            collection="product", run=7, at=NOW - age, new=("color is new (string)",), **by
        )
        return now_finding("schema-drift", drifts=(drift,))

    assert found(60.0) is None
    changed = found(60.0, changed=("price was number and is string",))
    assert changed is not None
    assert changed.summary == "product, run 7: price was number and is string"
    assert found(25 * HOUR, changed=("price was number and is string",)) is None
    eager = thresholds_by_rule({"schema-drift": {"new_fields": True}})
    drift = DriftFacts(collection="product", run=7, at=NOW - 60, new=("color is new (string)",))
    [told] = judge(History(source="acme.com", drifts=(drift,)), eager, NOW).findings
    assert told.summary == "product, run 7: color is new (string)"


def test_a_task_that_an_orchestrator_gave_up_is_an_alert_until_a_good_run_or_for_a_day() -> None:
    def found(age: float, good_age: float = 2 * HOUR, **by: Any) -> Finding | None:
        task = GivenUpTask(engine="airflow", at=NOW - age, graph="shop", run="monday", **by)
        return now_finding("orchestrator-failed", given_up=(task,), last_good_at=NOW - good_age)

    failed = found(HOUR, task="extract")
    assert failed is not None
    assert (failed.severity, failed.since) == ("high", NOW - HOUR)
    assert failed.summary == "airflow: extract of shop monday has failed for good"
    assert found(HOUR, good_age=60.0) is None
    assert found(25 * HOUR, good_age=48 * HOUR) is None
    late = found(60.0, is_deadline=True)
    assert late is not None
    assert late.summary == "airflow: shop monday has missed its deadline"


def test_a_mapper_that_is_unsure_too_often_is_an_alert() -> None:
    def found(*confidences: float, age: float = DAY) -> Finding | None:
        learned = tuple((NOW - age + at, each) for at, each in enumerate(confidences))
        return now_finding(
            "mapper-confidence", sites=(SiteFacts(domain="a.example", confidences=learned),)
        )

    assert found(0.5, 0.6, 0.65) is None
    assert found(0.5, 0.6, 0.65, 0.7) is None
    assert found(0.5, 0.6, 0.65, 0.69, age=31 * DAY) is None
    unsure = found(0.5, 0.6, 0.9, 0.65, 0.69)
    assert unsure is not None
    assert unsure.summary == (
        "a.example was learned 4 times with a confidence below 0.7, the last time 0.69"
    )


def test_many_notes_about_images_are_an_alert() -> None:
    def found(*notes: int) -> Finding | None:
        sites = [SiteFacts(domain=f"{n}.example", notes=each) for n, each in enumerate(notes)]
        return now_finding("image-pollution", sites=tuple(sites))

    assert found(5, 3) is None
    polluted = found(5, 7, 6)
    assert polluted is not None
    assert polluted.summary == (
        "7 notes about images of 1.example are not solved; and 1 other site"
    )


def test_references_that_nobody_decides_are_an_alert_after_a_week() -> None:
    def found(*ages: float) -> Finding | None:
        return now_finding("references-waiting", new_references=tuple(NOW - each for each in ages))

    assert found(6 * DAY, DAY) is None
    waiting = found(9 * DAY, 8 * DAY, DAY)
    assert waiting is not None
    assert waiting.summary == (
        "2 supplier references new for 7 days or longer, the oldest for 9 days"
    )
    assert waiting.since == NOW - 2 * DAY


# The project.


def project_found(**facts: Any) -> list[Finding]:
    return list(judge_project(ProjectHistory(**facts), thresholds_by_rule(), NOW).findings)


def dead(number: int) -> tuple[DeadWorker, ...]:
    return tuple(DeadWorker(worker=f"w{n}", host="h", died_at=NOW - 60) for n in range(number))


def store(free: int, growth: float | None = None) -> StoreFacts:
    return StoreFacts(
        size_bytes=10**9, free_bytes=free, total_bytes=10**11, growth_bytes_per_day=growth
    )


def given_up(age: float) -> tuple[GivenUp, ...]:
    return (GivenUp(hook="pager", times=(NOW - age,), error="410 Gone"),)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"dead_workers": dead(2)}, []),
        ({"dead_workers": dead(3), "alive_workers": 1}, [("dead-workers", "high")]),
        ({"unserved_since": NOW - 60}, []),
        ({"unserved_since": NOW - 600}, [("dead-workers", "critical")]),
        ({"store": store(10**10)}, []),
        ({"store": store(10**9)}, [("store-full", "critical")]),
        ({"store": store(10**10, growth=5e9)}, [("store-full", "high")]),
        ({"store": store(10**10, growth=1e9)}, []),
        ({"given_up": given_up(HOUR)}, [("hook-given-up", "medium")]),
        ({"given_up": given_up(2 * DAY)}, []),
        ({"routes": (RouteFacts(route="slack", failing_since=NOW - 60),)}, []),
        ({"routes": (RouteFacts(route="slack", failing_since=NOW - HOUR),)}, [("route-dead", "high")]),
    ],
)  # fmt: skip
def test_the_rules_about_the_project(
    facts: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert [(each.rule, each.severity) for each in project_found(**facts)] == expected


def test_every_rule_is_judged_by_somebody() -> None:
    from penstock.alerts import project_rules, run_rules, source_rules

    judged_rules: dict[str, Callable[..., Any]] = {
        **run_rules.RULES,
        **source_rules.RULES,
        **project_rules.RULES,
    }
    assert set(judged_rules) == set(RULES)
