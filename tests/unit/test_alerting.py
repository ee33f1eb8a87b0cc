"""Alerts from end to end: a source breaks, its alert opens with evidence, is delivered once, and resolves."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.app.views.alerts import AlertDetail, AlertView
from penstock.engine.leader.alerts import AlertChore
from penstock.engine.leader.hooks import HookChore
from penstock.store.alert_rows import Opening
from penstock.store.upkeep import Keep
from penstock.testing import VirtualClock
from tests.unit.site import Shop, Site
from tests.unit.test_alert_routes import SLACK, Mailbox, Receiver, mail_server, receiving

DAY_S = 86_400.0
# Of fewer than ten records per run the rule needs longer to be sure.
PAGES = 12
GOOD = """<html><body><div class="product"><span class="price">{n} EUR</span></div>
<script type="application/ld+json">{{"@type": "Product", "name": "{n}"}}</script></body></html>"""
REDESIGNED = """<html><body><section class="offer"><b>{n} EUR</b></section></body></html>"""
PIPELINE = """
from penstock import Pipeline

MADE = "{made}"
shop = Pipeline("shop")


@shop.step(unit="run")
async def discover(ctx):
    async for url in ctx.sitemap(ctx.params["sitemap"]):
        yield {{"url": url}}


@shop.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    if 'class="price"' in response.text:
        yield {{"url": response.url}}


@shop.step(after="extract", unit="candidate")
def persist(page, ctx):
    ctx.save("page", key=page["url"], data=page)
"""


class Watched:
    """A shop that is read every day, the chores of its leader, and what a receiver was told."""

    def __init__(self, folder: Path, clock: VirtualClock | None = None) -> None:
        self.site = Site()
        self.shop = Shop(folder, self.site, clock or VirtualClock())

    def serve(self, body: str) -> None:
        for n in range(PAGES):
            self.site.page(f"/{n}", body.format(n=n))

    def days(self, count: int) -> None:
        for _ in range(count):
            self.shop.run()
            self.shop.later(1)

    @contextmanager
    def leading(self) -> Iterator[tuple[Project, AlertChore]]:
        with self.shop.project() as project:
            chore = AlertChore(project, project.connection)
            chore.plan()
            yield project, chore
            chore.close()

    def look(self) -> list[AlertView]:
        """One look of a leader that has just begun; answers with all alerts that there are."""
        with self.leading() as (project, chore):
            chore.look()
            return list(project.alerts.each(state="all"))

    def deliver(self) -> list[str]:
        """Send what is due, until nothing is; answers with the states of the outbox, the newest first."""
        with self.shop.project() as project:
            hooks = HookChore(project, project.connection)
            for _ in range(4):
                hooks.part()
                self.shop.clock.advance(60.0)
            return [row.state for row in project.connection.hooks.outbox()]

    def detail(self, alert: int) -> AlertDetail:
        with self.shop.project() as project:
            return project.alerts.get(alert)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A shop that was read for 16 days, was redesigned, and was read twice more; and when that was."""
    watched = Watched(tmp_path_factory.mktemp("broken") / "shop")
    watched.shop.write(pipelines=PIPELINE)
    watched.serve(GOOD)
    watched.days(16)
    watched.serve(REDESIGNED)
    watched.days(2)
    return watched.shop.folder, watched.shop.clock.now()


def copy_of(broken: tuple[Path, float], folder: Path, **project: Any) -> Watched:
    """The broken shop, with these keys in its penstock.yaml."""
    template, now = broken
    shutil.copytree(template, folder / "shop")
    config = folder / "shop" / "penstock.yaml"
    config.write_text(json.dumps(json.loads(config.read_text()) | project))
    watched = Watched(folder / "shop", VirtualClock(now))
    watched.serve(REDESIGNED)
    watched.shop.seed = 1000
    return watched


def route(receiver: Receiver, **more: Any) -> dict[str, Any]:
    to = f"http://{receiver.place}{SLACK}"
    return {"to": to, "name": "oncall", "allow_private": True, **more}


def texts(receiver: Receiver) -> list[str]:
    return [json.loads(body)["text"] for _, body in receiver.seen]


