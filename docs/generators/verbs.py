"""The verbs that there are: of a project, of its nouns, of its configuration."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any

from docs.generators.signatures import first_line, names_of
from penstock import Project
from penstock.app import config, old_verbs

Verb = Callable[..., Any]
OPENING = ("load", "open", "close")


def nouns() -> list[str]:
    """The nouns of a project that have verbs, by name."""
    found = inspect.getmembers_static(Project, lambda each: isinstance(each, cached_property))
    return [name for name, _ in found if _is_noun(name)]


def _is_noun(name: str) -> bool:
    kind = class_of(name)
    return kind.__module__.startswith("penstock.app.") and bool(verbs(kind))


def class_of(noun: str) -> type:
    """The class behind a noun; `object` for what is none."""
    function = getattr(inspect.getattr_static(Project, noun, None), "func", None)
    if function is None:
        return object
    returns = str(inspect.signature(function).return_annotation)
    kind = names_of(function.__module__).get(returns)
    return kind if isinstance(kind, type) else object


def verbs(kind: type) -> dict[str, Verb]:
    """The public methods of a class and its bases, in the order of their texts."""
    found: dict[str, Verb] = {}
    for base in reversed(kind.__mro__):
        for name, each in vars(base).items():
            function = getattr(each, "__func__", each)
            if inspect.isfunction(function) and not name.startswith("_"):
                found[name] = getattr(kind, name)
    return found


def of_project() -> dict[str, Verb]:
    """The verbs that belong to no noun."""
    known = verbs(Project)
    app = (name for name, each in known.items() if each.__module__.startswith("penstock.app."))
    names = [*OPENING, *(name for name in app if name not in aliases())]
    return {name: known[name] for name in dict.fromkeys(names)}


def aliases() -> dict[str, str]:
    """The verbs of earlier releases, and what their docstrings say to call instead."""
    own = vars(old_verbs.OldVerbs).items()
    told = {name: first_line(each) for name, each in own if inspect.isfunction(each)}
    return {name: text for name, text in told.items() if text.startswith("`")}


def configuration() -> list[Verb]:
    return [getattr(config, name) for name in config.__all__ if name != "modeline"]


def all_verbs() -> list[Verb]:
    of_nouns = [verb for name in nouns() for verb in verbs(class_of(name)).values()]
    return [*of_project().values(), *of_nouns, *configuration()]
