"""A pipeline: steps are added with a decorator, and compiled into a graph when it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from penstock.errors import PipelineError
from penstock.pipeline.graph import Graph, build_graph
from penstock.pipeline.registry import Registry, function_of
from penstock.pipeline.selection import select
from penstock.pipeline.step import Declaration, is_text

Function = TypeVar("Function", bound=Callable[..., Any])


class Pipeline:
    """A named graph of functions. Nothing is checked before `compile`, so steps come in any order.

    `schemas` are the models of collections by name: a JSON Schema, a Struct of msgspec or a model of
    pydantic. A record that does not fit is rejected.
    """

    def __init__(
        self,
        name: str,
        *,
        retry: str | Mapping[str, Any] | None = None,
        errors: Mapping[str, Any] | None = None,
        schemas: Mapping[str, Any] | None = None,
    ) -> None:
        if not is_text(name):
            raise PipelineError("a pipeline needs a name: Pipeline('catalogue')")
        self.name = name
        # Instead of the text of Penstock's own steps: a version that is theirs.
        self.version = ""
        # Connectors by which its own steps read: those take the place of the connector's steps.
        self.reads: tuple[str, ...] = ()
        self._declared: list[Declaration] = []
        self._retry = retry
        self._errors = errors
        self._schemas = schemas
        self._login: Callable[..., Any] | None = None
        # What its profile says over the params of a source.
        self._config: Mapping[str, Any] = {}

    @classmethod
    def from_registry(
        cls,
        registry: Registry,
        profile: str | Mapping[str, Any] | None = None,
        *,
        features: Mapping[str, bool] | None = None,
    ) -> Pipeline:
        """The pipeline that a profile of a registry describes; its steps are imported now.

        `profile` is a name, or a mapping such as `{"extends": "standard", "without": ["http.serp"]}`.
        """
        selection = select(registry, profile, features)
        made = cls(registry.name)
        made.version = f"{registry.version} {selection.text}" if registry.version else ""
        made._config = selection.config
        for chosen in selection.steps:
            made.step(
                name=chosen.name,
                after=chosen.after,
                fuse=False,
                takes=chosen.step.takes if chosen.after else (),
                **chosen.step.options,
            )(function_of(chosen.step, registry))
        return made

    def __repr__(self) -> str:
        return f"Pipeline({self.name!r})"

    def step(
        self,
        *,
        unit: str | None = None,
        after: str | Iterable[str] = (),
        key: str | Callable[[Any], Any] | None = None,
        gather: bool = False,
        retry: str | Mapping[str, Any] | None = None,
        timeout: str | float | None = None,
        priority: int | None = None,
        resources: Mapping[str, float] | None = None,
        isolation: str | None = None,
        useful_for: str | float | None = None,
        required: bool = False,
        errors: Mapping[str, Any] | None = None,
        windows: bool = False,
        follow: bool | Mapping[str, int] = False,
        name: str | None = None,
        fuse: bool = True,
        takes: str | Iterable[str] = (),
    ) -> Callable[[Function], Function]:
        """Make the decorated function a step; returns it unchanged.

        By default, `unit` is `run` for a first or gather step and `page` for any other. With `fuse=False` it
        is a job of its own, whatever comes before it. `takes` are the kinds of the items that it is given
        (their field `kind`).
        """
        names = after if isinstance(after, str) else tuple(after or ())

        def add(function: Function) -> Function:
            self._declared.append(
                Declaration(
                    function,
                    unit,
                    names,
                    key,
                    gather,
                    retry,
                    timeout,
                    priority,
                    resources,
                    isolation,
                    useful_for,
                    required,
                    errors,
                    windows,
                    follow,
                    name,
                    fuse,
                    takes if isinstance(takes, str) else tuple(takes or ()),
                )
            )
            return function

        return add

    def login(self, function: Function) -> Function:
        """Make the decorated `async def login(ctx)` the login of `ctx.session`; returns it unchanged.

        It is performed before the first fetch of a session, once for all jobs of a source in a process, and
        again when an answer is 401 or 403. It raises AuthFailed if the login is refused.
        """
        if self._login is not None:
            raise PipelineError(f"pipeline {self.name!r} has two logins")
        self._login = function
        return function

    def compile(self) -> Graph:
        """The checked graph, or a PipelineError that names what is wrong in one line."""
        about = (self._retry, self._errors, self._schemas, self.version, self._login)
        return build_graph(self.name, self._declared, *about, self._config)


def joined(first: Pipeline, then: Pipeline) -> Pipeline:
    """The steps of both as one pipeline, which has the name and the options of the latter."""
    retry = first._retry if then._retry is None else then._retry
    errors = first._errors if then._errors is None else then._errors
    made = Pipeline(then.name, retry=retry, errors=errors, schemas=then._schemas)
    made.version = first.version
    made._declared = [*first._declared, *then._declared]
    made._login = then._login or first._login
    made._config = then._config
    return made
