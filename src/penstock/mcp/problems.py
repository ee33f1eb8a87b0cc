"""Refusals for a model: the error's code, what helps as a tool call, and its text as untrusted data."""

from __future__ import annotations

import re
from typing import Any

from penstock.app.verbs.problems import problem_of
from penstock.errors import PenstockError, Remedy
from penstock.mcp.tools import Tool, tool_name, tools

# What may stand outside the envelope: a number, or a name without room for a sentence.
_NAME = re.compile(r"[A-Za-z0-9._:/@+-]{1,100}")

# What to do about refusals of this front end itself: nobody else had a word in these.
ADVICE = {
    "bad_parameter": "the schema of the tool says what it takes",
    "no_reason": "every act needs a reason: say why you do it",
    "bad_limit": "ask for fewer, and read on with the cursor `next`",
    "answer_too_large": "ask for less: a smaller limit, or one item at a time",
    "confirmation_needed": "ask the person to type the environment's name, and repeat the call with it as "
    "`environment`, and the same `confirm`",
    "role_needed": "a person has to allow more, or do it themselves",
    **dict.fromkeys(
        (
            "confirmation_used",
            "confirmation_unknown",
            "confirmation_expired",
            "confirmation_differs",
            "state_changed",
        ),
        "nothing was done by this call; call the tool without `confirm`, and look at its answer",
    ),
}


def refusal(error: PenstockError) -> tuple[dict[str, Any], dict[str, Any]]:
    """What Penstock says of an error, and what goes into the envelope."""
    problem = problem_of(error)
    said: dict[str, Any] = {"code": problem.code}
    if problem.code in ADVICE:
        said["advice"] = ADVICE[problem.code]
    remedy = None if error.remedy is None else remedy_call(error.remedy)
    if remedy is not None:
        said["remedy"] = remedy
    # A remedy that is phrased as a Python call is no hint for whoever has tools.
    is_call = error.remedy is not None and problem.hint == str(error.remedy)
    text = {"detail": problem.detail}
    return said, text if is_call or not problem.hint else {**text, "hint": problem.hint}


def remedy_call(remedy: Remedy) -> dict[str, Any] | None:
    """The tool that helps and what it is called with; None if a person has to do it elsewhere."""
    tool = tools().get(tool_name(remedy.verb))
    if tool is None:
        return None
    return {"tool": tool.name, "arguments": _arguments(tool, remedy.target)}


def _arguments(tool: Tool, target: str | int | None) -> dict[str, Any]:
    schema = tool.input_schema
    first = next((name for name in schema["properties"] if name in (*_TARGETS, "name")), None)
    if first is None or target is None:
        return {}
    if isinstance(target, str) and not _NAME.fullmatch(target):
        return {}
    return {first: target}


_TARGETS = ("source", "run", "job", "alert", "runbook", "delivery", "route", "reject", "collection")
