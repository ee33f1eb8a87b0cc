"""The rules against 200 labelled histories: here a fifth of those held out, in `make torture` all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.alert_trial import PAGE, Figures, Tried, marks, table, trial, tried
from tests.labelled import FAULTY, KINDS, Half, labelled


def with_too_many_false_alerts(tried: Sequence[Tried]) -> list[str]:
    healthy = [each for each in tried if each.history.kind not in FAULTY]
    return [each.history.name for each in healthy if each.false_in_a_quarter > 1]


def test_rules_find_faults_and_leave_healthy_sources_alone() -> None:
    figures = Figures([tried(each) for each in list(labelled("held out"))[::5]])
    assert {each.history.kind for each in figures.tried} == set(KINDS)
    assert figures.recall >= 0.95
    assert with_too_many_false_alerts(figures.tried) == []


# Some 40,000 looks at histories: half a minute each on an idle machine.
@pytest.mark.torture
@pytest.mark.parametrize("half", ["development", "held out"])
def test_rules_find_faults_and_leave_healthy_sources_alone_as_the_documentation_says(
    half: Half,
) -> None:
    figures = trial(half)
    assert len(figures.tried) == 100
    assert figures.recall >= 0.95
    assert with_too_many_false_alerts(figures.tried) == []
    first, last = marks(half)
    said = PAGE.read_text("utf-8").split(first)[1].split(last)[0]
    assert said == table(figures), "write it again: python -m tests.alert_trial"
