"""The tasks of an engine's graph: one per stage of a pipeline, or per step of a builder's profile."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from penstock.app import Project
from penstock.app.step_graphs import BUILDER, profile_graph, source_graph
from penstock.app.views.drains import DrainStage
from penstock.app.views.step_graphs import GraphStepView
from penstock.bridges.places import ProjectPlace, place_of
from penstock.errors import UsageError


@dataclass(frozen=True, slots=True)
class BridgeTask:
    """A task: `name` is the stage or step, `identifier` the same for engines that allow no dots.

    `after` are the names of the tasks before it. `is_network`: it makes requests, so that an engine may
    retry it. `shards` is into how many parts it may be split; what gathers is one.
    """

    name: str
    identifier: str
    after: tuple[str, ...]
    steps: tuple[str, ...]
    unit: str
    is_network: bool
    is_gather: bool
    is_final: bool
    summary: str = ""
    shards: int = 1

    @property
    def parts(self) -> list[tuple[int, int]]:
        """Its shards, as `drain_stage` takes them."""
        return [(part, self.shards) for part in range(1, self.shards + 1)]


@dataclass(frozen=True, slots=True)
class TaskGraph:
    """Tasks in an order in which each follows all that it comes after.

    `is_serial`: their store is one SQLite file, so only one of them may run at a time.
    """

    name: str
    tasks: tuple[BridgeTask, ...]
    is_serial: bool

    def task(self, name: str) -> BridgeTask:
        return next(each for each in self.tasks if each.name == name)

    @property
    def edges(self) -> set[tuple[str, str]]:
        """Pairs of a task and one that comes after it."""
        return {(before, each.name) for each in self.tasks for before in each.after}


def pipeline_tasks(
    project: ProjectPlace, source: str, kind: str | None = None, shards: int = 1
) -> TaskGraph:
    """The stages of a source's pipeline as tasks. Its code is imported; its store is not opened."""
    opened = place_of(project).open()
    refuse_shards(opened, shards)
    stages = opened.drains.plan(source, kind)
    graph = source_graph(opened, source)
    known = {step.name: step for step in graph.steps} if graph.profile else {}
    tasks = (_stage_task(stage, known, shards) for stage in stages)
    return TaskGraph(
        name=opened.source(source).key,
        tasks=_distinct(tasks),
        is_serial=not opened.settings.is_on_postgres,
    )


def builder_tasks(
    profile: str = "standard", registry: str = BUILDER, *, is_serial: bool = True
) -> TaskGraph:
    """The steps of a profile of the builder as tasks. No step is imported."""
    steps = profile_graph(profile, registry).steps
    tasks = tuple(_step_task(step) for step in steps)
    return TaskGraph(name=profile, tasks=tasks, is_serial=is_serial)


def refuse_shards(project: Project, shards: int) -> None:
    if shards < 1:
        raise UsageError(f"a stage has at least one shard, not {shards}")
    if shards > 1 and not project.settings.is_on_postgres:
        raise UsageError(
            "on SQLite one task works at a time, so a stage can't be split into shards",
            "leave out `shards`, or use Postgres: `store: postgresql://…` in penstock.yaml",
            code="shards_need_postgres",
        )


def identifier_of(name: str) -> str:
    """The name with nothing in it but letters, digits and underscores, as all engines allow it."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _stage_task(stage: DrainStage, known: dict[str, GraphStepView], shards: int) -> BridgeTask:
    steps = [known[name] for name in stage.steps if name in known]
    return BridgeTask(
        name=stage.name,
        identifier=identifier_of(stage.name),
        after=tuple(stage.after),
        steps=tuple(stage.steps),
        unit=stage.unit,
        # Only a registry knows. Otherwise: what lists and what reads pages fetches, as a rule.
        is_network=any(step.is_network for step in steps) if steps else _may_fetch(stage),
        is_gather=stage.is_gather,
        is_final=any(step.is_final for step in steps),
        summary=next((step.summary for step in steps if step.summary), ""),
        shards=1 if stage.is_gather or stage.unit == "run" else shards,
    )


def _step_task(step: GraphStepView) -> BridgeTask:
    return BridgeTask(
        name=step.name,
        identifier=step.identifier,
        after=tuple(step.after),
        steps=(step.name,),
        unit=step.unit,
        is_network=step.is_network,
        is_gather=step.is_gather,
        is_final=step.is_final,
        summary=step.summary,
    )


def _may_fetch(stage: DrainStage) -> bool:
    return stage.unit != "candidate" and not stage.is_gather


def _distinct(tasks: Iterable[BridgeTask]) -> tuple[BridgeTask, ...]:
    """The same, with a number behind an identifier that another one has already."""
    found: dict[str, BridgeTask] = {}
    for task in tasks:
        identifier, number = task.identifier, 1
        while identifier in found:
            number += 1
            identifier = f"{task.identifier}_{number}"
        found[identifier] = replace(task, identifier=identifier)
    return tuple(found.values())
