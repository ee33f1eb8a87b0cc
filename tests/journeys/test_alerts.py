"""Alerts of real processes: a host that fails many sources, and a leader that dies while it delivers."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from penstock.prove.wrong_clock import WrongClock
from tests.journeys.rig import Rig, kill, until
from tests.unit.test_alert_routes import SLACK, Receiver, receiving

PIPELINE = """
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    for number in range(3):
        yield {"url": f"{ctx.params['site']}/{number}"}


@pages.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    ctx.save("page", key=page["url"], data={"text": response.text})
"""


class Site(ThreadingHTTPServer):
    """Answers 503 while it is down."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Visit)
        self.host = f"127.0.0.1:{self.server_port}"
        self.is_down = False


class Visit(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Site

    def do_GET(self) -> None:
        self.send_response(503 if self.server.is_down else 200)
        if self.server.is_down:
            self.send_header("Retry-After", "3600")
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def a_site() -> Iterator[Site]:
    with Site() as site:
        thread = Thread(target=site.serve_forever, args=(0.01,))
        thread.start()
        yield site
        site.shutdown()
        thread.join()


def a_source(site: Site) -> dict[str, Any]:
    return {
        "pipeline": "steps:pages",
        "params": {"site": f"http://{site.host}"},
        "fetch": {"allow_private": True, "robots": False},
    }


def route(receiver: Receiver) -> dict[str, Any]:
    to = f"http://{receiver.place}{SLACK}"
    return {"to": to, "name": "oncall", "allow_private": True}


def configure(rig: Rig, **keys: Any) -> None:
    config = rig.folder / "penstock.yaml"
    config.write_text(json.dumps(json.loads(config.read_text()) | keys))


def alerts(rig: Rig, *words: str) -> list[dict[str, Any]]:
    told = rig.penstock("alerts", *words, "--json")
    assert told.returncode == 0, told.stderr
    found: list[dict[str, Any]] = json.loads(told.stdout)
    return found


def test_host_that_answers_503_is_one_incident_and_one_message_for_twelve_sources(
    tmp_path: Path,
) -> None:
    names = [f"shop-{number}" for number in range(12)]
    with (
        a_site() as site,
        receiving() as slack,
        Rig(tmp_path, dict.fromkeys(names, a_source(site)), PIPELINE) as rig,
    ):
        assert rig.penstock("run", *names).returncode == 0
        site.is_down = True
        rig.enqueue(*names)
        process = rig.start("up")
        until(rig.store.hosts.closed, "the host has asked to wait", process=process)
        kill(process.pid)
        process.wait()

        # What is late is a matter of hours; here it is one of a second, and a minute has passed.
        late = dict.fromkeys(names, a_source(site) | {"freshness": "1s"})
        configure(rig, sources=late, alerts=[route(slack)])
        process = rig.start("up", **WrongClock(tmp_path, "later", 60.0).environment)
        until(lambda: len(alerts(rig)) == 12, "every source has its alert", process=process)
        until(lambda: slack.seen, "somebody is told", process=process)
        found = alerts(rig)
        assert {alert["source"] for alert in found} == set(names)
        assert {alert["rule"] for alert in found} == {"stale-source"}
        [lead] = {alert["incident"] for alert in found}
        assert all(site.host in alert["cause"] for alert in found)
        shown = json.loads(rig.penstock("alerts", "show", str(lead), "--json").stdout)
        assert shown["cause"] == f"{site.host} asks to wait (429 or 503), so its jobs wait"
        process.terminate()
        assert process.wait(timeout=60) == 0
        [(_, body)] = slack.seen
        assert "of the same cause" in json.loads(body)["text"]


def test_alert_whose_leader_is_killed_before_it_can_note_that_it_was_accepted_arrives_under_one_id(
    tmp_path: Path,
) -> None:
    """Slack or a mail server may show it twice; who remembers the id of a delivery has it once."""
    leaders: list[int] = []

    @contextmanager
    def dying() -> Iterator[None]:
        """Stands still while it is answered, and never hears of it."""
        pid = leaders.pop() if leaders else None
        if pid is not None:
            os.kill(pid, signal.SIGSTOP)
        yield
        if pid is not None:
            kill(pid)

    with (
        a_site() as site,
        receiving(around=dying) as receiver,
        Rig(tmp_path, {"shop": a_source(site)}, PIPELINE) as rig,
    ):
        assert rig.penstock("run", "shop").returncode == 0
        late = {"shop": a_source(site) | {"freshness": "1s"}}
        configure(rig, sources=late, alerts=[route(receiver)])
        killed = rig.start("up", **WrongClock(tmp_path, "late", 60.0).environment)
        leaders.append(killed.pid)
        assert killed.wait(timeout=60) == -signal.SIGKILL
        assert [row.state for row in rig.store.hooks.outbox()] == ["due"]

        # A host that is three minutes later: what the dead one was sending is due again.
        process = rig.start("up", **WrongClock(tmp_path, "later", 240.0).environment)
        until(lambda: len(receiver.seen) == 2, "it is sent again", process=process)
        until(
            lambda: [row.state for row in rig.store.hooks.outbox()] == ["delivered"],
            "it is noted",
            process=process,
        )
        process.terminate()
        assert process.wait(timeout=60) == 0
        assert rig.penstock("up", "--until-idle").returncode == 0
    assert [headers["Penstock-Delivery"] for headers, _ in receiver.seen] == [
        receiver.seen[0][0]["Penstock-Delivery"]
    ] * 2
    assert receiver.seen[0][1] == receiver.seen[1][1]