def test_source_that_yields_nothing_opens_an_alert_with_evidence_that_is_told_once_and_resolves(
    tmp_path: Path, broken: tuple[Path, float]
) -> None:
    with receiving(503, 200) as slack:
        watched = copy_of(broken, tmp_path, alerts=[route(slack, when="severity >= high")])
        [alert] = watched.look()
        assert (alert.rule, alert.source, alert.state) == ("zero-yield", "shop.example", "open")
        assert watched.look() == [alert]  # another leader opens no second one
        assert watched.deliver() == ["delivered"]
        assert watched.deliver() == ["delivered"]
        assert len(slack.seen) == 2  # refused once, accepted once
        assert texts(slack)[0] == texts(slack)[1]
        assert "[high] shop.example: " in texts(slack)[0]

        found = watched.detail(alert.id)
        assert [number.value for number in found.numbers][:1] == [0]
        assert found.numbers[0].baseline == PAGES
        assert [example.what for example in found.examples] == ["page"] * 3
        for example in found.examples:
            about = f"{example.url} (job {example.job} of run {example.run})"
            assert about in json.dumps(json.loads(slack.seen[0][1]))
        assert found.structure is not None
        assert {"JSON-LD Product", "span.price"} <= set(found.structure.vanished)
        assert "section.offer" in found.structure.appeared
        assert found.structure.good_snapshot in found.pinned_snapshots
        assert found.first_event is not None
        assert found.first_event.kind == "run.partial"
        assert found.runbook == "source-broke"
        assert "penstock pause shop.example" in found.commands

        watched.serve(GOOD)
        watched.days(2)
        [alert] = watched.look()
        assert alert.state == "resolved"
        assert watched.deliver() == ["delivered", "delivered"]
        assert len(slack.seen) == 3
        assert "[resolved] shop.example: " in texts(slack)[2]


def test_evidence_can_be_read_after_retention_has_dropped_the_rest(
    tmp_path: Path, broken: tuple[Path, float]
) -> None:
    watched = copy_of(broken, tmp_path)
    [alert] = watched.look()
    pinned = watched.detail(alert.id).pinned_snapshots
    watched.shop.later(100)
    with watched.shop.project() as project:
        keep = Keep(30 * DAY_S, 30 * DAY_S, None, 30 * DAY_S)
        while project.connection.upkeep.prune(keep):
            pass
        found = project.alerts.get(alert.id)
        assert found.first_event is not None
        assert project.connection.journal.events(run_id=found.first_event.run) == []
        for example in found.examples:
            pages = project.connection.snapshots.at(example.url)
            assert example.snapshot in {page.id for page in pages}
            assert all(page.id in pinned for page in pages)
            assert "offer" in project.read_page(pages[0]).text


def test_alert_that_a_person_resolved_stays_resolved_until_its_condition_has_ended(
    tmp_path: Path, broken: tuple[Path, float]
) -> None:
    watched = copy_of(broken, tmp_path)
    [alert] = watched.look()
    with watched.shop.project() as project:
        assert project.alerts.resolve(alert.id, actor="ann", reason="known")
    watched.days(1)
    [alert] = watched.look()
    assert alert.state == "resolved"


def test_snoozed_alert_reminds_its_routes_when_the_time_is_over(
    tmp_path: Path, broken: tuple[Path, float]
) -> None:
    with receiving() as slack:
        watched = copy_of(broken, tmp_path, alerts=[route(slack)])
        [alert] = watched.look()
        watched.deliver()
        with watched.shop.project() as project:
            assert project.alerts.snooze(alert.id, 3600.0, actor="ann")
        watched.look()
        watched.deliver()
        assert len(slack.seen) == 1
        watched.shop.clock.advance(3600.0)
        watched.look()
        watched.deliver()
        assert len(slack.seen) == 2


def test_quiet_hours_hold_a_message_back_and_a_digest_joins_several(
    tmp_path: Path, broken: tuple[Path, float]
) -> None:
    with receiving() as slack:
        quiet = route(slack, quiet="00:00-23:00", digest="1h")
        watched = copy_of(broken, tmp_path, alerts=[quiet])
        with watched.leading() as (project, chore):
            chore.look()
            until_23 = DAY_S - project.now() % DAY_S - 3600.0
            watched.shop.clock.advance(until_23 - 60.0 if until_23 > 60.0 else 0.0)
            chore.look()
            assert project.connection.hooks.outbox() == []
            watched.shop.clock.advance(120.0)
            chore.look()
            [row] = project.connection.hooks.outbox()
            assert row.hook == "alert:oncall"


def test_dead_route_is_an_alert_that_the_others_hear_of(
    tmp_path: Path, broken: tuple[Path, float]
) -> None:
    with receiving(*[500] * 20) as dead, receiving() as slack:
        to = {"to": f"http://{dead.place}/x", "name": "dead", "allow_private": True}
        watched = copy_of(broken, tmp_path, alerts=[to, route(slack, when="rule == route-dead")])
        watched.look()
        watched.deliver()
        watched.shop.clock.advance(3600.0)
        alerts = {alert.rule: alert for alert in watched.look()}
        assert alerts["route-dead"].source is None
        assert "it answered 500" in alerts["route-dead"].summary
        watched.deliver()
        assert "[high] project: alerts can't be delivered to dead" in texts(slack)[0]


