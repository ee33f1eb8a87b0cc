"""A checkup of an installation as front ends see it: what was looked at, and what to do about it."""

from __future__ import annotations

from typing import Literal

from penstock.app.views.view import Hidden, View

State = Literal["ok", "warning", "problem", "skipped"]


class CheckupFindingView(View, frozen=True, kw_only=True):
    """One thing that was looked at. A `problem` keeps work from being done; a `warning` may do so later.

    `skipped` was not looked at, and the message says why.
    """

    area: str
    state: State
    message: str
    remedy: str = ""


class CheckupView(View, frozen=True, kw_only=True):
    """All findings of a checkup."""

    sound: bool
    problems: int
    warnings: int
    findings: list[CheckupFindingView]
    secrets: Hidden[frozenset[str]] = frozenset()


def checkup_view(
    findings: list[CheckupFindingView], secrets: frozenset[str] = frozenset()
) -> CheckupView:
    problems = sum(each.state == "problem" for each in findings)
    return CheckupView(
        sound=not problems,
        problems=problems,
        warnings=sum(each.state == "warning" for each in findings),
        findings=findings,
        secrets=secrets,
    )
