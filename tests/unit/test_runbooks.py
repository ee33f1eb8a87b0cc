"""Runbooks as data: what they name exists, and the step that applies follows from the readings."""

from __future__ import annotations

from operator import attrgetter

import pytest

from penstock import Project
from penstock.alerts.rules import RULES
from penstock.app.project_signals import ProjectSignals
from penstock.app.runbook_acts import ACTS
from penstock.app.signal_readings import COMPARED
from penstock.app.source_signals import SourceSignals
from penstock.app.verbs.acts import ACTS as WEB_ACTS
from penstock.app.verbs.roles import Identity, Role
from penstock.errors import Refused
from penstock.runbooks.library import RUNBOOKS
from penstock.runbooks.progress import next_step, standings
from penstock.runbooks.runbook import Check, Reading, Runbook, Step
from penstock.runbooks.signals import SIGNALS, words_of
from penstock.shell import COMMANDS

EVERY = list(RUNBOOKS.values())
FOUND_BY_STEPS = {"store_sound", "store_was_away"}


def checks_of(runbook: Runbook) -> list[Check]:
    of_steps = [check for step in runbook.steps for check in (*step.when, *step.settled)]
    return [*runbook.detects, *runbook.bad_run, *of_steps]


def test_every_alert_leads_to_a_runbook_that_exists() -> None:
    assert {rule.runbook for rule in RULES.values()} <= set(RUNBOOKS)


@pytest.mark.parametrize("runbook", EVERY, ids=attrgetter("name"))
def test_every_signal_of_a_runbook_is_described_and_can_be_read(runbook: Runbook) -> None:
    names = {*runbook.signals(), *(check.signal for check in checks_of(runbook))}
    readers = {*dir(SourceSignals), *dir(ProjectSignals), *COMPARED, *FOUND_BY_STEPS}
    assert names <= set(SIGNALS)
    assert names <= readers


@pytest.mark.parametrize("runbook", EVERY, ids=attrgetter("name"))
def test_every_step_is_performed_or_explained_by_verbs_that_exist(runbook: Runbook) -> None:
    names = [step.name for step in runbook.steps]
    assert len(set(names)) == len(names)
    assert names[-1] == "confirm"
    for step in runbook.steps:
        assert (step.kind == "act") == bool(step.verb), step.name
        assert not step.verb or step.verb in ACTS, step.name
        for verb in (step.verb, *step.verbs):
            assert not verb or verb in COMMANDS or verb == "checkpoints.rewind", verb
            noun = verb.partition(".")[0]
            assert not noun or hasattr(Project, noun), verb


@pytest.mark.parametrize("runbook", EVERY, ids=attrgetter("name"))
def test_every_runbook_detects_mitigates_finds_the_cause_and_goes_back(runbook: Runbook) -> None:
    assert runbook.detects
    parts = {step.part for step in runbook.steps}
    assert {"mitigate", "root cause", "roll back and replay", "confirm"} - parts <= {
        "roll back and replay"
    }


STOP = Step(
    name="stop", part="mitigate", title="", why="", while_raised=True, verb="sources.pause",
    settled=(Check("paused", "is", True),),
)  # fmt: skip
UNDO = Step(
    name="undo", part="roll back and replay", title="", why="", verb="runs.undo",
    when=(Check("bad_records", ">", 0),),
)  # fmt: skip
END = Step(name="confirm", part="confirm", title="", why="", kind="look")
BOOK = Runbook(
    name="test", title="", scope="source", about="", steps=(STOP, UNDO, END),
    detects=(Check("failed_share", ">", 0.2),),
)  # fmt: skip


@pytest.mark.parametrize(
    ("failed", "paused", "records", "recorded", "following"),
    [
        (0.5, False, 3, {}, "stop"),
        (0.5, True, 3, {}, "undo"),
        (0.5, False, 3, {"stop": "skipped"}, "undo"),
        (0.5, True, 0, {}, None),
        (0.5, True, None, {}, None),
        (0.1, False, 3, {}, "undo"),
        (0.1, False, 0, {}, "confirm"),
        (None, False, 0, {"confirm": "done"}, None),
    ],
)
def test_step_that_applies_follows_from_the_readings_and_what_is_recorded(
    failed: float | None,
    paused: bool,
    records: int | None,
    recorded: dict[str, str],
    following: str,
) -> None:
    readings = {
        "failed_share": Reading(failed),
        "paused": Reading(paused),
        "bad_records": Reading(records),
    }
    found = next_step(standings(BOOK, readings, recorded))  # type: ignore[arg-type]
    assert (found and found.name) == following


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("failed_share", 0.256, "26 %"),
        ("pages_growth", 3.04, "3.0 ×"),
        ("store_size", 12_345_678, "12.3 MB"),
        ("paused", True, "yes"),
        ("first_bad_run", 12, "12"),
        ("quarantined", 12_000, "12,000"),
        ("quarantined", None, "unknown"),
    ],
)
def test_values_are_written_in_their_unit(name: str, value: float | None, words: str) -> None:
    assert words_of(name, value) == words


def test_step_over_http_takes_the_role_of_the_act_that_it_performs() -> None:
    refusals = []
    for runbook in EVERY:
        for step in runbook.steps:
            needed = WEB_ACTS[step.verb].role if step.verb in WEB_ACTS else Role.OPERATOR
            arguments = {"runbook": runbook.name, "step": step.name}
            by = Identity("eve", Role.VIEWER if needed is Role.OPERATOR else Role.OPERATOR)
            with pytest.raises(Refused) as refused:
                WEB_ACTS["runbooks.do"].call(None, by, arguments)  # type: ignore[arg-type]
            assert refused.value.code == "role_needed"
            refusals.append(needed)
    assert set(refusals) == {Role.OPERATOR, Role.ADMIN}
