"""The graph of a pipeline as a view: its steps, and what comes after what."""

from __future__ import annotations

from typing import Any

from penstock.app.views.view import View


class GraphStepView(View, frozen=True, kw_only=True):
    """One step. `after` are the steps that gate it, `gates` those that it gates; `why` it is in the graph.

    `identifier` is its name where dots are not allowed.
    """

    name: str
    identifier: str
    phase: str
    after: list[str]
    gates: list[str]
    unit: str
    takes: list[str]
    outputs: list[str]
    is_gather: bool
    is_final: bool
    is_network: bool
    retry: str | None
    resources: dict[str, float]
    summary: str
    why: str


class StepGraphView(View, frozen=True, kw_only=True):
    """A pipeline: its steps in an order in which each follows all that gates it."""

    name: str
    profile: str
    steps: list[GraphStepView]
    # Steps of the registry that the profile does not have, and why.
    left_out: dict[str, str]
    config: dict[str, Any]
