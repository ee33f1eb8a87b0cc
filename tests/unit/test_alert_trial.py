"""The rules against 200 labelled histories, 100 at a time."""

from __future__ import annotations

import pytest

from tests.alert_trial import PAGE, marks, table, trial
from tests.labelled import FAULTY, Half


# Some 20,000 looks at histories: seconds on an idle machine.
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "half", [pytest.param("development", marks=pytest.mark.torture), "held out"]
)
def test_rules_find_faults_and_leave_healthy_sources_alone_as_the_documentation_says(
    half: Half,
) -> None:
    figures = trial(half)
    assert len(figures.tried) == 100
    assert figures.recall >= 0.95
    healthy = [each for each in figures.tried if each.history.kind not in FAULTY]
    assert [each.history.name for each in healthy if each.false_in_a_quarter > 1] == []
    first, last = marks(half)
    said = PAGE.read_text("utf-8").split(first)[1].split(last)[0]
    assert said == table(figures), "write it again: python -m tests.alert_trial"
