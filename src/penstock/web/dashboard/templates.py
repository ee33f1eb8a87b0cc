"""The templates: autoescape is always on, and a name that does not exist is an error."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from penstock.app.verbs.act_words import WORDS
from penstock.counting import count
from penstock.web.dashboard import words

TEMPLATES = Path(__file__).parents[1] / "templates"
# Addresses of fetched pages are shown, and linked only if following them runs nothing.
_LINKED = ("http://", "https://")


@cache
def environment() -> Environment:
    """All templates, compiled when they are first used."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        span=words.span,
        moment=words.moment,
        stamp=words.stamp,
        clock=words.clock,
        seconds=words.seconds,
        day=words.day,
        num=words.number,
        size=words.size,
        share=words.share,
        brief=words.brief,
        sentence=words.sentence,
        compact=words.compact,
        pretty=words.pretty,
        plain=words.plain,
        piece=piece,
    )
    made.globals.update(
        relative=words.relative,
        count=count,
        address=address,
        is_link=is_link,
        is_set=lambda value: value is not msgspec.UNSET,
        act_labels={name: words_of_act.label for name, words_of_act in WORDS.items()},
        version=asset_version(),
    )
    return made


def render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**values)


def piece(value: Any) -> str:
    """A value as one piece of a path: a slash in it stays in it."""
    return quote(str(value), safe="")


def address(path: str, **query: Any) -> str:
    """A path with a query; what is None is left out."""
    chosen = {name: value for name, value in query.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(chosen)}" if chosen else path


def is_link(text: str) -> bool:
    """Whether an address from outside may be a link."""
    return text.lower().startswith(_LINKED)


@cache
def asset_version() -> str:
    """Changes with our own files, so that a browser never mixes old and new ones."""
    folder = Path(__file__).parents[1] / "static"
    newest = max(file.stat().st_mtime_ns for file in folder.glob("*.*"))
    return f"{newest:x}"[-8:]
