"""The nouns of a project as a front end uses them: views, pages, and refusals that programs understand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.app.views.quarantine import EntryFilter
from penstock.app.views.rejects import RejectFilter
from penstock.cli.remedies import hint_of
from penstock.errors import Refused, UsageError
from penstock.gates.capacity import Capacity
from penstock.jobs.effects import Effects, Mark, Rejection
from penstock.jobs.job import JobState, NewJob
from penstock.jobs.outcome import Settlement
from penstock.store.snapshots import Kept
from tests.contract.scenes import PLAIN_STEPS, Place, a_job, a_save

JUDGE = """

@plain.step(after="look", unit="page")
def extract(item):
    pass
"""


@pytest.fixture
def project(tmp_path: Path, place: Place) -> Iterator[Project]:
    (tmp_path / "steps.py").write_text(PLAIN_STEPS + JUDGE)
    store = f"sqlite:{place}" if isinstance(place, Path) else place
    sources = {"acme.com": {"schedule": {"cadence": "auto"}}, "news.example": {}}
    settings: dict[str, Any] = {"project": "nouns", "store": store}
    settings |= {"sources": sources, "budget": {"requests": "100/d"}}
    settings |= {"defaults": {"pipeline": "steps:plain"}}
    (tmp_path / "penstock.yaml").write_text(json.dumps(settings))
    with Project.open(tmp_path) as made:
        made.connection.workers.register("w", "here", 1, "1")
        yield made


def ended(project: Project, state: JobState = JobState.SUCCEEDED, **about: Any) -> int:
    """A run whose first job ended like this; answers with its number."""
    run_id = project.run("acme.com")
    settled(project, state, **about)
    return run_id


def settled(project: Project, state: JobState = JobState.SUCCEEDED, **about: Any) -> None:
    """The next job has ended like this."""
    [job] = project.connection.turn("w", [], Capacity(1), project.limits()).claimed
    end = Settlement(job.id, job.attempt, state, **about)
    project.connection.turn("w", [end], Capacity(0), project.limits())


def journaled(project: Project, kind: str) -> list[tuple[str, str]]:
    return [
        (row.actor or "", row.detail or "")
        for row in project.connection.journal.events(kind=kind, limit=9)
    ]


def test_checkpoints_are_read_in_pages_and_moved_back_by_name(project: Project) -> None:
    for cursor in (b"3", b"5", b"7"):
        ended(project, effects=Effects(marks=[Mark("AAPL", cursor), Mark("MSFT", b"1")]))
    checkpoints = project.checkpoints

    first = checkpoints.list("acme.com", limit=1)
    [second] = checkpoints.list("acme.com", limit=1, cursor=first.next).items
    assert [first.items[0].partition, second.partition] == ["AAPL", "MSFT"]
    newest = checkpoints.history("acme.com", "AAPL", limit=2)
    [oldest] = checkpoints.history("acme.com", "AAPL", limit=2, cursor=newest.next).items
    assert [move.cursor for move in (*newest.items, oldest)] == [7, 5, 3]

    for to, code in ((9, "cursor_further_on"), ({}, "cursor_unfit"), (7, "cursor_is_there")):
        with pytest.raises(Refused) as refused:
            checkpoints.rewind("acme.com", "AAPL", to=to)
        assert refused.value.code == code
    seen = checkpoints.rewind("acme.com", "AAPL", to_run=1, dry_run=True)
    assert (seen.start, seen.to, seen.moves, seen.is_done) == (7, 3, 2, False)
    assert checkpoints.rewind("acme.com", "AAPL", to_run=1, actor="ann", reason="a test").is_done
    assert checkpoints.get("acme.com", "AAPL").cursor == 3
    assert journaled(project, "checkpoint.rewound") == [("ann", "AAPL: 7 → 3 (a test)")]


def test_checkpoint_is_not_moved_back_under_a_run_that_may_move_it(project: Project) -> None:
    ended(project, effects=Effects(marks=[Mark("AAPL", b"3")]))
    run_id = project.run("acme.com")

    with pytest.raises(Refused) as refused:
        project.checkpoints.rewind("acme.com", "AAPL", to=1)

    assert refused.value.code == "run_may_move_it"
    assert str(refused.value.remedy) == f"project.runs.cancel({run_id})"
    with pytest.raises(UsageError, match="has no checkpoint 'AAPM'") as unknown:
        project.checkpoints.get("acme.com", "AAPM")
    assert (unknown.value.code, unknown.value.hint) == ("no_checkpoint", "did you mean 'AAPL'?")


def test_breaker_is_opened_for_a_while_and_closed_again_by_any_spelling(project: Project) -> None:
    breakers = project.breakers
    assert breakers.open("https://ACME.com/", 60, actor="ann", reason="they are moving")
    assert breakers.open("host:cdn.example.com", 60)

    first = breakers.list(limit=1)
    [second] = breakers.list(limit=1, cursor=first.next).items
    assert [first.items[0].key, second.key] == ["host:cdn.example.com", "source:acme.com"]
    assert second.reason == "opened by ann: they are moving"
    assert not breakers.open("acme.com", 60)
    assert breakers.close("acme.com")
    assert not breakers.close("acme.com")
    assert [view.state for view in breakers.each()] == ["open", "closed"]
    with pytest.raises(UsageError):
        breakers.open("acme.com", 0.5)


def test_budget_says_what_is_left_of_it(project: Project) -> None:
    [budget] = project.budgets.list().items

    assert (budget.source, budget.run, budget.measure, budget.left) == (None, None, "requests", 100)
    assert not budget.is_exhausted
    assert not project.budgets.exhausted()
    assert list(project.budgets.each(run=ended(project))) == []


def test_one_source_reads_as_it_does_among_all(project: Project) -> None:
    """A page of one source asks for that one: with what is queued and quarantined of it."""
    store = project.connection
    ended(project, JobState.QUARANTINED, spends_try=True, reason="data", error="no price")
    project.run("acme.com")
    project.run("news.example")
    project.sources.pause("news.example", reason="vacation")

    rows = store.sources.all()
    assert [(row.key, row.quarantined, row.queued) for row in rows] == [
        ("acme.com", 1, 1),
        ("news.example", 0, 1),
    ]
    assert [store.sources.get(row.key) for row in rows] == rows
    assert store.sources.get("other.example") is None
    assert store.sources.ids() == {row.key: row.id for row in rows}
    views = list(project.sources.each())
    assert [project.sources.get(view.key) for view in views] == views


def test_children_of_a_job_are_its_own_and_not_those_of_another(project: Project) -> None:
    run_id = project.run("acme.com")
    pages = [NewJob("extract", str(number), b"{}") for number in range(3)]
    settled(project, effects=Effects(children=pages))
    project.run("news.example")
    settled(project, effects=Effects(children=pages[:1]))

    [root, *found] = project.jobs.each(run=run_id)
    assert project.jobs.children(root.id) == found
    assert project.jobs.children(root.id, limit=2) == found[:2]
    [counted] = project.jobs.timeline(root.id).children
    assert (counted.stage, counted.state, counted.jobs) == ("extract", "queued", 3)
    assert not project.jobs.timeline(found[0].id).children
    assert not project.jobs.children(found[0].id)


def test_budget_counts_the_cost_of_a_record_from_runs_since_its_period_began(
    project: Project,
) -> None:
    effects = Effects(saves=[a_save("a", 1), a_save("b", 2)], spent={"requests": 6})
    ended(project, effects=effects)
    [budget] = project.budgets.list().items
    assert budget.per_accepted_record == 3.0
    budgets, now = project.connection.budgets, project.now()
    acme, news = project.source_ids["acme.com"], project.source_ids["news.example"]
    use = budgets.used_by_run(1)
    assert (use.accepted, use.requests) == (2, 6)
    assert budgets.used_since(0.0, 9) == use
    assert budgets.used_since(now + 60.0, 9).accepted == 0
    asked = [(news, 0.0), (acme, 0.0), (acme, now + 60.0)]
    assert [each.requests for each in budgets.used_by_sources(asked, 9)] == [0, 6, 0]


def test_quarantine_is_paged_released_by_filter_and_never_wholesale_by_mistake(
    project: Project,
) -> None:
    ended(project, effects=Effects(children=[a_job(f"k{n}") for n in range(3)]))
    for _ in range(3):
        settled(project, JobState.QUARANTINED, error="no price", reason="data")
    quarantine = project.quarantine

    first = quarantine.list(limit=2)
    [last] = quarantine.list(limit=2, cursor=first.next).items
    assert [view.key for view in (*first.items, last)] == ["k0", "k1", "k2"]
    assert "traceback" not in last.as_json()
    assert "traceback" in quarantine.get(last.id).as_json()
    for act in (quarantine.release, quarantine.discard):
        with pytest.raises(UsageError) as unsaid:
            act()
        assert unsaid.value.code == "no_filter"
    one = EntryFilter(job_id=first.items[0].id)
    assert quarantine.release(one, dry_run=True).as_json() == {
        "released": 0, "jobs": 1, "is_done": False,
    }  # fmt: skip
    assert quarantine.release(one, actor="ann", reason="a test").released == 1
    assert journaled(project, "quarantine.released") == [("ann", "a test")]
    quarantine.note(last.id, " asked the shop ", actor="ann")
    seen: list[tuple[int, int]] = []
    assert quarantine.discard(everything=True, on_progress=lambda *at: seen.append(at)).jobs == 2
    assert seen == [(2, 2)]
    closed = [*quarantine.each(EntryFilter(is_closed=True), limit=1)]
    assert [(view.id, view.notes[0].text) for view in closed] == [(last.id, "asked the shop")]
    with pytest.raises(Refused) as empty:
        quarantine.release(EntryFilter(kind="data"))
    assert empty.value.code == "nothing_quarantined"


def test_rejects_are_paged_and_judged_again_by_the_run_they_came_from(project: Project) -> None:
    run_id = ended(project, effects=Effects(children=[a_job(f"k{n}") for n in range(3)]))
    for _ in range(3):
        settled(project, effects=Effects(rejections=[Rejection("odd", "why")]))
    rejects = project.rejects

    newest = rejects.list(RejectFilter(run_id=run_id), limit=2)
    [oldest] = rejects.list(RejectFilter(run_id=run_id), limit=2, cursor=newest.next).items
    assert [view.key for view in (*newest.items, oldest)] == ["k2", "k1", "k0"]
    assert rejects.get(oldest.id).item == "null"
    seen = rejects.redrive(RejectFilter(ids=(oldest.id,)), dry_run=True)
    assert (seen.source, seen.rejects, seen.run_id) == ("acme.com", 1, None)
    assert rejects.count(RejectFilter(open_only=True)) == 3
    done = rejects.redrive(RejectFilter(run_id=run_id), actor="ann", reason="a test")
    assert (done.rejects, done.items) == (3, 3)
    with pytest.raises(Refused) as empty:
        rejects.redrive(RejectFilter(run_id=run_id))
    assert empty.value.code == "nothing_to_redrive"


def test_signal_is_raised_once_under_its_key_and_listed_from_the_newest(project: Project) -> None:
    signals = project.signals
    first = signals.raise_("prices.stale", {"n": 1}, key="k", actor="ann")
    again = signals.raise_("prices.stale", {"n": 2}, key="k")
    signals.raise_("catalogue.ready", source="acme.com")

    assert (first.is_new, again.is_new, first.id) == (True, False, again.id)
    assert first.waiting == ()
    newest = signals.list(limit=1)
    [oldest] = signals.list(limit=1, cursor=newest.next).items
    assert (newest.items[0].source, oldest.data, oldest.actor) == ("acme.com", {"n": 1}, "ann")
    assert [view.name for view in signals.each("prices.stale")] == ["prices.stale"]
    assert signals.queue("acme.com").as_json() == {"signals": [], "total": 0}


def test_hook_is_told_again_of_what_it_did_not_accept(project: Project) -> None:
    store = project.connection
    store.hooks.plan([("ops", "completed", 0)])
    runs = [ended(project), ended(project)]
    for parcel in store.hooks.claim(2, 60.0):
        store.hooks.refuse(parcel, "no", None, "w")

    newest = project.hooks.list(limit=1)
    [oldest] = project.hooks.list(limit=1, cursor=newest.next).items
    assert [newest.items[0].run_id, oldest.run_id] == runs[::-1]
    assert oldest.state == "given up"
    assert project.hooks.redeliver(oldest.id, actor="ann")
    assert [view.state for view in project.hooks.each()] == ["given up", "failing"]
    with pytest.raises(UsageError) as unknown:
        project.hooks.redeliver(99)
    assert (unknown.value.code, hint_of(unknown.value)) == (
        "no_delivery",
        "penstock hooks lists them",
    )


def test_cadence_is_set_and_undone_by_name_and_only_where_it_is_auto(project: Project) -> None:
    schedules = project.schedules
    assert schedules.set_cadence("acme.com", "low", actor="ann", reason="a test").level == "low"
    [seen] = schedules.cadences().items
    assert (seen.source, seen.before, seen.reason) == ("acme.com", "medium", "a test")
    assert schedules.undo_cadence("acme.com").level == "medium"
    with pytest.raises(UsageError) as unknown:
        schedules.set_cadence("acme.com", "lower")
    assert (unknown.value.code, unknown.value.hint) == ("no_class", "did you mean 'low'?")
    with pytest.raises(UsageError) as other:
        schedules.undo_cadence("news.example")
    assert other.value.code == "cadence_not_auto"


def test_kpis_of_a_source_are_numbers_by_name(project: Project) -> None:
    ended(project)
    report = project.kpis.report(days=1, source="ACME.com")
    assert (report.source, len(report.kpis)) == ("acme.com", 5)
    assert report.as_json()["kpis"]["completion_without_restart"]["counted"] == 1


def test_search_finds_by_name_number_address_and_key_and_history_says_what_changed(
    project: Project,
) -> None:
    run_id, store = (
        ended(project, effects=Effects(saves=[a_save("sku-1", {"a": 1})])),
        project.connection,
    )
    project.run("acme.com")
    [job] = store.turn("w", [], Capacity(1), project.limits()).claimed
    url, where = "https://acme.com/a", ("hash", "segment", 0, 10)
    kept = Kept(7, job.id, job.run_id, url, 200, {}, project.now(), *where)
    saves = [a_save("sku-1", {"a": 2}, snapshot=7), a_save("sku-2", {})]
    end = Settlement(job.id, job.attempt, JobState.SUCCEEDED, effects=Effects(saves=saves))
    store.turn("w", [end], Capacity(0), project.limits(), [kept])

    assert [each.key for each in project.search("sku-").records] == ["sku-1", "sku-2"]
    assert [each.key for each in project.search("sku-2").records] == ["sku-2"]
    assert project.search("ACME").sources == ["acme.com"]
    assert [each.id for each in project.search(f"run {run_id}").runs] == [run_id]
    assert [each.id for each in project.search(str(job.id)).jobs] == [job.id]
    assert [each.id for each in project.search(url).pages] == [project.pages.get(7).id]
    assert project.search("nothing is called this").is_empty
    first, second = project.records.history("product", "sku-1")
    changes = [(each.field, each.before, each.after) for each in second.fields]
    assert (first.fields, changes, second.record.snapshot_id) == ([], [("a", 1, 2)], 7)
    with pytest.raises(UsageError) as refused:
        project.pages.get(8)
    assert refused.value.code == "no_snapshot"
