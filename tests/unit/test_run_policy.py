"""One policy for each kind of run."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import penstock
from penstock.jobs.run import RunKind, RunOptions
from penstock.jobs.run_policy import ASKED_OF_KIND, POLICIES, REDRIVE, REPLAY, UNDO, policy_of


def test_every_kind_of_run_has_its_policy() -> None:
    assert set(POLICIES) == set(RunKind)
    assert policy_of("stream") is POLICIES[RunKind.STREAM]


def test_redrive_and_undo_have_policies_of_their_own() -> None:
    assert policy_of(RunKind.REPLAY, RunOptions(is_staged=True)) is REPLAY
    assert policy_of(RunKind.REPLAY, RunOptions(is_redrive=True)) is REDRIVE
    assert policy_of(RunKind.REPLAY, RunOptions(is_undo=True)) is UNDO


@pytest.mark.parametrize("question", ASKED_OF_KIND)
def test_what_is_asked_of_the_kind_alone_has_one_answer(question: str) -> None:
    assert question in {field.name for field in fields(REPLAY)}
    answers = {getattr(policy, question) for policy in (REPLAY, REDRIVE, UNDO)}
    assert len(answers) == 1, f"{question} must be asked with the options of the run"


def test_nobody_compares_kinds_of_runs() -> None:
    """A question about a kind is asked of its policy, where every kind has an answer."""
    compared = re.compile(r"\b(is|is not|==|!=|in) \(?RunKind\.")
    found = [
        f"{file.name}: {line.strip()}"
        for file in Path(penstock.__file__).parent.rglob("*.py")
        for line in file.read_text().splitlines()
        if compared.search(line) and "for kind in" not in line
    ]
    assert found == []
