"""The page of an act: what it would do, why somebody does it, the equal command, and how to undo it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from starlette.responses import Response

from penstock.app.guard import confirming, guarded_name, is_guarded, verb_meant
from penstock.app.moments import length
from penstock.app.verbs.act_words import WORDS, command_of, label_of
from penstock.app.verbs.acts import ACTS, Act
from penstock.app.verbs.answers import as_answer
from penstock.app.verbs.parameters import converted
from penstock.app.verbs.previews import looked_up
from penstock.app.verbs.problems import problem_of
from penstock.app.views.runs import RunView
from penstock.app.views.view import View
from penstock.errors import PenstockError, StoreError, UsageError
from penstock.web.api import require
from penstock.web.dashboard.act_address import act_address
from penstock.web.dashboard.page import Visit, refused, shown
from penstock.web.threads import in_thread

if TYPE_CHECKING:
    from starlette.requests import Request

    from penstock.app import Project
    from penstock.app.verbs.roles import Identity

# What a form has beside the act's own parameters.
OF_THE_FORM = ("csrf", "back", "reason", "dry_run", "preview", "confirm")
# Fields of a form: what they ask for, an example of it, and what they begin with.
FIELDS = {
    "for_s": ("For how long", "30m or 2h", "1h"),
    "kind": ("Kind of run", "full, incremental or probe", "full"),
    "text": ("Note", "", ""),
    "owner": ("Owner", "a person or a team", ""),
    "to_time": ("Back to which time", "2026-11-15 or 2026-11-15T08:00:00Z", ""),
    "level": ("Class", "low, medium or high", ""),
    "start": ("From", "2026-11-01 or 2026-11-01T08:00:00Z", ""),
    "end": ("To", "2026-11-15; that day is included", ""),
}
LENGTHS, MOMENTS = ("for_s",), ("to_time", "start", "end")
LONGEST_REASON = 2_000
DAY_LONG = len("2026-11-15")


async def show_act(request: Request) -> Response:
    """The form of an act, with its dry run."""
    act = known(request.path_params["act"])
    identity = require(request, act.role)
    given = {key: value for key, value in request.query_params.items() if value}
    return await in_thread(
        request, lambda project: _form(Visit(request, project), act, identity, given)
    )


async def do_act(request: Request) -> Response:
    """Do it, and say what came of it."""
    act = known(request.path_params["act"])
    identity = require(request, act.role)
    body = (await request.body()).decode("utf-8", "replace")
    given = {key: value for key, value in parse_qsl(body, max_num_fields=100) if value}
    return await in_thread(
        request, lambda project: _done(Visit(request, project), act, identity, given)
    )


def known(name: str) -> Act:
    if name not in ACTS:
        raise UsageError(f"there is no act {name!r}", code="no_act")
    return ACTS[name]


def arguments_of(act: Act, given: Mapping[str, str]) -> dict[str, Any]:
    """What the act is called with, from the fields of a form."""
    texts = {key: _read(key, value) for key, value in given.items() if key not in OF_THE_FORM}
    of_path = {key: value for key, value in texts.items() if key in act.path_names}
    of_body = {key: value for key, value in texts.items() if key in act.takes}
    return {
        **converted(of_path, act.path_parameters, strict=False),
        **converted(of_body, act.parameters, strict=False),
    }


def _read(name: str, text: str) -> str:
    """A field as the verb takes it: people write 2h, or a day."""
    if name in LENGTHS:
        return str(length(FIELDS[name][0], text))
    if name in MOMENTS and len(text) == DAY_LONG:
        try:
            day = date.fromisoformat(text) + timedelta(days=name == "end")
        except (ValueError, OverflowError):
            return text
        return f"{day}T00:00:00Z"
    return text


def _form(
    visit: Visit,
    act: Act,
    identity: Identity,
    given: Mapping[str, str],
    mistake: str = "",
    status: int = 200,
) -> Response:
    words = WORDS.get(act.name)
    named = {key: value for key, value in given.items() if key not in OF_THE_FORM}
    asks = words.asks if words else act.takes
    preview, error = _preview(visit.project, act, identity, given)
    return shown(
        visit,
        "act.html",
        status,
        act=act,
        label=label_of(act.name),
        words=words,
        named={key: value for key, value in named.items() if key not in asks},
        asks=[_field(each, named.get(each)) for each in asks],
        reason=given.get("reason", ""),
        takes_reason=takes_reason(act),
        confirm=_name_to_type(visit.project, act, given),
        back=_local(given.get("back", "/")),
        preview=preview,
        error=error,
        mistake=mistake,
        command=command_of(act.name, {**_usual(asks), **named}, given.get("reason", "") or "TEXT"),
        undo=None if act.undo is None else label_of(act.undo),
    )


def _name_to_type(project: Project, act: Act, given: Mapping[str, str]) -> str:
    """The environment's name, if this act asks for it here."""
    return guarded_name(project) if is_guarded(project, verb_meant(act.name, given)) else ""


