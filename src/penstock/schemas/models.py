"""Models as schemas: classes of msgspec or pydantic that a pipeline names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from penstock.schemas.problems import SchemaError
from penstock.schemas.validator import Validator

# `price: must be …`, or None.
ModelCheck = Callable[[Any, bool], "str | None"]


def check_of(model: Any) -> ModelCheck:
    """The check of a JSON Schema, a Struct or dataclass for msgspec, or a model of pydantic.

    The second argument of a check says that the data is a part, to be merged: nothing is required of it.
    """
    if isinstance(model, dict):
        validator = Validator(model)
        return lambda value, partial: validator.problem(value, partial=partial)
    if not isinstance(model, type):
        raise SchemaError("", f"must be a JSON Schema or a class, not {model!r:.60}")
    if callable(getattr(model, "model_validate", None)):
        return lambda value, partial: _pydantic(model, value, partial)
    try:
        msgspec.json.schema(model)
    except TypeError as error:
        raise SchemaError("", f"{model.__name__} is no model that msgspec knows: {error}") from None
    return lambda value, partial: _msgspec(model, value, partial)


def _msgspec(model: Any, value: Any, partial: bool) -> str | None:
    try:
        msgspec.convert(value, model)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at `")
        if partial and "missing required field" in text:
            return None
        path = place.rstrip("`").removeprefix("$").lstrip(".")
        return f"{path}: {text}" if path else text
    return None


def _pydantic(model: Any, value: Any, partial: bool) -> str | None:
    try:
        model.model_validate(value)
    except ValueError as error:
        listed = getattr(error, "errors", None)
        if not callable(listed):
            raise
        for each in listed(include_url=False, include_context=False, include_input=False):
            if not (partial and each["type"] == "missing"):
                path = ".".join(map(str, each["loc"]))
                return f"{path}: {each['msg']}" if path else str(each["msg"])
    return None
