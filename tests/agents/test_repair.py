"""Self-repair: a site is redesigned, and its schema is mended, or a person is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.agents.repair import Limits, Shadow, objections
from penstock.engine.leader.trials import Trials
from penstock.store.rows import RunRow
from penstock.testing import Simulation
from tests.agents.corpus.measure import Figures, measure
from tests.agents.corpus.sites import FAMILY_NAMES, VARIANTS, site
from tests.agents.site_project import SiteProject

DAY_S = 86_400.0
SCHEDULES = {
    "mapper": {"signal": "source.structure_drifted of items"},
    "steward": {"signal": "trial.measured of items"},
    "validator": {"signal": ["site.learned of steward", "site.learned of mapper"]},
    "items": {"signal": "site.validated of validator"},
}
BY_ITSELF = {
    **SCHEDULES,
    "mapper": {"signal": ["source.structure_drifted of items", "site.invalid of validator"]},
}
RULES = {"failures-in-an-hour": {"failures": 11, "rise": 1}}


def _redesigned(folder: Path, **repair: Any) -> SiteProject:
    """A site that was read, and whose pages then were built in another way."""
    trial = SiteProject(
        folder,
        site(0, 0),
        schedules=SCHEDULES,
        settings={"alert_rules": RULES},
        steward={"repair": repair} if repair else {},
    )
    trial.run("mapper")
    trial.run("validator")
    trial.run("items", "full")
    trial.clock.advance(DAY_S)
    trial.redesign(site(0, 0, is_redesigned=True))
    assert trial.run("items", "full").state in ("partial", "failed")
    return trial


def _signals(trial: SiteProject) -> list[Any]:
    with trial.project() as project:
        return project.connection.signals.newest(limit=100)[::-1]


def _figures(trial: SiteProject) -> Figures:
    found = trial.records("items")

    def read(url: str, html: str) -> dict[str, object] | None:
        data = found.get(url, {})
        return {name: value for name, value in data.items() if name not in ("url", "extracted")}

    return measure(trial.site, read)


def _started(runs: list[RunRow]) -> list[str]:
    return [f"{run.source} {run.kind}" for run in runs]


CHAIN = [
    "mapper incremental",
    "items replay",
    "steward incremental",
    "validator incremental",
    "items incremental",
]


def test_a_redesign_is_mended_without_a_person_inside_the_limits(tmp_path: Path) -> None:
    trial = _redesigned(tmp_path, max_changed=0.02, max_lost=0.1)

    done = trial.lead()

    wanted = iter(_started(done))
    assert all(each in wanted for each in CHAIN), _started(done)
    [measured] = [each.data for each in _signals(trial) if each.name == "trial.measured"]
    assert measured["records"] == {"same": 0, "changed": 24}
    # The new pages do not say in which currency a price is.
    assert measured["values"] == {"same": 352, "lost": 24}
    assert measured["fields"]["currency"] == {"lost": 24}
    schema = trial.schema
    assert (schema["version"], schema["is_valid"], schema["candidate"]) == (2, True, None)
    assert schema["schema_proposals"] == []
    figures = _figures(trial)
    assert (figures.precision, figures.recall) >= (0.97, 0.92), figures.mistakes[:5]
    with trial.project() as project:
        assert not project.connection.replays.has_staged(measured["replay"])


# A redesign that breaks nothing loudly, one in which all pages moved, and one that fails.
QUICK = [(1, 0), (6, 1), (8, 2)]
OTHERS = [
    pytest.param(family, variant, marks=pytest.mark.torture)
    for family in range(len(FAMILY_NAMES))
    for variant in range(VARIANTS)
    if (family, variant) not in QUICK
]


# Sites that say less after their redesign than the limits allow.
OUTSIDE = {(3, 2), (7, 2), (9, 2)}


def _goes_through_a_redesign(trial: SiteProject, family: int, variant: int) -> list[str]:
    """All that happens by itself, with one look of the validator; the objections to a repair, if any."""
    for name in ("mapper", "validator"):
        trial.run(name)
    assert trial.run("items", "full").state == "completed"
    trial.clock.advance(DAY_S)
    trial.redesign(site(family, variant, is_redesigned=True))
    trial.run("items", "full")
    trial.lead()
    if trial.schema["version"] == 1 and not trial.schema["schema_proposals"]:
        trial.run("validator")
        trial.lead()
    asked = trial.schema["schema_proposals"]
    return [why for each in asked for why in each["justification"]["objections"]]


def _approve(trial: SiteProject) -> None:
    with trial.project() as project:
        [asked] = project.sites.proposals().items
        project.sites.approve(asked.domain, asked.id, actor="ann", reason="all pages moved")
    trial.lead()


@pytest.mark.parametrize(("family", "variant"), [*QUICK, *OTHERS])
def test_every_family_is_read_again_after_its_redesign(
    tmp_path: Path, family: int, variant: int
) -> None:
    trial = SiteProject(
        tmp_path,
        site(family, variant),
        schedules=BY_ITSELF,
        settings={"alert_rules": RULES},
        steward={"repair": {"max_changed": 0.02, "max_lost": 0.1}},
    )

    objections = _goes_through_a_redesign(trial, family, variant)

    # Records have their addresses as keys: of a site that moved them all, none can be compared.
    has_moved = variant % 2 == 1
    if has_moved:
        assert objections == ["the replay compared 0 records, fewer than 10"]
    elif objections:
        assert (family, variant) in OUTSIDE
        assert all(each.startswith("values lost: ") for each in objections)
    if objections:
        _approve(trial)
    assert (trial.schema["version"], trial.schema["is_valid"]) == (2, True)
    figures = _figures(trial)
    assert figures.precision >= 0.97, figures.mistakes[:5]
    assert figures.recall >= 0.92, figures.missed


def test_a_redesign_is_repaired_on_postgres(tmp_path: Path, postgres_on_virtual_time: str) -> None:
    trial = SiteProject(
        tmp_path,
        site(3, 0),
        schedules=BY_ITSELF,
        settings={"alert_rules": RULES, "store": postgres_on_virtual_time},
        steward={"repair": {"max_lost": 0.1}},
    )

    assert _goes_through_a_redesign(trial, 3, 0) == []

    assert (trial.schema["version"], trial.schema["is_valid"]) == (2, True)
    assert _figures(trial).recall >= 0.92


def test_a_schema_that_never_convinces_is_learned_again_once_a_day(tmp_path: Path) -> None:
    trial = SiteProject(tmp_path, site(0, 0), schedules=BY_ITSELF, validator={"least_score": 1.1})
    trial.run("mapper")

    trial.run("validator")

    started = _started(trial.lead())
    assert started.count("mapper incremental") <= 2
    assert trial.schema["version"] == 1
    trial.clock.advance(DAY_S)
    trial.run("validator")
    trial.lead()
    assert trial.schema["version"] == 2


def test_outside_the_limits_a_person_decides_with_the_difference_before_them(
    tmp_path: Path,
) -> None:
    trial = _redesigned(tmp_path, max_lost=0.0)

    done = trial.lead()

    assert _started(done)[-1] == "steward incremental"
    assert trial.schema["version"] == 1
    refused = trial.run("items")
    assert "1 of its proposals is open" in trial.errors(refused)[0]
    with trial.project() as project:
        [proposal] = project.sites.proposals().items
        assert (proposal.kind, proposal.domain) == ("redesign", trial.site.name)
        assert proposal.justification["objections"] == ["values lost: 24 of 376, more than 0.0%"]
        assert proposal.justification["shadow"]["score"] >= 0.8
        replay = proposal.justification["trial"]["replay"]
        assert project.replays.diff(replay).totals.changed == 24
        project.sites.approve(proposal.domain, proposal.id, actor="ann", reason="it is right")
        assert not project.connection.replays.has_staged(replay)

    wanted = iter(_started(trial.lead()))
    assert all(each in wanted for each in CHAIN[-2:])
    assert {each["extracted"]["schema_version"] for each in trial.records("items").values()} == {2}


def test_a_trial_is_started_and_measured_once_whichever_host_leads(tmp_path: Path) -> None:
    trial = SiteProject(tmp_path, site(0, 0))
    for each in ("mapper", "validator", "items"):
        trial.run(each)
    with trial.project() as project:
        about = {"source": "items", "params": {}, "ignore": [], "about": {"n": 1}}
        project.signals.raise_("trial.wanted", about)
        [signal] = project.connection.signals.newest("trial.wanted")
        first = Trials(project, project.connection)
        first.receive(signal)
        first.receive(signal)
        with Simulation(project, trial.network, seed=7, clock=trial.clock) as simulation:
            simulation.run()
        # Another host, which has seen nothing of it.
        second = Trials(project, project.connection)
        second.plan()
        for leader in (second, first, second):
            leader.look()
        [measured] = project.connection.signals.newest("trial.measured")
        assert (measured.source, measured.data["about"]) == ("items", {"n": 1})
        assert measured.data["records"] == {"same": 24}
        replays = [row for row in project.connection.runs.newest() if row.kind == "replay"]
        assert [row.id for row in replays] == [measured.data["replay"]]
        project.signals.raise_("trial.wanted", {**about, "source": "images"})
        third = Trials(project, project.connection)
        third.plan()
        assert (
            "no run with pages"
            in project.connection.signals.newest("trial.measured")[0].data["problem"]
        )


GOOD: dict[str, Any] = {
    "state": "completed",
    "pages": 30,
    "failed": 0,
    "records": {"same": 18, "changed": 2},
    "values": {"same": 196, "changed": 2, "lost": 2, "gained": 9},
}
NOW = Shadow(12, old_values=20, new_values=120, as_recorded=99, otherwise=1, score=0.95)


@pytest.mark.parametrize(
    ("limits", "trial", "shadow", "why"),
    [
        (None, {}, {}, "no limits are set"),
        (
            {},
            {"values": {"same": 180, "changed": 20}},
            {},
            "values changed: 20 of 200, more than 2.0%",
        ),
        ({"max_lost": 0.0}, {}, {}, "values lost: 2 of 200"),
        ({"min_records": 21}, {}, {}, "compared 20 records, fewer than 21"),
        ({}, {"records": {"same": 18, "removed": 1}}, {}, "records removed: 1 of 18"),
        ({}, {"failed": 3}, {}, "pages failed: 3 of 30"),
        ({}, {"state": "failed"}, {}, "the replay is failed"),
        ({}, {"problem": "there is no run"}, {}, "there is no replay to judge by: there is no run"),
        ({}, {}, {"pages": 0}, "no page could be read"),
        ({}, {}, {"score": 0.7}, "scores 0.70 on pages as they are now"),
        ({}, {}, {"otherwise": 30}, "30 of 129 values differ"),
        ({}, {}, {"old_values": 121}, "finds 120 values"),
    ],
)
def test_what_is_beyond_a_limit_is_named(
    limits: dict[str, Any] | None, trial: dict[str, Any], shadow: dict[str, Any], why: str
) -> None:
    assert objections(Limits(), GOOD, NOW) == []
    made = None if limits is None else Limits(**limits)

    [found] = objections(made, {**GOOD, **trial}, msgspec.structs.replace(NOW, **shadow))

    assert why in found


def test_limits_that_nobody_knows_are_named(tmp_path: Path) -> None:
    trial = SiteProject(tmp_path, site(0, 0), steward={"repair": {"max_chnaged": 1}})

    assert "params.repair" in trial.errors(trial.run("steward"))[0]
