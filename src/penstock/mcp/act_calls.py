"""Tools that act: first a dry run with a confirmation, then the act itself, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.guard import (
    asks_for_name,
    confirming,
    is_guarded,
    refuse_unconfirmed,
    verb_meant,
)
from penstock.app.idempotency import Asked, IdempotencyKeys
from penstock.app.verbs.acts import Act
from penstock.app.verbs.answers import as_answer
from penstock.app.verbs.parameters import converted
from penstock.app.verbs.previews import looked_up
from penstock.errors import UsageError
from penstock.mcp.bounds import Cut, within
from penstock.mcp.caller import Caller
from penstock.mcp.confirmations import LIFETIME_S, Confirmations, digest, seen, state_changed
from penstock.mcp.left_out import PARAMETERS_LEFT_OUT
from penstock.mcp.tools import LONGEST_KEY, LONGEST_REASON, WITHOUT_REASON

if TYPE_CHECKING:
    from penstock.app import Project

Clean = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class ActCall:
    """One call of a tool that acts, its arguments held to the verb's parameters."""

    act: Act
    given: dict[str, Any]
    confirm: str | None
    key: str | None
    # The name of the environment, as the person has typed it.
    environment: str = ""

    @property
    def named(self) -> dict[str, Any]:
        """What the act is about, without the reason."""
        return {name: each for name, each in self.given.items() if name != "reason"}


def call_of(act: Act, arguments: Mapping[str, Any]) -> ActCall:
    """What a client asks for; raises if it is not what the tool takes."""
    left = {name: each for name, each in arguments.items() if each is not None}
    confirm, key = _text(left, "confirm", 0), _text(left, "idempotency_key", 1)
    if key is not None and not act.keeps_answer:
        raise UsageError(f"{act.name} takes no idempotency_key", code="no_key_here")
    reason = _text(left, "reason", 0) or ""
    environment = (_text(left, "environment", 0) or "") if asks_for_name(act.name) else ""
    for name in PARAMETERS_LEFT_OUT & left.keys():
        raise UsageError(f"the tool has no argument {name}", code="bad_parameter")
    of_path = {name: left.pop(name) for name in act.path_names if name in left}
    if act.name not in WITHOUT_REASON:
        left["reason"] = _held(reason)
    given = {
        **converted(of_path, act.path_parameters, strict=False),
        **converted(left, act.parameters, strict=False),
    }
    return ActCall(act, given, confirm or None, key, environment)


def _text(given: dict[str, Any], name: str, shortest: int) -> str | None:
    found = given.pop(name, None)
    longest = LONGEST_REASON if name == "reason" else LONGEST_KEY
    if found is None:
        return None
    if not isinstance(found, str) or not shortest <= len(found) <= longest:
        raise UsageError(f"{name} is a text of at most {longest} characters", code="bad_parameter")
    return found


def _held(reason: str) -> str:
    if not reason.strip():
        raise UsageError(
            "every act needs a reason", "say why you do it: the journal keeps it", code="no_reason"
        )
    return reason.strip()


@dataclass(frozen=True, slots=True)
class ActCalls:
    """What all callers of one server share: confirmations and idempotency keys."""

    confirmations: Confirmations
    keys: IdempotencyKeys
    clean: Clean

    def answer(
        self, project: Project, caller: Caller, call: ActCall
    ) -> tuple[dict[str, Any], Any, Cut]:
        """What Penstock says of the call, and the answer of the act or of its dry run."""
        if call.confirm is None:
            return self._shown(project, caller, call)
        if call.key is None:
            return {"done": True}, *within(self.clean(self._done(project, caller, call)))
        asked = Asked.for_act(caller.identity.name, call.key, call.act.name, call.given)
        text, is_repeated = self.keys.perform(
            project, asked, lambda: _encoded(self.clean(self._done(project, caller, call)))
        )
        said = {"done": True, "is_repeated": is_repeated}
        return said, *within(msgspec.json.decode(text))

    def _shown(
        self, project: Project, caller: Caller, call: ActCall
    ) -> tuple[dict[str, Any], Any, Cut]:
        preview = _preview(project, caller, call)
        code = self.confirmations.issue(_what(caller, call), digest(seen(preview)))
        said: dict[str, Any] = {
            "done": False,
            "confirm": code,
            "expires_in_s": int(LIFETIME_S),
            "next": "nothing was done; to do it, call again with the same arguments and this `confirm`",
        }
        if is_guarded(project, verb_meant(call.act.name, call.given)):
            said["asks_for"] = "environment"
            said["next"] += ", and the environment's name as `environment`, typed by the person"
        return said, *within(self.clean(preview))

    def _done(self, project: Project, caller: Caller, call: ActCall) -> Any:
        assert call.confirm is not None  # noqa: S101  by whoever calls
        with confirming(call.environment):
            # Before the code is used up: the person may have to be asked first.
            refuse_unconfirmed(project, verb_meant(call.act.name, call.given))
            return self._performed(project, caller, call, call.confirm)

    def _performed(self, project: Project, caller: Caller, call: ActCall, code: str) -> Any:
        state = self.confirmations.take(code, _what(caller, call))
        if digest(seen(_preview(project, caller, call))) != state:
            raise state_changed()
        return as_answer(call.act.call(project, caller.actor, call.given))


def _what(caller: Caller, call: ActCall) -> str:
    return digest(caller.actor.name, call.act.name, call.given)


def _preview(project: Project, caller: Caller, call: ActCall) -> Any:
    """What the act would do now, as it says itself; or how what it is about stands."""
    if call.act.has_dry_run:
        return as_answer(call.act.call(project, caller.actor, {**call.given, "dry_run": True}))
    texts = {name: str(each) for name, each in call.named.items() if each is not None}
    return looked_up(project, call.act.name, texts)


def _encoded(answer: Any) -> str:
    return msgspec.json.encode(answer).decode()