def test_leader_killed_between_acceptance_and_its_note_sends_the_same_delivery_once_more(
    tmp_path: Path, broken: tuple[Path, float]
) -> None:
    """No protocol can do better; a receiver knows it by its id, and after the note it is never sent again."""
    mailbox = Mailbox()
    with receiving() as slack, mail_server(mailbox) as port:
        mail = {"to": f"smtp://127.0.0.1:{port}/?to=ops@example.com", "name": "mail"}
        watched = copy_of(broken, tmp_path, alerts=[route(slack), mail])
        watched.look()
        with watched.shop.project() as project:
            killed = HookChore(project, project.connection)
            killed.look()
            for sending in [each for each in threading.enumerate() if each.name == "hook"]:
                sending.join()
            # It is gone before it can note anything.
        assert (len(slack.seen), len(mailbox.mails)) == (1, 1)
        with watched.shop.project() as project:
            HookChore(project, project.connection).part()  # while it may still be at work
        assert (len(slack.seen), len(mailbox.mails)) == (1, 1)
        assert watched.deliver() == ["delivered", "delivered"]
        assert watched.deliver() == ["delivered", "delivered"]
    assert len({headers["Penstock-Delivery"] for headers, _ in slack.seen}) == 1
    assert len({mail["Message-ID"] for mail in mailbox.mails}) == 1
    assert (len(slack.seen), len(mailbox.mails)) == (2, 2)
    assert "[high] shop.example: 2 runs in a row yielded nothing" in mailbox.mails[0]["Subject"]


def test_digest_joins_what_opened_within_its_time_into_one_message(
    tmp_path: Path, broken: tuple[Path, float]
) -> None:
    with receiving() as slack:
        watched = copy_of(broken, tmp_path, alerts=[route(slack, digest="1d")])
        with watched.leading() as (project, chore):
            chore.look()
            source = project.source_ids["shop.example"]
            [alert] = project.connection.alerts.waiting()
            finding = project.connection.alerts.get(alert.alert_id)
            assert finding is not None
            about = ("budget-running-out", source, "low", "60 % used")
            opening = Opening(*about, finding=finding.finding, routes=("oncall",))
            project.connection.alerts.open(opening)
            watched.shop.clock.advance(DAY_S - 60.0)
            chore.look()
            assert project.connection.hooks.outbox() == []
            watched.shop.clock.advance(120.0)
            chore.look()
        watched.deliver()
        [text] = texts(slack)
        assert text == "visits: 2 alerts: 1 high, 1 low"


def test_host_in_trouble_is_one_message_for_all_twelve_sources_that_read_from_it(
    tmp_path: Path,
) -> None:
    names = [f"shop-{number}" for number in range(12)]
    with receiving() as slack:
        watched = Watched(tmp_path / "shop")
        watched.shop.write(pipelines=PIPELINE, fetch={"hosts": ["shop.example"]})
        config = watched.shop.folder / "penstock.yaml"
        known = json.loads(config.read_text())
        source = known["sources"].pop("shop.example")
        known |= {"sources": dict.fromkeys(names, source), "alerts": [route(slack)]}
        config.write_text(json.dumps(known))
        watched.serve(GOOD)
        for round_ in range(11):
            if round_ == 9:
                watched.serve("closed for maintenance")
            with watched.leading() as (project, chore):
                for name in names:
                    project.run(name)
                watched.shop.work(project)
                chore.look()
            watched.shop.later(2)
        watched.deliver()
        with watched.shop.project() as project:
            alerts = list(project.alerts.each())
        assert {alert.source for alert in alerts} == set(names)
        assert {alert.incident for alert in alerts} == {min(alert.id for alert in alerts)}
        assert "shop.example" in alerts[0].cause
        assert len(slack.seen) == 1
        assert f"(and {len(alerts) - 1} more alerts of the same cause)" in texts(slack)[0]


def test_run_in_the_foreground_looks_for_alerts_before_it_ends(
    tmp_path: Path, broken: tuple[Path, float]
) -> None:
    watched = copy_of(broken, tmp_path, alert_rules={"zero-yield": {"runs": 3}})
    with watched.leading() as (project, chore):
        chore.look()
        assert list(project.alerts.each()) == []
        run = project.run("shop.example")
        watched.shop.work(project)
        assert project.require_run(run).is_ended
        chore.part()
        assert [alert.rule for alert in project.alerts.each()] == ["zero-yield"]


def test_rule_that_is_off_opens_nothing(tmp_path: Path, broken: tuple[Path, float]) -> None:
    assert copy_of(broken, tmp_path, alert_rules={"zero-yield": "off"}).look() == []
