"""The tools: one for each verb that an operator needs, made from the tables of acts and reads."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from penstock.app.guard import asks_for_name
from penstock.app.verbs.act_words import WORDS, label_of
from penstock.app.verbs.acts import ACTS, Act
from penstock.app.verbs.parameters import verb_of
from penstock.app.verbs.reads import READS, Read
from penstock.app.verbs.roles import Role
from penstock.app.verbs.schemas import properties_of
from penstock.mcp.left_out import LEFT_OUT, PARAMETERS_LEFT_OUT
from penstock.mcp.parameter_words import (
    CONFIRM,
    ENVIRONMENT,
    IDEMPOTENCY_KEY,
    PARAMETER_WORDS,
    REASON,
)

# How many items a list has unless asked for otherwise, and at most.
USUAL_ROWS, MOST_ROWS = 20, 100
LONGEST_REASON = 2_000
LONGEST_KEY = 255
# Acts that end, replace or throw away something; the others add, stop for a while or continue.
DESTRUCTIVE = frozenset(
    {
        "runs.cancel",
        "runs.undo",
        "jobs.cancel",
        "quarantine.discard",
        "canaries.stop",
        "checkpoints.rewind",
        "replays.commit",
        "replays.drop",
        "runbooks.do",
        "sources.activate",
        "sources.approve",
        "sources.legal_hold",
        "sources.retire",
    }
)
# Acts that say in their own words why they were done, or that are facts.
WITHOUT_REASON = {"quarantine.note": "the note is the reason", "signals.raise_": "a fact has none"}
# Acts that change nothing more when they are done twice.
REPEATABLE = frozenset(
    {
        "runs.pause",
        "runs.resume",
        "sources.pause",
        "sources.resume",
        "sources.hold",
        "sources.unhold",
        "sources.own",
        "jobs.hold",
        "jobs.unhold",
        "breakers.close",
        "alerts.acknowledge",
        "alerts.resolve",
        "schedules.set_cadence",
    }
)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool, and the verb that it calls."""

    name: str
    verb: Act | Read

    @property
    def is_act(self) -> bool:
        return isinstance(self.verb, Act)

    @property
    def role(self) -> Role:
        return self.verb.role

    @property
    def takes_reason(self) -> bool:
        return self.is_act and self.verb.name not in WITHOUT_REASON

    @property
    def title(self) -> str:
        noun, _, verb = self.verb.name.rpartition(".")
        if self.is_act:
            return f"{label_of(self.verb.name)} ({noun})"
        return f"{noun.capitalize()}: {verb.replace('_', ' ')}" if noun else verb.capitalize()

    @property
    def description(self) -> str:
        """What it does, in a sentence or two."""
        noun, _, _ = self.verb.name.rpartition(".")
        if not self.is_act:
            said = _first_paragraph(self.verb.name)
            return f"{noun.capitalize()}: {said}" if noun else said
        words = WORDS[self.verb.name]
        grave = " It can't be taken back." if words.is_grave else ""
        return f"{self.title}. {words.effect}{grave} The first call is a dry run."

    @property
    def parameters(self) -> dict[str, Any]:
        """The schema of each argument of the verb."""
        return {**self._of(self.verb.path_parameters), **self._of(self.verb.parameters)}

    @property
    def input_schema(self) -> dict[str, Any]:
        shown = self.parameters
        required = [name for name in self._required() if name in shown]
        if self.takes_reason:
            text = {"type": "string", "minLength": 1, "maxLength": LONGEST_REASON}
            shown["reason"] = {**text, "description": REASON}
            required.append("reason")
        if self.is_act:
            key = {"type": "string", "maxLength": LONGEST_KEY}
            shown["confirm"] = {**key, "description": CONFIRM}
            if asks_for_name(self.verb.name):
                shown["environment"] = {**key, "description": ENVIRONMENT}
            shown["idempotency_key"] = {**key, "minLength": 1, "description": IDEMPOTENCY_KEY}
        return {
            "type": "object",
            "properties": shown,
            "required": required,
            "additionalProperties": False,
        }

    @property
    def hints(self) -> dict[str, bool]:
        """What clients are told of it: `destructive` is a warning, nothing else is promised by it."""
        name = self.verb.name
        return {
            "read_only_hint": not self.is_act,
            "destructive_hint": name in DESTRUCTIVE,
            "idempotent_hint": not self.is_act or name in REPEATABLE,
            "open_world_hint": name == "alerts.test",
        }

    def _required(self) -> list[str]:
        kinds = (self.verb.path_parameters, self.verb.parameters)
        return [name for kind in kinds for name in properties_of(kind)[1]]

    def _of(self, kind: Any) -> dict[str, Any]:
        return {
            name: _shown(name, each)
            for name, each in properties_of(kind)[0].items()
            if name not in PARAMETERS_LEFT_OUT
        }


def _shown(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    made = {key: value for key, value in schema.items() if key != "pattern"}
    if made.get("default") == ():
        made["default"] = []
    if name == "limit":
        made |= {"maximum": MOST_ROWS, "default": USUAL_ROWS}
    about = PARAMETER_WORDS[name]
    form = made.get("description")
    return {**made, "description": f"{about} ({form})" if form else about}


def _first_paragraph(verb: str) -> str:
    about = inspect.getdoc(verb_of(verb)) or verb
    return " ".join(about.partition("\n\n")[0].split())


def tool_name(verb: str) -> str:
    """`runs_list` of `runs.list`: clients allow no dots."""
    return verb.replace(".", "_").strip("_")


@cache
def tools() -> dict[str, Tool]:
    """All of them, by their names: first those that look."""
    verbs: list[Act | Read] = [*READS.values(), *ACTS.values()]
    return {
        tool_name(each.name): Tool(tool_name(each.name), each)
        for each in verbs
        if each.name not in LEFT_OUT
    }


def tools_for(role: Role) -> list[Tool]:
    """What somebody with this role is offered."""
    return [tool for tool in tools().values() if role.covers(tool.role)]
