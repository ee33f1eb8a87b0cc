"""What verbs answer with, as JSON that every front end writes in the same way."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import msgspec

from penstock.app.verbs.problems import problem_of
from penstock.app.views.view import Page, View
from penstock.errors import PenstockError


def as_answer(found: Any) -> Any:
    """What is written of an answer: a view by its fields, what is no object as one."""
    if isinstance(found, Page):
        return {"items": [as_answer(each) for each in found.items], "next": found.next}
    if isinstance(found, bool):
        return {"changed": found}
    if isinstance(found, int):
        return {"count": found}
    if isinstance(found, (list, tuple)):
        return {"items": [_item(each) for each in found], "next": None}
    if found is None:
        return {}
    return _item(found)


def _item(found: Any) -> Any:
    if isinstance(found, View):
        return found.as_json()
    if isinstance(found, PenstockError):
        return problem_of(found).as_json()
    if is_dataclass(found):
        return {field.name: _item(getattr(found, field.name)) for field in fields(found)}
    if isinstance(found, list):
        return [_item(each) for each in found]
    return msgspec.to_builtins(found)
