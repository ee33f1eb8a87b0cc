"""The application: what the product can do, as verbs and views. Every front end stands on it.

In:    a call from the command line, a program, a browser or a model, with who acts and why.
Out:   views; or a refusal with a code and a remedy.
Never: SQL, shell commands, printing, parsing of arguments.

How to add to it:

- A noun is a class in a module of its own (`app/breakers.py`: `class Breakers(Noun)`) and a
  `cached_property` in `app/nouns.py` that imports the module when it is first used. A noun without verbs is
  not exposed.
- A verb takes what it acts on, then keywords; at the end `actor: str | None = None, reason: str = ""`, and
  `dry_run: bool = False` where it touches many. It asks `self._store` anew each time: that is the calling
  thread's own connection, and a noun keeps no state. `who(actor)` is for the journal. A verb that only
  moves a state answers whether that is new; one that makes something answers with its view.
- All policy is here: what is refused, what is continued, what is defaulted. Front ends parse, call, render.
- A view is a Struct in `app/views/<noun>.py`: `class RunView(View, frozen=True, kw_only=True)`, with a
  function that makes it from the store's row. Its fields, in their order, are the keys of `--json`; a key
  that is printed today stays. Times are `Time` (float seconds; as JSON, text in UTC). Front ends call
  `view.as_json()`.
- A list verb is `list(…, cursor: str | None = None, limit: int = USUAL) -> Page[SomeView]`. It asks the
  store for one row more than the page has and answers `page_of(rows, limit, view, place)`; `each(…)` goes
  through all pages (`each_item`). Give the query a `before_id` or `after_id`; no limit of a million.
- A refusal is `Refused(message, code="run_paused", remedy=Remedy("runs.resume", 12))`; what does not exist
  is `UsageError(…, code="no_run")`. Codes are snake_case, say what is so, and never change. A hint has no
  command in it: `cli/remedies.py` phrases the verb of the remedy, or the code where one command does not
  say it all. (An old hint stays where an existing test asks the Python API for it.)
- Old verbs (`project.pause(12)`) stay for one release: they move from `project/` to `app/old_verbs.py` and
  call their noun. An old method that has the name of a noun becomes the noun's `__call__`. Tests that use
  an old verb import `Project` from `penstock`, no longer from `penstock.project`.
- The command whose policy has moved imports `penstock.app` instead of the rooms below it, and its lines
  leave `ignore_imports` in pyproject.toml: that list only shrinks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.app.project import Project

__all__ = ["Project"]


def __getattr__(name: str) -> Any:
    """`Project` is imported when it is first used: the shell's completion needs only one small module."""
    if name != "Project":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from penstock.app.project import Project

    return Project
