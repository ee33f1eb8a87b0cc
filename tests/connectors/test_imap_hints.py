"""Hints by IDLE, from a real Dovecot: mail that comes starts a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.jobs.job import JobState
from tests.connectors.dovecot import PASSWORD, Dovecot, running
from tests.connectors.test_imap import a_message
from tests.journeys.rig import Rig, kill, until

WITHOUT_IDLE = "IMAP4rev1 LITERAL+ UIDPLUS"


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with running() as server:
        yield server


def a_source(server: Dovecot, user: str, **keys: Any) -> dict[str, Any]:
    return {
        "connector": "imap",
        "host": "127.0.0.1",
        "port": server.port,
        "tls": "none",
        "user": user,
        "password": PASSWORD,
        "schedule": {"signal": "mail.changed of mail"},
        "fetch": {"allow_private": True},
        **keys,
    }


def begin(rig: Rig) -> int:
    done = rig.penstock("run", "mail", "--kind", "stream", "--detach", "--json")
    assert done.returncode == 0, done.stderr
    run: int = json.loads(done.stdout)["run"]
    return run


def append(server: Dovecot, user: str, name: str) -> None:
    with server.client(user) as client:
        client.append("INBOX", a_message(name, f"the text of {name}"))


def titles(rig: Rig) -> set[str]:
    rows = rig.store.records.of("mail", "", 1000)
    return {row.data["title"] for row in rows if not row.data.get("deleted")}


def test_mail_that_comes_starts_a_run_also_after_the_worker_was_killed(
    server: Dovecot, tmp_path: Path
) -> None:
    user = server.new_user()
    append(server, user, "first")
    with Rig(tmp_path, {"mail": a_source(server, user)}) as rig:
        begin(rig)
        process = rig.start("up")
        # A connection begins with a hint: what came before it was made is read.
        until(lambda: titles(rig) == {"first"}, "the first one is read", process=process)
        append(server, user, "second")
        until(lambda: titles(rig) == {"first", "second"}, "the second one", process=process)
        for pid in rig.worker_pids(process):
            kill(pid)
        append(server, user, "third")
        until(lambda: len(titles(rig)) == 3, "the third one", within_s=120, process=process)
        with server.client(user) as client:
            client.select_folder("INBOX")
            client.delete_messages([1])
            client.expunge()
        until(lambda: titles(rig) == {"second", "third"}, "a deletion", process=process)
        process.terminate()
        assert process.wait(timeout=60) == 0, rig.output(process)
        kinds = {run.kind for run in rig.store.runs.newest("mail", limit=100)}
        assert kinds == {"stream", "incremental"}
    assert PASSWORD.encode() not in (tmp_path / "penstock.db").read_bytes()


def test_a_server_without_idle_ends_the_stream_in_one_line(tmp_path: Path) -> None:
    with running(WITHOUT_IDLE) as poor:
        user = poor.new_user()
        with Rig(tmp_path, {"mail": a_source(poor, user)}) as rig:
            begin(rig)
            process = rig.start("up")
            until(lambda: bool(rig.jobs(JobState.QUARANTINED)), "it is refused", process=process)
            process.terminate()
            assert process.wait(timeout=60) == 0, rig.output(process)
            [job] = rig.jobs(JobState.QUARANTINED)
            assert (job.kind, job.tries) == ("permanent", 1)
            assert "does not offer IDLE: run the source by a schedule alone" in str(job.error)


OWN = """
from penstock import Pipeline

own = Pipeline("own")


@own.step(after="read")
async def everything(document, ctx):
    ctx.save("own", key=document["key"], data=document)
"""


def test_hints_come_also_where_steps_of_the_users_own_get_the_documents(tmp_path: Path) -> None:
    (tmp_path / "own_steps_of_mail.py").write_text(OWN)
    source = {"connector": "imap", "host": "mail.example", "user": "me", "password": "x"}
    source["pipeline"] = "own_steps_of_mail:own"
    (tmp_path / "penstock.yaml").write_text(json.dumps({"sources": {"mail": source}}))
    with Project.load(tmp_path) as project:
        stages = project.graph(project.source("mail")).stages
    assert [stage.name for stage in stages if stage.is_stream] == ["listen"]
