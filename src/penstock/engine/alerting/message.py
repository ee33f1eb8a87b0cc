"""Messages about alerts: what the outbox holds, and how a person reads it on each kind of route."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.clock import iso
from penstock.counting import count

SEVERITIES = ("critical", "high", "medium", "low")
# What Slack accepts in one block, in one header, and how many blocks.
LONGEST_BLOCK, LONGEST_HEADER, MOST_BLOCKS = 2900, 140, 40
MARKS = {"critical": "🔴", "high": "🟠", "medium": "🟡", "low": "🔵"}
RESOLVED = "✅"


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a message says of one alert. `change` is why it is told: opened, escalated, reminded, resolved."""

    alert: int
    change: str
    rule: str
    source: str | None
    severity: str
    state: str
    summary: str
    cause: str = ""
    opened_at: str | None = None
    resolved_at: str | None = None
    incident: int = 0
    # How many other alerts the same cause has raised.
    others: int = 0
    numbers: list[str] = []
    examples: list[str] = []
    vanished: list[str] = []
    runbook: str = ""
    commands: list[str] = []

    @property
    def label(self) -> str:
        return "resolved" if self.state == "resolved" else self.severity

    @property
    def title(self) -> str:
        about = self.source or "project"
        more = f" (and {count(self.others, 'more alert')} of the same cause)" if self.others else ""
        return f"[{self.label}] {about}: {self.summary}{more}"


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`event` is `alert.opened`, `alert.resolved` and so on, or `alert.digest` where it is about several."""

    event: str
    alerts: list[Told]
    project: str = ""


def message_of(alerts: Sequence[Told]) -> Message:
    """The worst first; what is over comes last."""
    ordered = sorted(alerts, key=_place)
    event = f"alert.{ordered[0].change}" if len(ordered) == 1 else "alert.digest"
    return Message(event=event, alerts=ordered)


def _place(told: Told) -> tuple[bool, int, int]:
    return told.state == "resolved", SEVERITIES.index(told.severity), told.alert


def subject_of(message: Message) -> str:
    """One line that says it all."""
    of = f"{message.project}: " if message.project else ""
    if len(message.alerts) == 1:
        return of + message.alerts[0].title
    labels = Counter(told.label for told in message.alerts)
    shown = ", ".join(
        f"{labels[label]} {label}" for label in (*SEVERITIES, "resolved") if labels[label]
    )
    return f"{of}{count(len(message.alerts), 'alert')}: {shown}"


def text_of(message: Message) -> str:
    """The whole message as plain text."""
    return "\n\n".join("\n".join(_lines(told)) for told in message.alerts) + "\n"


def _lines(told: Told) -> list[str]:
    lines = [told.title, f"rule: {told.rule}", f"open since: {told.opened_at}"]
    if told.resolved_at:
        lines.append(f"resolved: {told.resolved_at}")
    if told.cause:
        lines.append(f"suspected cause: {told.cause}")
    lines += _listed("numbers", told.numbers)
    lines += _listed("examples", told.examples)
    lines += _listed("vanished from the page", told.vanished)
    if told.state != "resolved":
        lines += _listed("safe to do now", told.commands)
    return lines


def _listed(name: str, items: Sequence[str]) -> list[str]:
    return [f"{name}:", *(f"  {item}" for item in items)] if items else []


def slack_payload(message: Message) -> dict[str, Any]:
    """As Slack's incoming webhooks accept it: a line for the notification, and blocks to read."""
    blocks: list[dict[str, Any]] = []
    for told in message.alerts[: MOST_BLOCKS // 2]:
        blocks += _blocks(told)
    left = len(message.alerts) - MOST_BLOCKS // 2
    if left > 0:
        blocks.append(_section(f"and {count(left, 'more alert')}: `penstock alerts`"))
    return {"text": escaped(subject_of(message)), "blocks": blocks}


def _blocks(told: Told) -> list[dict[str, Any]]:
    mark = RESOLVED if told.state == "resolved" else MARKS[told.severity]
    head = f"{mark} {told.source or 'project'}: {told.rule}"
    lines = [f"*{escaped(told.title)}*", *(escaped(line) for line in _lines(told)[1:])]
    header = {"type": "plain_text", "text": head[:LONGEST_HEADER], "emoji": True}
    return [{"type": "header", "text": header}, _section("\n".join(lines))]


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text[:LONGEST_BLOCK]}}


def escaped(text: str) -> str:
    """Nothing that came from a page becomes a link, a mention or a channel-wide alarm in Slack."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def trial_message(project: str, route: str, now: float) -> Message:
    """What `penstock alerts test` sends."""
    told = Told(
        alert=0,
        change="test",
        rule="test",
        source=None,
        severity="low",
        state="open",
        summary=f"this is a test of the route {route}; nothing is wrong",
        opened_at=iso(now),
    )
    return Message(event="alert.test", alerts=[told], project=project)
