"""docs/python-errors.md: the classes of errors, and the codes that they carry where they are raised."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from docs.generators.signatures import cell, first_line, names_of
from docs.generators.verbs import class_of
from penstock import Project, errors

SOURCE = Path(inspect.getfile(errors)).parent
# What is raised below the application is not followed: a verb can always find the store away.
FOLLOWED = ("penstock.app", "penstock.project")


HEAD = """\
# Python errors

<!-- Written by `make reference` from the code that raises them; a test holds it equal. -->

Every error has a `message`, a `hint`, a stable `code` and, where a verb helps, a `remedy` with its `verb` and
`target`: `Remedy("sources.resume", "acme.com")` stands for `project.sources.resume("acme.com")`. The classes
are in `penstock.errors`.

## Classes

An error without a code of its own has the code of its class. The command exits with the exit code.
"""


def page() -> str:
    return "\n".join([HEAD, *_classes(), *_codes()]).rstrip() + "\n"


def _classes() -> Iterator[str]:
    yield "| class | code | exit code | meaning |\n|---|---|---|---|"
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.PenstockError):
            yield f"| `{name}` | `{kind.code}` | {kind.exit_code} | {first_line(kind)} |"
    yield ""


def _codes() -> Iterator[str]:
    yield "## Codes\n\n| code | class | message | remedy |\n|---|---|---|---|"
    for each in everywhere():
        remedy = f"`{each.remedy}`" if each.remedy else ""
        yield f"| `{each.code}` | `{each.error}` | {cell(each.message)} | {remedy} |"


@dataclass(frozen=True)
class Raised:
    """One place that raises an error with a code of its own."""

    code: str
    error: str
    message: str
    remedy: str


@cache
def everywhere() -> tuple[Raised, ...]:
    """Every code in the package, by name; of a code that is raised in several places, the first one."""
    found: dict[str, Raised] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for each in _in(ast.parse(file.read_text("utf-8"))):
            found.setdefault(each.code, each)
    return tuple(found[code] for code in sorted(found))


def _in(tree: ast.AST) -> Iterator[Raised]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            named = {each.arg: each.value for each in node.keywords}
            code = named.get("code")
            if isinstance(code, ast.Constant) and isinstance(code.value, str):
                remedy = _remedy(named.get("remedy"))
                yield Raised(code.value, node.func.id, _text(node.args[0]), remedy)


def _remedy(node: ast.AST | None) -> str:
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        return str(node.args[0].value)
    return ""


def _text(node: ast.AST) -> str:
    """A message with … for what is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        parts = [each.value if isinstance(each, ast.Constant) else "…" for each in node.values]
        return "".join(map(str, parts)).replace("……", "…")
    return "…"


# Of a verb.


def of_verb(noun: type, verb: Callable[..., Any]) -> list[str]:
    """The codes that a verb may raise: those in its own code, and in what it calls of the application."""
    codes: set[str] = set()
    seen: set[Any] = set()
    left: list[tuple[type | None, Any]] = [(noun, verb)]
    while left:
        owner, function = left.pop()
        if function not in seen:
            seen.add(function)
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
            codes.update(each.code for each in _in(tree))
            left.extend(_called(tree, owner, function))
    return sorted(codes)


def _called(tree: ast.AST, owner: type | None, function: Any) -> Iterator[tuple[type | None, Any]]:
    known = dict(names_of(function.__module__))
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            known[node.targets[0].id] = _kind_of(node.value, owner, known)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found = _target(node.func, owner, known)
            if found is not None and _is_followed(found[1]):
                yield found


def _is_followed(function: Any) -> bool:
    """The `__init__` of a dataclass has no text."""
    is_ours = inspect.isfunction(function) and function.__module__.startswith(FOLLOWED)
    return is_ours and not function.__code__.co_filename.startswith("<")


def _target(
    node: ast.AST, owner: type | None, known: dict[str, Any]
) -> tuple[type | None, Any] | None:
    if isinstance(node, ast.Name):
        return _callable(None, known.get(node.id))
    if not isinstance(node, ast.Attribute):
        return None
    kind = _kind_of(node.value, owner, known)
    return None if kind is None else _callable(kind, getattr(kind, node.attr, None))


def _callable(kind: type | None, found: Any) -> tuple[type | None, Any] | None:
    if isinstance(found, type):
        return found, found.__init__  # type: ignore[misc]
    return kind, inspect.unwrap(found) if callable(found) else None


def _kind_of(node: ast.AST, owner: type | None, known: dict[str, Any]) -> type | None:
    """What class the left side of a dot is of, as far as the text says so."""
    text = ast.unparse(node)
    if text in ("self", "cls"):
        return owner
    if text in ("self._project", "project"):
        return Project
    if isinstance(node, ast.Name):
        found = known.get(node.id)
        return found if isinstance(found, type) else None
    if text.startswith(("self._project.", "project.")) and text.count(".") < 3:
        return class_of(text.rpartition(".")[2])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        found = known.get(node.func.id)
        return found if isinstance(found, type) else None
    return None
