"""Private sources: what of them is shown. Every answer of every verb passes here, whoever asked for it.

Views mark the fields that hold content (`ContentKey`, `Content`). Of a private source, keys and addresses
become hashes, the same ones as in the journal, and texts are left out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from penstock.app.views.view import Page, View, content_of, source_field
from penstock.private_words import HASH, hashed

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns

HIDDEN = "(private)"
Answer = TypeVar("Answer")
Verb = TypeVar("Verb", bound=Callable[..., Any])


def concealing(verb: Verb) -> Verb:
    """The verb of a noun, whose answer shows no content of private sources unless that is asked for."""

    @wraps(verb)
    def answer(self: Any, *args: Any, **options: Any) -> Any:
        found = verb(self, *args, **options)
        if not hides(self._project) or options.get("include_private"):
            return found
        bound = inspect.signature(verb).bind_partial(self, *args, **options).arguments
        return shown(self._project, found, bound)

    return answer  # type: ignore[return-value]


def hides(project: Nouns) -> bool:
    return bool(project.settings.private_sources) and not project.includes_private


def steps_of(project: Nouns, source: str | None) -> AbstractContextManager[None]:
    """Around a dry run of a source: if it is private, what its steps print is not shown."""
    from penstock.engine.worker.step_output import muted

    is_private = hides(project) and source in project.settings.private_sources
    return muted() if is_private else nullcontext()


def shown_key(project: Nouns, key: str, source: str) -> str:
    """A key of a source as answers show it: for the text of an error, which passes no view."""
    is_private = hides(project) and source in project.settings.private_sources
    return str(_concealed(key, "key", source)) if is_private else key


def shown(project: Nouns, found: Answer, asked: Mapping[str, Any] | None = None) -> Answer:
    """A view, or a list, page or iterator of views, without the content of private sources.

    Where a view does not say which source it is of, what was asked for does: `asked` has the arguments.
    """
    if not hides(project):
        return found
    answer: Answer = _Concealed(project, asked or {}).walk(found, None)
    return answer


class _Concealed:
    """One answer. What can't be told to be of an open source counts as private."""

    def __init__(self, project: Nouns, asked: Mapping[str, Any]) -> None:
        self._project = project
        self._asked = asked
        self._private = project.settings.private_sources
        self._runs: dict[int, str | None] = {}

    def walk(self, found: Any, source: str | None) -> Any:
        if isinstance(found, View):
            return self._view(found, source)
        if isinstance(found, Page):
            return Page(self.walk(found.items, source), found.next)
        if isinstance(found, (list, tuple)):
            return type(found)([self.walk(each, source) for each in found])
        if isinstance(found, dict):
            return {name: self.walk(each, source) for name, each in found.items()}
        if isinstance(found, Iterator):
            return (self.walk(each, source) for each in found)
        return found

    def _view(self, view: View, above: str | None) -> View:
        fields = content_of(type(view))
        if not fields:
            return view
        source = self._source_of(view, above)
        is_private = source is None or source in self._private
        changed: dict[str, Any] = {}
        for name, mark in fields.items():
            value = getattr(view, name)
            if mark == "views":
                changed[name] = self.walk(value, source)
            elif is_private and view.may_quote():
                changed[name] = _concealed(value, mark, source or "")
        return msgspec.structs.replace(view, **changed)

    def _source_of(self, view: View, above: str | None) -> str | None:
        named = source_field(type(view))
        own = getattr(view, named) if named else None
        if isinstance(own, str):
            return own
        run = getattr(view, "run_id", None)
        if isinstance(run, int):
            return self._source_of_run(run)
        if above is not None:
            return above
        # Of the project as a whole, such as an alert or a signal without a source: it has no content.
        if named:
            return ""
        return self._source_asked_for()

    def _source_of_run(self, run: int) -> str | None:
        if run not in self._runs:
            row = self._project.connection.runs.get(run)
            self._runs[run] = None if row is None else row.source
        return self._runs[run]

    def _source_asked_for(self) -> str | None:
        if isinstance(source := self._asked.get("source"), str):
            return self._project.source_key(source)
        if isinstance(run := self._asked.get("run"), int):
            return self._source_of_run(run)
        if isinstance(job := self._asked.get("job"), int):
            row = self._project.connection.jobs.get(job)
            return None if row is None else row.source
        return None


def _concealed(value: Any, mark: str, source: str) -> Any:
    if value is None or value is msgspec.UNSET or value == "":
        return value
    if isinstance(value, str):
        if mark == "text":
            return HIDDEN
        return value if HASH.fullmatch(value) else hashed(value, source)
    if isinstance(value, (list, tuple, dict)):
        return type(value)()
    return None
