"""The nouns of a project as a front end uses them: views, pages, and refusals that programs understand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.errors import Refused, UsageError
from penstock.jobs.effects import Effects, Mark
from penstock.jobs.job import JobState
from penstock.jobs.outcome import Settlement
from penstock.store.store import Capacity
from tests.contract.scenes import PLAIN_STEPS, Place


@pytest.fixture
def project(tmp_path: Path, place: Place) -> Iterator[Project]:
    (tmp_path / "steps.py").write_text(PLAIN_STEPS)
    store = f"sqlite:{place}" if isinstance(place, Path) else place
    source = {"pipeline": "steps:plain"}
    settings: dict[str, Any] = {"project": "nouns", "store": store}
    settings |= {"sources": {"acme.com": source}, "budget": {"requests": "100/d"}}
    (tmp_path / "penstock.yaml").write_text(json.dumps(settings))
    with Project.open(tmp_path) as made:
        made.connection.register("w", "here", 1, "1")
        yield made


def ended(project: Project, state: JobState = JobState.SUCCEEDED, **about: Any) -> int:
    """A run whose first job ended like this; answers with its number."""
    run_id = project.run("acme.com")
    [job] = project.connection.turn("w", [], Capacity(1), project.limits()).claimed
    end = Settlement(job.id, job.attempt, state, **about)
    project.connection.turn("w", [end], Capacity(0), project.limits())
    return run_id


def journaled(project: Project, kind: str) -> list[tuple[str, str]]:
    return [
        (row.actor or "", row.detail or "") for row in project.connection.events(kind=kind, limit=9)
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
