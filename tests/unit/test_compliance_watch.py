"""Compliance checks that go stale: an alert says so, and the service checks again where that is wanted."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.engine.leader.alerts import AlertChore
from penstock.engine.leader.compliance import ComplianceChore
from penstock.errors import Refused
from penstock.settings import load_settings
from penstock.testing import VirtualClock
from tests.unit.test_onboarding import BROKEN, STEPS, Site, keys, site

__all__ = ["site"]
DAY_S = 86_400.0


class Active:
    """A source that is in trial, so that it may be fetched while its checks are fresh; time is virtual."""

    def __init__(self, folder: Path, served: Site, **onboarding: Any) -> None:
        (folder / "onboarding_steps.py").write_text(STEPS)
        whole = {
            "project": "watched",
            "onboarding": {"required": True, **onboarding},
            "sources": {"new": keys(served), "other": keys(served)},
        }
        (folder / "penstock.yaml").write_text(json.dumps(whole))
        self.clock = VirtualClock()
        self.served = served
        self.project = Project(load_settings(folder), self.clock)
        self.alerts = AlertChore(self.project, self.project.connection)
        self.alerts.plan()
        self.chore = ComplianceChore(self.project, self.project.connection)

    def approve(self, *names: str) -> None:
        for name in names:
            sources = self.project.sources
            sources.propose(name, owner="team")
            sources.check(name, terms=f"{self.served.url}/terms")
            sources.accept_terms(name, actor="bob", reason="read them")
            sources.approve(name, actor="bob", reason="fine")
        self.served.asked.clear()

    def lead(self, days: float = 0.0) -> None:
        """Some time later: what the leader does until nothing is due."""
        self.clock.advance(days * DAY_S + 61.0)
        for _ in range(6):
            self.chore.look()
            for thread in threading.enumerate():
                if thread.name == "penstock-compliance":
                    thread.join()
        self.alerts.look()

    def open_alerts(self) -> list[tuple[str, str]]:
        rows = self.project.alerts.list().items
        return [
            (each.rule, each.summary)
            for each in rows
            if each.rule == "compliance-stale" and each.resolved_at is None
        ]

    @property
    def gaps(self) -> list[str]:
        return list(self.project.sources.compliance("new").gaps)


@pytest.fixture
def opened(tmp_path: Path, site: Site) -> Iterator[Any]:
    made: list[Active] = []

    def make(**onboarding: Any) -> Active:
        made.append(Active(tmp_path, site, **onboarding))
        return made[0]

    yield make
    for each in made:
        each.alerts.close()
        each.project.close()


def test_check_that_went_stale_is_an_alert_until_it_is_made_again(opened: Any) -> None:
    active = opened()
    active.approve("new")
    active.lead(6)
    assert active.open_alerts() == []

    active.lead(1)

    [(_, summary)] = active.open_alerts()
    assert summary == "it may not be fetched: robots.txt was last checked 7 d ago"
    assert active.served.asked == []
    active.project.sources.check("new")
    active.lead()
    assert active.open_alerts() == []


def test_alert_comes_ahead_where_that_is_asked_for(opened: Any, tmp_path: Path) -> None:
    active = opened()
    active.approve("new")
    text = json.loads((tmp_path / "penstock.yaml").read_text())
    text["alert_rules"] = {"compliance-stale": {"ahead": "2d"}}
    (tmp_path / "penstock.yaml").write_text(json.dumps(text))
    with Project(load_settings(tmp_path), active.clock) as project:
        active.alerts.close()
        active.alerts = AlertChore(project, project.connection)
        active.alerts.plan()
        active.lead(4.9)
        assert active.open_alerts() == []
        active.lead(0.2)
    [(_, summary)] = active.open_alerts()
    assert summary.startswith("a check of its compliance goes stale in 45.6 h")


def test_service_checks_again_before_a_check_is_stale(opened: Any) -> None:
    active = opened(recheck=True)
    active.approve("new", "other")
    active.lead(3)
    assert active.served.asked == []

    for _ in range(20):
        active.lead(2)
        assert active.gaps == []
    assert active.open_alerts() == []
    asked = active.served.asked
    # Each source once in half of the time that robots.txt holds; terms go with it.
    assert asked.count("/robots.txt") == asked.count("/terms") == 2 * 10
    [check, *_] = active.project.sources.compliance("new").checks
    assert (check.actor, check.reason) == ("penstock", "the last check was about to go stale")


def test_terms_that_changed_wait_for_a_person_and_are_an_alert(opened: Any) -> None:
    active = opened(recheck=True)
    active.approve("new")
    active.served.pages["/terms"] = "<p>Be nicer.</p>"

    active.lead(4)

    assert active.gaps == ["its terms have changed since they were accepted"]
    assert active.open_alerts()[0][1].endswith("its terms have changed since they were accepted")
    with pytest.raises(Refused, match="its terms have changed"):
        active.project.sources.trial("new")
    active.project.sources.accept_terms("new", actor="bob", reason="read the new ones")
    active.lead()
    assert (active.gaps, active.open_alerts()) == ([], [])


def test_site_that_does_not_answer_is_asked_again_later_and_not_all_the_time(opened: Any) -> None:
    active = opened(recheck=True, robots_max_age="4h", terms_max_age="4h")
    active.approve("new")
    active.served.pages.update({"/robots.txt": BROKEN, "/terms": BROKEN})

    active.lead(2.1 / 24)
    first = len(active.served.asked)
    active.lead()
    assert len(active.served.asked) == first > 0
    active.lead(1 / 24)
    assert len(active.served.asked) == 2 * first


def test_nothing_is_asked_of_a_source_that_nobody_approved_or_that_is_on_hold(opened: Any) -> None:
    active = opened(recheck=True)
    active.approve("new")
    active.project.sources.propose("other", owner="team")
    active.project.sources.legal_hold("new", actor="ann", reason="a letter")

    active.lead(30)

    assert active.served.asked == []
    active.project.sources.legal_release("new", actor="ann", reason="settled")
    active.lead()
    assert active.served.asked == ["/robots.txt", "/terms"]