def _usual(asks: Sequence[str]) -> dict[str, str]:
    found = {name: _field(name, None)[3] for name in asks}
    return {name: value for name, value in found.items() if value}


def _field(name: str, given: str | None) -> tuple[str, str, str, str]:
    """Its name, what it asks for, an example, and its value."""
    label, example, usual = FIELDS.get(name, (name.replace("_", " "), "", ""))
    return name, label, example, usual if given is None else given


def takes_reason(act: Act) -> bool:
    return "reason" in act.parameters.__struct_fields__


def _preview(
    project: Project, act: Act, identity: Identity, given: Mapping[str, str]
) -> tuple[Any, PenstockError | None]:
    """What the act would do now, as it says itself; or why it would be refused."""
    try:
        if act.has_dry_run:
            arguments = {**arguments_of(act, given), "dry_run": True}
            return as_answer(act.call(project, identity, arguments)), None
        return looked_up(project, act.name, given), None
    except StoreError:
        raise
    except UsageError as error:
        # A parameter that the form still asks for.
        return None, None if error.code == "bad_parameter" else error
    except PenstockError as error:
        return None, error


def _done(visit: Visit, act: Act, identity: Identity, given: Mapping[str, str]) -> Response:
    reason = given.get("reason", "").strip()
    if "preview" in given:
        return _form(visit, act, identity, given)
    if takes_reason(act) and not reason:
        return _form(visit, act, identity, given, "Say why: the journal keeps it.", 422)
    try:
        arguments = arguments_of(act, given)
        if takes_reason(act):
            arguments["reason"] = reason[:LONGEST_REASON]
        with confirming(given.get("confirm", "").strip()):
            found = act.call(visit.project, identity, arguments)
    except StoreError:
        raise
    except UsageError as error:
        return _form(visit, act, identity, given, error.message, problem_of(error).status)
    except PenstockError as error:
        return refused(visit, error)
    return shown(
        visit,
        "done.html",
        act=act,
        label=label_of(act.name),
        answer=as_answer(found),
        back=_local(given.get("back", "/")),
        run=_run_in(found),
        undo=_undo_address(act, given, found),
        undo_label=None if act.undo is None else label_of(act.undo),
        command=command_of(act.name, given, reason),
    )


def _run_in(found: Any) -> int | None:
    """The run that an act has made."""
    run = getattr(found, "run", None)
    if isinstance(run, View):
        return getattr(run, "id", None)
    return found.id if isinstance(found, RunView) else None


def _undo_address(act: Act, given: Mapping[str, str], found: Any) -> str | None:
    """The page of the act that takes it back, if it is known what that is about."""
    if act.undo is None or act.undo not in ACTS:
        return None
    undo, run = ACTS[act.undo], _run_in(found)
    about = {name: given[name] for name in (*undo.path_names, "source") if name in given}
    if "run" in undo.path_names and run is not None:
        about["run"] = str(run)
    if any(name not in about for name in undo.path_names):
        return None
    kept = {name: about[name] for name in about if name in (*undo.path_names, *undo.takes)}
    return act_address(act.undo, kept, _local(given.get("back", "/")))


def _local(address: str) -> str:
    """Only a page of ours: whatever else is asked for leads to the overview."""
    is_ours = address.startswith("/") and not address.startswith("//") and "\\" not in address
    return address if is_ours and address.isprintable() else "/"
