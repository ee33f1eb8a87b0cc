"""The guard of production: what can't be taken back needs the environment's name, typed.

    with confirming("production"):
        act.call(project, identity, arguments)

Front ends say here what the person has typed; who has typed nothing is refused in a guarded environment. A
program that imports Penstock calls the verbs themselves and is not asked: nobody is there to type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from penstock.app.verbs.act_words import WORDS
from penstock.errors import Refused

if TYPE_CHECKING:
    from penstock.app import Project

# Whoever closes a door in a hurry is not held up; and what only lets something in destroys nothing.
UNGUARDED = frozenset(
    {
        "tokens.revoke",
        "sources.legal_hold",
        "sources.accept_terms",
        "sources.approve",
        "sources.activate",
        "canaries.start",
        "canaries.stop",
        "canaries.widen",
    }
)
# Verbs of the command line alone.
GRAVE = frozenset({"store.restore", "store.rename"})
STEP = "runbooks.do"
_typed: ContextVar[str] = ContextVar("typed", default="")


@contextmanager
def confirming(environment: str) -> Iterator[None]:
    """While this lasts, this is the name that the person has typed."""
    token = _typed.set(environment)
    try:
        yield
    finally:
        _typed.reset(token)


def guarded_name(project: Project) -> str:
    """The name that has to be typed here; empty where no name is asked for."""
    settings = project.settings
    return settings.environment_name if settings.is_guarded else ""


def is_guarded(project: Project, verb: str) -> bool:
    """Whether this act needs the environment's name."""
    return is_grave(verb) and bool(guarded_name(project))


def verb_meant(act: str, arguments: Mapping[str, Any]) -> str:
    """The verb that an act performs: a step of a runbook performs another one."""
    if act != STEP or not {"runbook", "step"} <= arguments.keys():
        return act
    from penstock.app.runbooks import verb_of_step

    return verb_of_step(arguments["runbook"], arguments["step"])


def is_grave(verb: str) -> bool:
    """Whether what it does can't be taken back."""
    words = WORDS.get(verb)
    return verb in GRAVE or (words is not None and words.is_grave and verb not in UNGUARDED)


def asks_for_name(act: str) -> bool:
    """Whether an act, or a step that it performs, needs the environment's name where that is guarded."""
    return act == STEP or is_grave(act)


def refuse_unconfirmed(project: Project, verb: str) -> None:
    """Refuse an act that can't be taken back, unless the environment's name was typed."""
    if is_guarded(project, verb):
        refuse_other_name(guarded_name(project), _typed.get())


def refuse_other_name(wanted: str, typed: str) -> None:
    """Refuse unless this is the name of the environment."""
    if typed != wanted:
        said = f", not {typed[:80]!r}" if typed else ""
        raise Refused(
            f"this is {wanted}: what can't be taken back needs its name{said}",
            f"add --confirm {wanted}; over the API, the header Penstock-Confirm: {wanted}; as an MCP client, "
            "the argument environment, as a person has typed it",
            code="confirmation_needed",
        )
