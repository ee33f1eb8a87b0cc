"""Signatures and docstrings as the reference shows them, and the classes that they name."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import msgspec

WIDEST = 100
STARS: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
WORD = re.compile(r"[A-Za-z_][\w.]*")


def about(thing: Any) -> str:
    """Its docstring, as paragraphs of one line each."""
    text = inspect.cleandoc(inspect.getdoc(thing) or "")
    return "\n\n".join(_paragraph(each) for each in text.split("\n\n")).strip()


def first_line(thing: Any) -> str:
    """The first paragraph of its docstring, for a cell of a table."""
    return cell(about(thing).partition("\n\n")[0])


def cell(text: str) -> str:
    """Text as a table can hold it."""
    return text.replace("|", "\\|")


def _paragraph(text: str) -> str:
    if text.startswith((" ", "- ")):
        return text
    return " ".join(text.split())


def block(text: str) -> str:
    """A signature as the page shows it."""
    return f'```python not-run="a signature"\n{text}\n```\n'


def signature(name: str, function: Callable[..., Any], *, widest: int = WIDEST) -> str:
    """A call with its parameters and what it returns, on one line if it fits."""
    found = inspect.signature(function)
    shown = list(_parameters(found))
    returns = _returns(found)
    line = f"{name}({', '.join(shown)}){returns}"
    if len(line) <= widest:
        return line
    return "\n".join([f"{name}(", *(f"    {each}," for each in shown), f"){returns}"])


def _parameters(found: inspect.Signature) -> Iterator[str]:
    parameters = [p for p in found.parameters.values() if p.name not in ("self", "cls")]
    star_is_due = True
    for each in parameters:
        if each.kind is each.VAR_POSITIONAL:
            star_is_due = False
        if each.kind is each.KEYWORD_ONLY and star_is_due:
            star_is_due = False
            yield "*"
        yield _parameter(each)


def _parameter(each: inspect.Parameter) -> str:
    text = f"{STARS.get(each.kind, '')}{each.name}"
    if each.annotation is not each.empty:
        text += f": {plain_type(each.annotation)}"
    if each.default is each.empty:
        return text
    return f"{text} = {value(each.default)}"


def _returns(found: inspect.Signature) -> str:
    if found.return_annotation in (found.empty, "None", None):
        return ""
    return f" -> {plain_type(found.return_annotation)}"


def value(default: Any) -> str:
    """A default as it would be written."""
    if isinstance(default, str):
        return f'"{default}"'
    if isinstance(default, msgspec.Struct):
        return f"{type(default).__name__}()"
    if callable(default):
        return "…"
    return repr(default)


def plain_type(annotation: Any) -> str:
    """A type without the modules that its names come from."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", text)


# Names.


def classes_in(annotation: Any, module: str) -> list[type]:
    """The classes that an annotation names, as its module knows them."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    known = names_of(module)
    found = (_attribute(known, word) for word in WORD.findall(text))
    return [each for each in found if isinstance(each, type)]


def _attribute(known: dict[str, Any], path: str) -> Any:
    first, *rest = path.split(".")
    found = known.get(first)
    for each in rest:
        found = getattr(found, each, None)
    return found


@cache
def names_of(module: str) -> dict[str, Any]:
    """The names of a module, those that it imports for the type checker alone included."""
    found = sys.modules.get(module) or importlib.import_module(module)
    known = dict(vars(found))
    for node in ast.walk(ast.parse(inspect.getsource(found))):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            known.update(_imported(node))
    return known


def _imported(node: ast.ImportFrom) -> dict[str, Any]:
    if not (node.module or "").startswith("penstock"):
        return {}
    home = importlib.import_module(node.module or "")
    return {
        alias.asname or alias.name: getattr(home, alias.name)
        for alias in node.names
        if hasattr(home, alias.name)
    }
