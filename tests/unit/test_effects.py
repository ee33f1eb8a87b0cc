"""Every effect knows what becomes of it: in a replay, in a probe, in the journal and in a child process."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import fields
from typing import Any, NamedTuple

import pytest

from penstock.engine.worker.child_protocol import effects_from, pack
from penstock.engine.worker.redaction import redact_notes
from penstock.jobs.effects import (
    Announced,
    Basis,
    Covered,
    Effects,
    Extracted,
    Mark,
    Note,
    Proposed,
    Raised,
    Rejection,
    Save,
)
from penstock.jobs.effects.effects import dry, stage, uncommitted
from penstock.jobs.effects.samples import Sample
from penstock.jobs.job import NewJob
from penstock.settings.budget import Bound

SECRET = "hunter2-hunter2"
STAGED_SAVE = Save("product", "a", b"{}", None, "replace", is_staged=True)
STAGED_PAGE = Extracted("https://acme.com/", "hash", is_staged=True)


class Case(NamedTuple):
    """A value of a field, and what is left of it; by a probe, of all fields that it leads to."""

    value: Any
    replayed: Any
    redriven: Any
    probed: dict[str, Any]
    redacted: Any
    uncommitted: Any = None


def live(value: Any, empty: Any) -> Case:
    return Case(value, empty, empty, {}, value, empty)


def kept(value: Any, empty: Any) -> Case:
    return Case(value, value, value, {}, value, empty)


SAVE = Save("product", "a", b"{}", None, "replace")
PAGE = Extracted("https://acme.com/", "hash")
SAMPLE = Sample(["ab"], 1, 0.5, 1)
CHILD = NewJob("persist", "a", b"{}")
BOUND = Bound("project", "money", "day", 5.0)
CASES = {
    "notes": Case(
        [Note(f"saw {SECRET}")],
        [Note(f"saw {SECRET}")],
        [Note(f"saw {SECRET}")],
        {"notes": [Note(f"saw {SECRET}")]},
        [Note("saw ***")],
        [],
    ),
    "children": Case([CHILD], [CHILD], [CHILD], {"children": [CHILD]}, [CHILD], []),
    "saves": Case(
        [SAVE],
        [STAGED_SAVE],
        [SAVE],
        {"notes": [Note("would save product a")], "saved_before": 1, "probed": {"would_save": 1}},
        [SAVE],
        [],
    ),
    "bases": live([Basis("product", "a", b"null")], [])._replace(
        redriven=[Basis("product", "a", b"null")]
    ),
    "saved_before": kept(3, 0)._replace(probed={"saved_before": 3}),
    "marks": live([Mark("default", b"7")], []),
    "covered": live([Covered("default", 0.0, 60.0)], []),
    "spent": kept({"money": 2.0}, {})._replace(
        probed={"spent": {"money": 2.0}}, uncommitted={"money": 2.0}
    ),
    "charges": kept([(BOUND, 2.0)], [])._replace(uncommitted=[(BOUND, 2.0)]),
    "latencies": kept({"0.5": 2.0}, {})._replace(
        probed={"latencies": {"0.5": 2.0}}, uncommitted={"0.5": 2.0}
    ),
    "proposals": live([Proposed("new.org", b"{}")], []),
    "signals": live([Raised("gap", b"{}")], []),
    "rejections": Case(
        [Rejection("bad", f"saw {SECRET}")],
        [Rejection("bad", f"saw {SECRET}")],
        [Rejection("bad", f"saw {SECRET}")],
        {"notes": [Note(f"would reject: saw {SECRET}")], "probed": {"rejected": 1}},
        [Rejection("bad", "saw ***")],
        [],
    ),
    "moments": live([4e9], []),
    "samples": kept([SAMPLE], [])._replace(probed={}),
    "is_schema_verified": live(True, False),
    "fields": live({"product\x1fprice\x1fnumber": 2}, {}),
    "probed": kept({"slow": 1}, {})._replace(probed={"probed": {"slow": 1}}),
    "announced": live([Announced("https://acme.com/new", "today")], []),
    "extracted": live([PAGE], [])._replace(replayed=[STAGED_PAGE], redriven=[PAGE]),
    "gone": live(["https://acme.com/old"], []),
    "is_dropped": kept(True, False)._replace(probed={"is_dropped": True}),
    "forgets": kept(True, False),
}


def with_(name: str) -> Effects:
    """Effects of their own: what a test empties in place is not missing in the next one."""
    return Effects(**{name: deepcopy(CASES[name].value)})


def test_every_field_is_looked_at_here() -> None:
    assert set(CASES) == {field.name for field in fields(Effects)}


@pytest.mark.parametrize("name", CASES)
def test_effect_is_handed_over_poured_and_comes_out_of_a_child_process(name: str) -> None:
    effects, alike = with_(name), with_(name)
    together = Effects()
    together.pour(effects.take())
    assert not effects
    assert together
    assert together == alike == effects_from(pack(alike))


@pytest.mark.parametrize("name", CASES)
def test_replay_leaves_what_is_staged_and_nothing_live(name: str) -> None:
    replayed, redriven = with_(name), with_(name)
    stage(replayed)
    stage(redriven, is_redrive=True)
    assert replayed == Effects(**{name: CASES[name].replayed})
    assert redriven == Effects(**{name: CASES[name].redriven})


@pytest.mark.parametrize("name", CASES)
def test_probe_tells_what_it_would_have_done(name: str) -> None:
    effects = with_(name)
    assert dry(effects) == Effects(**CASES[name].probed)
    assert effects == with_(name), "and leaves what it was told of as it was"


@pytest.mark.parametrize("name", CASES)
def test_secret_is_masked_in_what_an_effect_says(name: str) -> None:
    effects = with_(name)
    redact_notes(effects, frozenset({SECRET}))
    assert effects == Effects(**{name: CASES[name].redacted})


@pytest.mark.parametrize("name", CASES)
def test_what_was_spent_outlasts_an_attempt_that_does_not_commit(name: str) -> None:
    assert uncommitted(with_(name)) == Effects(**{name: CASES[name].uncommitted})
