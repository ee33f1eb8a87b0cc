"""The acts of the dashboard: each has a button, a preview, and a command that the command line knows."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec
import pytest

from penstock.app.verbs.act_words import WORDS, command_of
from penstock.app.verbs.acts import ACTS
from penstock.app.verbs.previews import LOOKS
from penstock.cli.entry import parser_for
from penstock.errors import UsageError
from penstock.web.dashboard.acts import arguments_of, takes_reason

# Something for each parameter that a command names.
GIVEN: dict[str, Any] = {
    **{"source": "acme.com", "run": 7, "job": 12, "alert": 3, "delivery": 4, "name": "acme.com"},
    **{"runbook": "source-broke", "step": "compare", "route": "ops", "partition": "EUR"},
    **{"for_s": "2h", "text": "a note", "to_time": "2026-11-15", "level": "low", "key": "a key"},
    **{"start": "2026-11-01", "end": "2026-11-15", "token": "ci", "percent": 10},
}


@pytest.mark.parametrize("name", ACTS)
def test_the_command_that_a_page_shows_is_one_that_the_command_line_takes(name: str) -> None:
    asked = {each: GIVEN[each] for each in GIVEN if "{" + each + "}" in WORDS[name].command}
    flags = {"source": "acme.com"} if WORDS[name].flags else {}
    program, *words = shlex.split(command_of(name, {**asked, **flags}, "it's time"))
    assert program == "penstock"
    parsed = parser_for(words).parse_args(words)
    assert not WORDS[name].takes_reason or parsed.reason == "it's time"
    # What the command has no flag for, the form does not ask for.
    assert not takes_reason(ACTS[name]) or WORDS[name].takes_reason or name == "quarantine.note"


@pytest.mark.parametrize("name", ACTS)
def test_every_act_says_what_it_does_and_shows_what_it_would_meet(name: str) -> None:
    act, words = ACTS[name], WORDS[name]
    assert words.label
    assert words.effect.endswith(".")
    assert act.has_dry_run or name in LOOKS
    assert act.undo is None or act.undo in WORDS
    known = {*act.path_names, *act.parameters.__struct_fields__}
    assert {*words.asks} <= known


def test_people_write_lengths_and_days_as_they_do_on_the_command_line() -> None:
    opened = arguments_of(ACTS["breakers.open"], {"name": "acme.com", "for_s": "2h"})
    assert opened["for_s"] == 7200.0
    days = {"source": "prices", "start": "2026-01-05", "end": "2026-01-11"}
    backfill = arguments_of(ACTS["backfills.start"], days)
    assert [f"{backfill[each]:%d %H:%M}" for each in ("start", "end")] == ["05 00:00", "12 00:00"]
    with pytest.raises(UsageError):
        arguments_of(ACTS["breakers.open"], {"name": "acme.com", "for_s": "soon"})
    with pytest.raises((UsageError, msgspec.ValidationError)):
        arguments_of(ACTS["backfills.start"], {**days, "start": "2026-99-05"})
