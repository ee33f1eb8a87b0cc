"""Graphs of pipelines to look at: of a profile of a registry, or of a source. No database is opened."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.app.views.step_graphs import GraphStepView, StepGraphView
from penstock.errors import ConfigError, PipelineError, UsageError, nearest
from penstock.pipeline.registry import Registry
from penstock.pipeline.selection import ChosenStep, Selection, select

if TYPE_CHECKING:
    from penstock.pipeline.graph import Graph, Stage
    from penstock.project.opened import Opened
    from penstock.settings import SourceSettings

BUILDER = "penstock.builder.registry:builder"


def profile_graph(
    profile: str | Mapping[str, Any] | None = None,
    registry: str = BUILDER,
    features: Mapping[str, bool] | None = None,
    *,
    root: Path | None = None,
) -> StepGraphView:
    """The graph of a profile. Nothing but the registry itself is imported, from `root` if that is given."""
    return selection_view(select(registry_of(registry, root), profile, features))


def source_graph(project: Opened, name: str) -> StepGraphView:
    """The graph of a source of a project."""
    source = project.source(name)
    registry = _registry_of_source(project, source)
    if registry is not None:
        return selection_view(select(registry, source.profile))
    return _graph_view(project.graph(source))


def graph_named(name: str, project: Opened | None, registry: str | None = None) -> StepGraphView:
    """The graph of a source of the project, or of a profile: of this registry, or of the builder."""
    if registry is None and project is not None and _is_source(project, name):
        return source_graph(project, name)
    root = None if project is None else project.settings.root
    found = registry_of(registry or BUILDER, root)
    if name not in found.profiles:
        sources = () if project is None or registry else tuple(project.settings.sources)
        what = "source or profile" if sources else "profile"
        near = nearest(name, [*sources, *found.profiles])
        raise UsageError(f"there is no {what} {name!r}", near, code="no_profile")
    return selection_view(select(found, name))


def registry_of(target: str, root: Path | None = None) -> Registry:
    """A registry by `module:name`."""
    from penstock.pipeline.loader import load_object

    if root is not None and not target.startswith("penstock."):
        found = load_object(target, root, "--registry")
    else:
        found = _imported(target)
    if not isinstance(found, Registry):
        raise ConfigError(f"{target!r} is a {type(found).__name__}, not a Registry")
    return found


def selection_view(selection: Selection) -> StepGraphView:
    gates = _gates((each.name, each.after) for each in selection.steps)
    return StepGraphView(
        name=selection.registry.name,
        profile=selection.profile,
        steps=[_step_view(each, gates[each.name]) for each in selection.steps],
        left_out=selection.left_out,
        config=selection.config,
    )


def _step_view(chosen: ChosenStep, gates: list[str]) -> GraphStepView:
    step, options = chosen.step, chosen.step.options
    usual = "page" if chosen.after and not step.is_gather else "run"
    retry = options["retry"]
    return GraphStepView(
        name=step.name,
        identifier=step.identifier,
        phase=step.phase,
        after=list(chosen.after),
        gates=gates,
        unit=options["unit"] or usual,
        takes=list(step.takes),
        outputs=list(step.outputs),
        is_gather=step.is_gather,
        is_final=step.is_final,
        is_network=step.is_network,
        retry=retry.get("class") if isinstance(retry, Mapping) else retry,
        resources=dict(options["resources"] or {}),
        summary=step.summary,
        why=chosen.why,
    )


def _graph_view(graph: Graph) -> StepGraphView:
    gates = _gates((stage.name, stage.after) for stage in graph.stages)
    steps = [_stage_view(stage, gates[stage.name]) for stage in graph.stages]
    return StepGraphView(name=graph.name, profile="", steps=steps, left_out={}, config={})


def _stage_view(stage: Stage, gates: list[str]) -> GraphStepView:
    fused = stage.steps[1:]
    return GraphStepView(
        name=stage.name,
        identifier=stage.name.replace(".", "_"),
        phase=stage.unit,
        after=list(stage.after),
        gates=gates,
        unit=stage.unit,
        takes=[],
        outputs=[],
        is_gather=stage.is_gather,
        is_final=False,
        is_network=False,
        retry=stage.retry.name if stage.retry else None,
        resources={"cpu": stage.cpu, "memory_mb": stage.memory_mb},
        summary="",
        why="in the pipeline" + (f", with {', '.join(fused)} in the same job" if fused else ""),
    )


def _gates(links: Iterable[tuple[str, Iterable[str]]]) -> dict[str, list[str]]:
    """What each step gates."""
    known = list(links)
    found: dict[str, list[str]] = {name: [] for name, _ in known}
    for name, after in known:
        for each in after:
            found[each].append(name)
    return found


def _registry_of_source(project: Opened, source: SourceSettings) -> Registry | None:
    from penstock.pipeline.loader import load_object

    if not source.pipeline or source.connector:
        return None
    where = f"{project.settings.file.name}: sources.{source.key}.pipeline"
    found = load_object(source.pipeline, project.settings.root, where)
    return found if isinstance(found, Registry) else None


def _is_source(project: Opened, name: str) -> bool:
    try:
        project.source(name)
    except UsageError:
        return False
    return True


def _imported(target: str) -> object:
    module_name, _, name = target.partition(":")
    try:
        return getattr(importlib.import_module(module_name), name, None)
    except (ImportError, ValueError) as error:
        raise PipelineError(f"{target!r} can't be imported: {error}") from None
