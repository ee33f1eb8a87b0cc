"""The judge: which rules find something in a history, and which can't judge it yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from penstock.alerts import project_rules, run_rules, source_rules
from penstock.alerts.history import Finding, History, Judgement, ProjectHistory, Silence
from penstock.alerts.look import Look
from penstock.alerts.rules import ByRule

Found = Finding | Silence | None
# Since when an alert of each of these rules has been open.
Standing = Mapping[str, float]
NONE_STANDING: Standing = MappingProxyType({})

_SOURCE: dict[str, Callable[[Look], Found]] = {
    **run_rules.RULES,
    **source_rules.RULES,
}
_PROJECT: dict[str, Callable[[project_rules.ProjectLook], Found]] = {**project_rules.RULES}


def judge(
    history: History, thresholds: ByRule, now: float, standing: Standing = NONE_STANDING
) -> Judgement:
    """What the rules that are on find in the history of a source.

    A rule in `standing` has an open alert since then: its limits are easier to exceed, and are those of what
    was usual before.
    """
    return _judgement(
        rule(Look(history, thresholds[name], now, standing.get(name)))
        for name, rule in _SOURCE.items()
        if name in thresholds
    )


def judge_project(
    history: ProjectHistory, thresholds: ByRule, now: float, standing: Standing = NONE_STANDING
) -> Judgement:
    """What the rules about the project find."""
    return _judgement(
        rule(project_rules.ProjectLook(history, thresholds[name], now, name in standing))
        for name, rule in _PROJECT.items()
        if name in thresholds
    )


def _judgement(all_found: Iterator[Found]) -> Judgement:
    found = [each for each in all_found if each is not None]
    return Judgement(
        tuple(each for each in found if isinstance(each, Finding)),
        tuple(each for each in found if isinstance(each, Silence)),
    )
