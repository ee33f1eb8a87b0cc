"""What starts runs and is told of them, with the real command: signals, files, other sources, hooks, HTTP."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import signal
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from penstock.engine import foreground
from penstock.project import Project
from penstock.store.rows import RunRow
from tests.journeys.rig import Rig, kill, until

STEPS = """
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
def look(ctx):
    signal = ctx.run.signal
    told = None if signal is None else {"name": signal.name, "data": signal.data, "runs": signal.runs}
    ctx.save("told", key=f"{ctx.source.key}-{ctx.run.id}", data={"signal": told})
"""
SECRET = "what-the-receiver-knows"
TOKEN = "a-token-that-is-long-enough"


def a_rig(folder: Path, top: dict[str, Any] | None = None, **schedules: Any) -> Rig:
    sources = {
        key: {"pipeline": "steps:pages", **({"schedule": one} if one else {})}
        for key, one in schedules.items()
    }
    rig = Rig(folder, sources, STEPS)
    config = json.loads((folder / "penstock.yaml").read_text())
    (folder / "penstock.yaml").write_text(json.dumps({**config, **(top or {})}))
    return rig


def ended(rig: Rig, source: str, count: int) -> list[RunRow]:
    """The runs of a source, when so many of them have ended; the oldest first."""

    def found() -> list[RunRow] | None:
        every = rig.store.runs.newest(limit=10_000)
        rows = [row for row in every if row.source == source and row.is_ended]
        return rows[::-1] if len(rows) >= count else None

    rows: list[RunRow] = until(found, f"{count} runs of {source} have ended")
    return rows


def told(rig: Rig) -> dict[str, Any]:
    rows = rig.store.records.of("told", limit=1000)
    return {row.key: row.data["signal"] for row in rows}


def test_a_signal_starts_a_run_that_knows_it_and_those_that_come_after(tmp_path: Path) -> None:
    waiting = {"after": "a"}, {"after": ["a", "b"]}
    with a_rig(tmp_path, a={"signal": "go"}, b=waiting[0], c=waiting[1]) as rig:
        done = rig.penstock("signal", "go", "--data", '{"day": 7}', "--key", "k", "--json")
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["is_new"]
        assert answer["waiting"] == [{"source": "a", "schedule": "main"}]
        again = json.loads(rig.penstock("signal", "go", "--key", "k", "--json").stdout)
        assert (again["signal"], again["is_new"]) == (answer["signal"], False)

        done = rig.penstock("up", "--until-idle")
        assert done.returncode == 0, done.stderr

        [a] = ended(rig, "a", 1)
        [b] = ended(rig, "b", 1)
        [c] = ended(rig, "c", 1)
        found = told(rig)
        assert found[f"a-{a.id}"]["data"] == {"day": 7}
        assert found[f"b-{b.id}"]["runs"] == {"a": a.id}
        assert found[f"c-{c.id}"]["runs"] == {"a": a.id, "b": b.id}
        listed = json.loads(rig.penstock("signals", "--name", "go", "--json").stdout)
        [delivery] = listed[0]["deliveries"]
        assert (delivery["state"], delivery["run"]) == ("started", a.id)
        assert rig.penstock("up", "--until-idle").returncode == 0
        assert len(rig.store.runs.newest(limit=100)) == 3
        rig.assert_sound()


def test_up_until_idle_waits_for_a_file_that_lands_however_slow_the_machine_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if the time in which a look should have been taken were over already.
    monkeypatch.setattr(foreground, "settling", lambda _: 0.0)
    with a_rig(tmp_path, a={"watch": "./inbox/*.json", "debounce": "1s"}) as rig:
        (tmp_path / "inbox").mkdir()
        (tmp_path / "inbox" / "before.json").write_text("{}")
        with closing(Project.load(tmp_path)) as project:
            assert foreground.run_forever(project, tell=print, until_idle=True)
        assert len(ended(rig, "a", 1)) == 1


def test_a_signal_is_delivered_whoever_is_killed_meanwhile(tmp_path: Path) -> None:
    with a_rig(tmp_path, a={"signal": "go"}) as rig:
        for n in range(5):
            process = rig.start("up")
            until(rig.store.workers.all, "somebody works")
            assert rig.penstock("signal", "go", "--data", str(n)).returncode == 0
            kill(process.pid)
            process.wait()
        rig.start("up")
        rows = ended(rig, "a", 5)
        assert len(rows) == 5
        data = [one["data"] for one in told(rig).values()]
        assert sorted(data) == [0, 1, 2, 3, 4]


def test_a_file_that_lands_starts_one_run_and_a_burst_does_too(tmp_path: Path) -> None:
    watch = {"watch": "./inbox/**/*.json", "debounce": "1s", "rescan": "2s"}
    with a_rig(tmp_path, a=watch) as rig:
        inbox = tmp_path / "inbox" / "today"
        inbox.mkdir(parents=True)
        (inbox / "before.json").write_text("{}")
        process = rig.start("up")
        [first] = ended(rig, "a", 1)
        for n in range(1000):
            (inbox / f"{n}.json").write_text("{}")
        (inbox / "other.txt").write_text("")
        second = ended(rig, "a", 2)[1]
        (inbox / "7.json").write_text('{"n": 1}')
        third = ended(rig, "a", 3)[2]

        found = told(rig)
        names = [
            [Path(path).name for path in found[f"a-{run.id}"]["data"]["files"]]
            for run in (first, second, third)
        ]
        assert names[0] == ["before.json"]
        assert len(names[1]) == 1000
        assert names[2] == ["7.json"]

        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, rig.output(process)
        (inbox / "later.json").write_text("{}")
        assert rig.penstock("up", "--until-idle").returncode == 0
        assert len(ended(rig, "a", 4)) == 4
        rig.assert_sound()


# Hooks.


class Receiver:
    """A server that refuses so often before it accepts, and remembers everything."""

    def __init__(self, refusals: int) -> None:
        receiver = self
        self.seen: list[tuple[int, dict[str, str], bytes]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = 503 if len(receiver.seen) < refusals else 200
                receiver.seen.append((status, dict(self.headers), body))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *words: object) -> None:
                return None

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    @property
    def accepted(self) -> list[tuple[int, dict[str, str], bytes]]:
        return [one for one in self.seen if one[0] == 200]


@contextmanager
def receiving(refusals: int) -> Iterator[Receiver]:
    receiver = Receiver(refusals)
    thread = threading.Thread(target=receiver.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        receiver.server.server_close()


def test_a_webhook_that_fails_twice_is_told_until_it_accepts_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    with receiving(refusals=2) as receiver:
        hook = {"url": receiver.url, "secret": "${HOOK_SECRET}", "allow_private": True}
        with a_rig(tmp_path, {"hooks": [{**hook, "on": ["completed"]}]}, a={"signal": "go"}) as rig:
            process = rig.start("up", HOOK_SECRET=SECRET)
            until(rig.store.workers.all, "somebody works")
            rig.store.signals.raise_("go", None, actor="test")
            [run] = ended(rig, "a", 1)
            until(lambda: receiver.accepted, "it has accepted", process=process)
            until(lambda: rig.store.hooks.outbox()[0].state == "delivered", "that is known")

            assert [status for status, _, _ in receiver.seen] == [503, 503, 200]
            assert len({headers["Penstock-Delivery"] for _, headers, _ in receiver.seen}) == 1
            _, headers, body = receiver.accepted[0]
            assert json.loads(body)["run"] == run.id
            at, v1 = (part.partition("=")[2] for part in headers["Penstock-Signature"].split(","))
            signed = hmac.new(SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256)
            assert v1 == signed.hexdigest()
            process.send_signal(signal.SIGTERM)
            process.wait(120)
            assert SECRET not in rig.output(process)
            assert SECRET.encode() not in rig.database.read_bytes()


def test_a_run_that_ended_before_a_crash_is_told_of_after_it(tmp_path: Path) -> None:
    told_to = tmp_path / "told.txt"
    command = ["/bin/sh", "-c", f"test -e {tmp_path}/ready && cat >> {told_to}"]
    with a_rig(tmp_path, {"hooks": [{"command": command}]}, a={"signal": "go"}) as rig:
        process = rig.start("up")
        until(rig.store.workers.all, "somebody works")
        rig.store.signals.raise_("go", None, actor="test")
        [run] = ended(rig, "a", 1)
        kill(process.pid)
        process.wait()
        assert not told_to.exists()
        (tmp_path / "ready").touch()

        [row] = rig.store.hooks.outbox()
        assert rig.penstock("hooks", "retry", str(row.id)).returncode == 0
        rig.start("up")
        until(lambda: rig.store.hooks.outbox()[0].state == "delivered", "it is delivered")
        assert json.loads(told_to.read_text())["run"] == run.id
        [listed] = json.loads(rig.penstock("hooks", "--json").stdout)
        assert (listed["run"], listed["state"]) == (run.id, "delivered")


def test_the_command_that_runs_a_source_tells_of_its_end_before_it_ends(tmp_path: Path) -> None:
    told_to = tmp_path / "told.txt"
    command = ["/bin/sh", "-c", f"cat >> {told_to}"]
    with a_rig(tmp_path, {"hooks": [{"command": command}]}, a=None) as rig:
        assert rig.penstock("run", "a").returncode == 0
        assert json.loads(told_to.read_text())["state"] == "completed"


# Over HTTP.


def post(
    url: str, body: bytes = b"{}", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, Any]]:
    given = {"Content-Type": "application/json", **(headers or {})}
    request = urllib.request.Request(url, body, given, method="POST")  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def address(rig: Rig, process: Any) -> str:
    found: re.Match[str] = until(
        lambda: re.search(r"listening on (http://\S+)", rig.output(process)),
        "it listens",
        process=process,
    )
    return found[1]


def test_a_post_starts_a_run_and_only_with_the_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_TRIGGER_TOKEN", TOKEN)
    top = {"trigger": {"token": "${PENSTOCK_TRIGGER_TOKEN}"}}
    with a_rig(tmp_path, top, a={"signal": "go"}) as rig:
        secret = {"PENSTOCK_TRIGGER_TOKEN": TOKEN}
        process = rig.start("trigger", "serve", "--port", "0", **secret)
        url = f"{address(rig, process)}/signals/go"
        assert post(url)[0] == 401
        assert post(url, headers={"Authorization": "Bearer wrong"})[0] == 401
        given = {"Authorization": f"Bearer {TOKEN}", "Idempotency-Key": "once"}
        status, answer = post(url, b'{"day": 7}', given)
        assert status == 202
        assert post(url, b'{"day": 7}', given)[1]["signal"] == answer["signal"]

        rig.start("up", **secret)
        [run] = ended(rig, "a", 1)
        assert told(rig)[f"a-{run.id}"]["data"] == {"day": 7}
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, rig.output(process)
        assert TOKEN not in rig.output(process)


def test_without_a_token_it_serves_this_machine_and_refuses_to_serve_others(tmp_path: Path) -> None:
    with a_rig(tmp_path, a={"signal": "go"}) as rig:
        refused = rig.penstock("trigger", "serve", "--host", "0.0.0.0", "--port", "0")
        assert refused.returncode == 7
        assert "without a token" in refused.stderr
        process = rig.start("trigger", "serve", "--port", "0")
        url = f"{address(rig, process)}/signals/go"
        assert post(url)[0] == 202
        assert post(url, headers={"Origin": "https://evil.example"})[0] == 403
        taken = rig.penstock("trigger", "serve", "--port", address(rig, process).rpartition(":")[2])
        assert taken.returncode == 6
        assert re.search(r"port \d+ is in use by pid \d+ \(penstock trigger serve", taken.stderr)


def test_signals_that_wait_say_since_when_and_what_for(tmp_path: Path) -> None:
    with a_rig(tmp_path, a=None, b=None, c={"after": ["a", "b"]}, d={"signal": "go"}) as rig:
        assert rig.penstock("pause", "d").returncode == 0
        assert rig.penstock("run", "a").returncode == 0
        for _ in range(3):
            assert rig.penstock("signal", "go").returncode == 0
        process = rig.start("up")
        until(lambda: len(rig.store.runs.newest("d")) == 1, "the first has started a run")
        source_id = rig.store.sources.ensure(["d"])["d"]
        until(lambda: rig.store.deliveries.standing(source_id)[0][0].reason, "the second waits")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 0, rig.output(process)
        [run] = rig.store.runs.newest("d")

        for command in (["explain", "c"], ["schedules", "explain", "c"]):
            said = rig.penstock(*command).stdout
            assert re.search(r"run\.completed +a +main +20.* b to complete", said), said
        for command in (["explain", "d"], ["schedules", "explain", "d"]):
            said = rig.penstock(*command).stdout
            assert re.search(rf"go +main +20.* run {run.id} has not ended yet", said), said
            assert re.search(r"go +main +20.* signal \d+ before it", said), said
            shown = json.loads(rig.penstock(*command, "--json").stdout)
            queue = shown["queue"] if "queue" in shown else shown["schedules"][0]["queue"]
            assert [each["state"] for each in queue] == ["queued", "queued"]
            assert queue[0]["waits_for"] == f"run {run.id} has not ended yet"
        assert "Signals that wait" not in rig.penstock("explain", "a").stdout
