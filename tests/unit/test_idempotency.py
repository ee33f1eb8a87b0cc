"""Idempotency keys over HTTP: an act is done once for each key, whoever stops in between."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.app.idempotency import Asked, IdempotencyKeys
from penstock.app.sources import Sources
from penstock.errors import Refused, StoreError, UsageError
from tests.unit.test_web import Answer, Site, visit

FILE = "sources: {a: {pipeline: 'x:y', schedule: {signal: go}}}\n"
NOTE = {"data": {"n": 1}}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    (tmp_path / "penstock.yaml").write_text(FILE)
    with Project.open(tmp_path) as found:
        yield found


async def signal(at: Site, key: str, body: Any) -> Answer:
    return await at.act("/api/v1/signals/go", body, **{"Idempotency-Key": key})


def raised(project: Project) -> int:
    return len(project.signals.list().items)


def test_repeated_request_gets_the_first_answer_also_after_a_restart(project: Project) -> None:
    answers: list[Answer] = []

    async def steps(at: Site) -> None:
        await at.log_in()
        answers.append(await signal(at, "k", NOTE))
        answers.append(await signal(at, "k", NOTE))

    visit(project, steps)
    visit(project, steps)  # another server on the same store
    assert [each.json for each in answers] == [answers[0].json] * 4
    assert [each.headers.get("idempotency-replayed") for each in answers] == [
        *(None, "true"),
        *("true", "true"),
    ]
    assert raised(project) == 1


def test_key_of_another_request_is_refused_and_one_of_a_refused_act_is_free(
    project: Project,
) -> None:
    async def steps(at: Site) -> None:
        await at.log_in()
        assert (await signal(at, "k", NOTE)).status == 200
        other = await signal(at, "k", {"data": {"n": 2}})
        assert (other.status, other.json["code"]) == (422, "key_reused")
        for key, code in (("", "bad_key"), ("k" * 256, "bad_key"), ("ü", "bad_key")):
            assert (await signal(at, key, NOTE)).json["code"] == code
        keyed = {"Idempotency-Key": "f"}
        unkept = await at.act("/api/v1/sources/a/forget", {"key": "x"}, **keyed)
        assert (unkept.status, unkept.json["code"]) == (422, "no_key_here")
        refused = await at.act("/api/v1/runs/1/pause", {}, **{"Idempotency-Key": "p"})
        assert refused.status == 404
        assert (await signal(at, "p", NOTE)).status == 200

    visit(project, steps)
    assert raised(project) == 2


def test_second_request_is_refused_while_the_first_is_performed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_end = threading.Event(), threading.Event()
    pause = Sources.pause

    @functools.wraps(pause)
    def slow(*args: Any, **about: Any) -> bool:
        began.set()
        assert may_end.wait(30)
        return pause(*args, **about)

    monkeypatch.setattr(Sources, "pause", slow)

    async def steps(at: Site) -> None:
        await at.log_in()
        keyed = {"Idempotency-Key": "k"}
        first = asyncio.create_task(at.act("/api/v1/sources/a/pause", {}, **keyed))
        await asyncio.to_thread(began.wait, 30)
        second = await at.act("/api/v1/sources/a/pause", {}, **keyed)
        assert (second.status, second.json["code"]) == (409, "key_in_use")
        may_end.set()
        assert (await first).json == {"changed": True}
        third = await at.act("/api/v1/sources/a/pause", {}, **keyed)
        assert third.json == {"changed": True}

    visit(project, steps)


def test_act_that_was_done_is_not_done_again_although_its_answer_could_not_be_written(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, asked, done = IdempotencyKeys(), Asked("ann", "k", "hash"), list[int]()

    def act() -> str:
        done.append(1)
        return "{}"

    def gone(*_: Any) -> bool:
        raise StoreError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(type(project.connection.idempotency), "answer", gone)
        with pytest.raises(StoreError):
            keys.perform(project, asked, act)
    assert keys.perform(project, asked, act) == ("{}", True)
    assert keys.perform(project, asked, act) == ("{}", True)
    assert done == [1]


def test_act_that_failed_with_the_database_is_done_again_by_its_server_and_by_no_other(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, asked = IdempotencyKeys(), Asked("ann", "k", "hash")

    def gone(*_: Any) -> Any:
        raise StoreError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(type(project.connection.idempotency), "release", gone)
        with pytest.raises(StoreError):
            keys.perform(project, asked, gone)
    with pytest.raises(Refused) as refused:
        IdempotencyKeys().perform(project, asked, lambda: "{}")
    assert refused.value.code == "key_in_use"
    assert keys.perform(project, asked, lambda: "{}") == ("{}", False)
    with pytest.raises(UsageError):
        keys.perform(project, Asked("ann", "k", "another"), lambda: "{}")


def test_key_of_a_server_that_was_killed_is_refused_as_unknown_when_its_lease_is_over(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked("ann", "k", "hash")

    def killed() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("penstock.store.idempotency.LEASE_S", -1.0)
    with pytest.raises(KeyboardInterrupt):
        IdempotencyKeys().perform(project, asked, killed)
    with pytest.raises(Refused) as refused:
        IdempotencyKeys().perform(project, asked, lambda: "{}")
    assert refused.value.code == "outcome_unknown"
