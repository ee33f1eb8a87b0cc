"""The version of what a source is processed with: its pipeline's code and its own configuration."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from penstock.pipeline.graph import Graph
from penstock.pipeline.selection import overlaid

# What an environment gives may be no JSON, and still is a configuration.
_encode = msgspec.json.Encoder(order="deterministic", enc_hook=repr).encode
_CREDENTIALS = frozenset({"auth", "password", "token"})


class Configured(Protocol):
    """What of a source matters for what comes out of its steps."""

    @property
    def params(self) -> dict[str, Any]: ...

    @property
    def threshold(self) -> float | None: ...

    @property
    def schemas(self) -> dict[str, Any]: ...

    @property
    def options(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class _Changed:
    params: dict[str, Any]
    threshold: float | None
    schemas: dict[str, Any]
    options: dict[str, Any]
    # Params of a run's own; nothing goes over them.
    own: Mapping[str, Any]


def with_params(source: Configured, params: Mapping[str, Any]) -> Configured:
    """A source with some params of a run's own over its."""
    merged = {**source.params, **params}
    return _Changed(merged, source.threshold, source.schemas, source.options, params)


def params_of(graph: Graph, source: Configured) -> dict[str, Any]:
    """What steps get as params: those of the source, the profile's over them, and the run's over all."""
    if not graph.config:
        return source.params
    own = source.own if isinstance(source, _Changed) else {}
    return {**overlaid(source.params, graph.config), **own}


def version_of(graph: Graph, source: Configured) -> str:
    """Equal for equal code and configuration; what only says when, how fast or how often does not count."""
    params = params_of(graph, source)
    matters: dict[str, Any] = {"params": params, "threshold": source.threshold}
    matters |= {"schemas": source.schemas} if source.schemas else {}
    # Who reads is not what is read: a new password is no reason to read everything again.
    options = {name: each for name, each in source.options.items() if name not in _CREDENTIALS}
    matters |= {"options": options} if options else {}
    if not params and source.threshold is None and len(matters) == 2:
        return graph.version
    text = _encode(matters)
    digest = hashlib.blake2b(graph.version.encode() + text, digest_size=8)
    return digest.hexdigest()
