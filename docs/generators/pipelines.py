"""docs/python-pipelines.md: what a step uses, and what a test of a pipeline uses."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import penstock
from docs.generators.signatures import about, block, cell, first_line, signature
from docs.generators.verbs import verbs
from docs.generators.views import PAGE, about_class, fields_table
from penstock import testing
from penstock.jobs.windows import Window
from penstock.pipeline.attempt import StepRun, StepSource

HEAD = """\
# Python pipelines

<!-- Written by `make reference` from signatures and docstrings; a test holds it equal. -->

Everything that a step uses is imported from `penstock`. The guide is [Pipelines](pipelines.md).
"""
INTERNAL = {"in_progress"}
RAISED = ("Skip", "Snooze", "Reject", "Transient", "Permanent", "BadData", "AuthFailed")


def page() -> str:
    parts = [
        HEAD,
        *_class("Pipeline", penstock.Pipeline, "pipeline"),
        *_class("Context", penstock.Context, "ctx"),
        *_fields("ctx.source", StepSource),
        *_fields("ctx.run", StepRun),
        *_fields("ctx.window", Window),
        *_class("Response", penstock.Response, "response"),
        *_raised(),
        *_testing(),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _class(name: str, kind: type, variable: str) -> Iterator[str]:
    yield f"## {name}\n\n{about_class(kind)}\n"
    if name == "Pipeline":
        yield block(signature(name, kind))
    rows = list(_properties(kind))
    if name == "Response":
        yield from fields_table(kind, PAGE)
    elif rows:
        yield "| attribute | type | meaning |\n|---|---|---|"
        yield from (f"| `{variable}.{row[0]}` | `{row[1]}` | {row[2]} |" for row in rows)
        yield ""
    for verb, function in verbs(kind).items():
        yield f"### {variable}.{verb}\n"
        yield block(signature(f"{variable}.{verb}", function))
        yield f"{about(function)}\n"


def _fields(name: str, kind: type) -> Iterator[str]:
    yield f"### {name}\n\n{about_class(kind)}\n"
    yield from fields_table(kind, PAGE)


def _properties(kind: type) -> Iterator[tuple[str, str, str]]:
    for name, found in (each for base in reversed(kind.__mro__) for each in vars(base).items()):
        if isinstance(found, property) and found.fget and name not in INTERNAL:
            returns = str(inspect.signature(found.fget).return_annotation)
            yield name, cell(returns), first_line(found.fget)


def _raised() -> Iterator[str]:
    yield "## What a step raises\n\n| exception | meaning |\n|---|---|"
    for name in (*RAISED, "FetchError"):
        kind = getattr(penstock, name)
        call = cell(signature(name, kind, widest=1000))
        yield f"| `{call}` | {first_line(kind)} |"
    yield ""


def _testing() -> Iterator[str]:
    yield "## penstock.testing\n\nThe guide is [Test a pipeline](testing.md).\n"
    for name in testing.__all__:
        thing = getattr(testing, name)
        yield f"### testing.{name}\n"
        yield block(signature(name, thing))
        yield f"{about_class(thing) if isinstance(thing, type) else about(thing)}\n"
        if isinstance(thing, type):
            yield from _methods(name, thing)


def _methods(name: str, kind: type) -> Iterator[str]:
    """Those that say themselves what they do."""
    own = {verb: each for verb, each in verbs(kind).items() if each.__doc__}
    for verb, function in own.items():
        if function.__module__ == testing.__name__:
            call = signature(f"{name}.{verb}", function, widest=1000)
            yield f"- `{call}`: {first_line(function)}"
    yield ""
