"""The graph of a pipeline: its steps checked, put in order, and fused into stages.

A stage is what one job performs: a step, and the steps of the same unit that follow it in process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from penstock.errors import PipelineError, nearest
from penstock.gates.loaded import hash_of
from penstock.jobs.failures import Declared
from penstock.jobs.job import DEFAULT_PRIORITY, NewJob, Unit
from penstock.jobs.run import Plan, PlannedStage, RunKind
from penstock.jobs.run_policy import policy_of
from penstock.pipeline.fingerprint import code_files, code_texts, is_ours
from penstock.pipeline.numbers import unkept_number
from penstock.pipeline.planner import PLANNER, plan_windows
from penstock.pipeline.session import Login, checked_login
from penstock.pipeline.spenders import measures_spent
from penstock.pipeline.step import (
    UNBOUNDED,
    DataError,
    Declaration,
    Follow,
    Invoke,
    Isolation,
    KeyOf,
    Step,
    check_step,
    key_of,
    key_of_window,
)
from penstock.pipeline.step_options import declared_errors, retry_choice
from penstock.schemas.models import ModelCheck, check_of
from penstock.schemas.problems import SchemaError
from penstock.settings import RetryChoice

_encode = msgspec.json.encode


@dataclass(frozen=True, slots=True, eq=False)
class Feed:
    """The way from a step to the stage after it: each item becomes a job of that stage."""

    stage: str
    giver: str
    key_of: KeyOf
    priority: int | None
    takes: tuple[str, ...] = ()

    def accepts(self, item: Any) -> bool:
        """Whether the item is of a kind that the stage takes."""
        return not self.takes or (isinstance(item, Mapping) and item.get("kind") in self.takes)

    def job(self, item: Any, default_priority: int, snapshot: int | None = None) -> NewJob:
        try:
            encoded = _encode(item)
            unkept = unkept_number(item, encoded)
        except (TypeError, ValueError, RecursionError) as error:
            raise DataError(f"step {self.giver!r} gave an item that is not JSON: {error}") from None
        if unkept:
            raise DataError(
                f"step {self.giver!r} gave an item with a number that JSON does not have: {unkept}"
            )
        priority = default_priority if self.priority is None else self.priority
        return NewJob(self.stage, self.key_of(item), encoded, priority, snapshot)


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A step in the tree of its stage, with all that a walk needs to know worked out beforehand."""

    name: str
    invoke: Invoke
    takes_ctx: bool
    is_async: bool
    is_root: bool
    is_leaf: bool
    fused: tuple[Node, ...]
    feeds: tuple[Feed, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """The steps that one job performs; what a job needs is said by the first of them."""

    name: str
    unit: Unit
    after: tuple[str, ...]
    root: Node
    steps: tuple[str, ...]
    takes_item: bool
    is_gather: bool
    is_async: bool
    isolation: Isolation | None
    retry: RetryChoice | None
    timeout_s: float | None
    priority: int | None
    cpu: float
    memory_mb: float
    is_stream: bool = False
    useful_for_s: float | None = None
    is_required: bool = False
    errors: Declared = ()
    takes_windows: bool = False
    # What its steps spend beside their requests, as far as their code tells.
    spends: frozenset[str] = frozenset()
    # The way from its first step back to itself, where that follows what it finds.
    follow: Follow | None = None
    follow_feed: Feed | None = None
    # What records of a collection must fit, by its name.
    schemas: Mapping[str, ModelCheck] = field(default_factory=dict)
    # What a session of its source begins with.
    login: Login | None = None

    @property
    def is_long(self) -> bool:
        """Whether its jobs live for days: what they died of before they came further does not count."""
        return self.is_stream or self.name == PLANNER


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A pipeline that was checked. Stages stand in an order in which each follows what it needs."""

    name: str
    stages: tuple[Stage, ...]
    version: str
    retry: RetryChoice | None = None
    # Hashes of the files that hold its code.
    files: dict[Path, str] = field(default_factory=dict)
    # What goes over the params of a source.
    config: Mapping[str, Any] = field(default_factory=dict)
    _by_name: dict[str, Stage] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._by_name.update((stage.name, stage) for stage in self.stages)
        if self.windows is not None:
            self._by_name[PLANNER] = _planner(self.windows)

    @property
    def windows(self) -> Stage | None:
        """The stage whose items are windows of time, which is what a backfill begins with."""
        return next((stage for stage in self.stages if stage.takes_windows), None)

    @property
    def stage_names(self) -> tuple[str, ...]:
        """Every stage whose jobs can be performed."""
        return tuple(self._by_name)

    def stage(self, name: str) -> Stage | None:
        return self._by_name.get(name)

    def plan(self, priority: int = DEFAULT_PRIORITY, kind: RunKind = RunKind.FULL) -> Plan:
        """The stages as a run remembers them; `priority` is for those that have none of their own.

        A stream's run begins with the streams of the pipeline, every other with all other steps that
        begin one; what no step of the kind leads to is left out. A backfill begins with a stage that is
        in no pipeline and plans the windows. A probe is about one item, so nothing of it is gathered.
        """
        policy = policy_of(kind)
        if policy.begins_with == "windows":
            return self._backfill_plan(priority)
        is_stream = policy.begins_with == "streams"
        stages = self._begun_by(is_stream, gathers=policy.gathers)
        if not stages:
            what = "stream" if is_stream else "step that begins a run and ends"
            raise PipelineError(f"pipeline {self.name!r} has no {what}")
        kept = {stage.name for stage in stages}
        return Plan(tuple(self._planned(stage, priority, kept) for stage in stages))

    def _begun_by(self, is_stream: bool, gathers: bool) -> list[Stage]:
        """The stages that streams lead to, or all the others do."""
        reached: dict[str, Stage] = {}
        for stage in self.stages:
            if stage.is_gather and not gathers:
                continue
            if any(name in reached for name in stage.after) or (
                not stage.after and not stage.takes_windows and stage.is_stream == is_stream
            ):
                reached[stage.name] = stage
        return list(reached.values())

    def _backfill_plan(self, priority: int) -> Plan:
        if self.windows is None:
            raise PipelineError(
                f"pipeline {self.name!r} has no step that takes windows",
                '@pipeline.step(unit="page", windows=True) makes one; it asks ctx.window what to fetch',
            )
        reached = {self.windows.name: replace(self.windows, after=(PLANNER,))}
        for stage in self.stages:
            if any(name in reached for name in stage.after) and stage.name not in reached:
                reached[stage.name] = stage
        kept = {PLANNER, *reached}
        stages = [self._by_name[PLANNER], *reached.values()]
        return Plan(tuple(self._planned(stage, priority, kept) for stage in stages))

    def _planned(self, stage: Stage, priority: int, kept: set[str]) -> PlannedStage:
        return PlannedStage(
            name=stage.name,
            unit=stage.unit,
            after=tuple(name for name in stage.after if name in kept),
            is_gather=stage.is_gather,
            is_required=stage.unit == "run" or stage.is_required,
            priority=priority if stage.priority is None else stage.priority,
            cpu=stage.cpu,
            memory_mb=stage.memory_mb,
            is_stream=stage.is_stream,
            timeout_s=stage.timeout_s,
            retry=stage.retry,
            pipeline_retry=self.retry,
            most_jobs=stage.follow.pages if stage.follow else None,
            most_depth=stage.follow.depth
            if stage.follow and stage.follow.depth < UNBOUNDED
            else None,
        )


def build_graph(
    pipeline: str,
    declared: Iterable[Declaration],
    retry: Any = None,
    errors: Any = None,
    schemas: Any = None,
    version: str = "",
    login: Any = None,
    config: Mapping[str, Any] | None = None,
) -> Graph:
    """Check the steps, order them, and fuse those that one job can perform together.

    What a step declares of its errors comes before what the pipeline declares. `version` stands for the
    steps that are Penstock's own.
    """
    try:
        chosen, known = retry_choice("it", retry), declared_errors("it", errors)
        checks = _checks(schemas)
        checked = None if login is None else checked_login(login)
        steps = _named([check_step(each) for each in declared])
        _check_links(steps)
        _check_windows(steps)
        ordered = _in_order(steps)
    except PipelineError as error:
        raise PipelineError(f"pipeline {pipeline!r}: {error.message}", error.hint) from None
    stages = tuple(replace(stage, schemas=checks, login=checked) for stage in _fuse(ordered, known))
    text = _fingerprint(ordered, version)
    return Graph(pipeline, stages, text, chosen, _files(ordered), config or {})


def _checks(schemas: Any) -> dict[str, ModelCheck]:
    """The models of collections, ready to be used."""
    if schemas is None:
        return {}
    if not isinstance(schemas, Mapping):
        raise PipelineError(
            "schemas= needs models by the names of collections: {'product': Product}"
        )
    found = {}
    for name, model in schemas.items():
        try:
            found[str(name)] = check_of(model)
        except SchemaError as error:
            raise PipelineError(f"the schema of {name!r}: {error}") from None
    return found


def _named(steps: list[Step]) -> dict[str, Step]:
    named: dict[str, Step] = {}
    for step in steps:
        if step.name in named:
            raise PipelineError(f"there are two steps named {step.name!r}")
        named[step.name] = step
    if not named:
        raise PipelineError("there are no steps")
    return named


def _check_links(steps: dict[str, Step]) -> None:
    for step in steps.values():
        for name in step.after:
            if name not in steps:
                others = [known for known in steps if known != step.name]
                raise PipelineError(
                    f"step {step.name!r} comes after {name!r}, which is not a step; "
                    + nearest(name, others)
                )


def _check_windows(steps: dict[str, Step]) -> None:
    taking = [step.name for step in steps.values() if step.takes_windows]
    if len(taking) > 1:
        names = " and ".join(repr(name) for name in taking)
        raise PipelineError(f"steps {names} take windows: a backfill begins with one of them")


def _in_order(steps: dict[str, Step]) -> list[Step]:
    """Each step after all it comes after; otherwise as they were written."""
    ordered: dict[str, Step] = {}
    while len(ordered) < len(steps):
        ready = [
            step
            for step in steps.values()
            if step.name not in ordered and all(name in ordered for name in step.after)
        ]
        if not ready:
            raise PipelineError(
                "steps wait for each other: " + _cycle(steps, ordered),
                "a step that finds more of its own items says follow=True and calls ctx.follow(item)",
            )
        ordered.update((step.name, step) for step in ready)
    return list(ordered.values())


def _cycle(steps: dict[str, Step], ordered: dict[str, Step]) -> str:
    name = next(name for name in steps if name not in ordered)
    path: list[str] = []
    while name not in path:
        path.append(name)
        name = next(each for each in steps[name].after if each not in ordered)
    # Walked from a step to the one before it; told in the order in which the data would flow.
    loop = [*path[path.index(name) :], name][::-1]
    return " → ".join(loop)


def _fuse(ordered: list[Step], errors: Declared) -> tuple[Stage, ...]:
    steps = {step.name: step for step in ordered}
    stage_of: dict[str, str] = {}
    for step in ordered:
        stage_of[step.name] = stage_of[step.after[0]] if _joins(step, steps) else step.name
    return tuple(
        _stage(step, ordered, stage_of, errors)
        for step in ordered
        if stage_of[step.name] == step.name
    )


def _joins(step: Step, steps: dict[str, Step]) -> bool:
    if step.stands_alone or len(step.after) != 1:
        return False
    before = steps[step.after[0]]
    return before.unit == step.unit and not before.is_gather


def _stage(first: Step, ordered: list[Step], stage_of: dict[str, str], errors: Declared) -> Stage:
    members = [step for step in ordered if stage_of[step.name] == first.name]
    return Stage(
        name=first.name,
        unit=first.unit,
        after=tuple(dict.fromkeys(stage_of[name] for name in first.after)),
        root=_node(first, first, ordered, stage_of),
        steps=tuple(step.name for step in members),
        takes_item=first.takes_windows or not (first.is_root or first.is_gather),
        is_gather=first.is_gather,
        is_async=any(step.is_async for step in members),
        isolation=first.isolation,
        retry=first.retry,
        timeout_s=first.timeout_s,
        priority=first.priority,
        cpu=first.cpu,
        memory_mb=first.memory_mb,
        is_stream=first.is_stream,
        useful_for_s=first.useful_for_s,
        is_required=first.is_required,
        errors=(*(each for step in members for each in step.errors), *errors),
        takes_windows=first.takes_windows,
        spends=frozenset().union(*(measures_spent(step.function) for step in members)),
        follow=first.follow,
        follow_feed=Feed(first.name, first.name, key_of(first), first.priority)
        if first.follow
        else None,
    )


def _planner(windows: Stage) -> Stage:
    """The stage that makes the windows jobs of a backfill."""
    feed = Feed(windows.name, PLANNER, key_of_window(windows.name), windows.priority)
    return stage_of_our_own(PLANNER, _plan, (feed,), windows.priority)


def stage_of_our_own(
    name: str, invoke: Invoke, feeds: tuple[Feed, ...] = (), priority: int | None = None
) -> Stage:
    """A stage that begins a run and is in no pipeline: one async step of Penstock's."""
    node = Node(name, invoke, True, True, True, not feeds, (), feeds)
    return Stage(
        name=name,
        unit="run",
        after=(),
        root=node,
        steps=(name,),
        takes_item=False,
        is_gather=False,
        is_async=True,
        isolation=None,
        retry=None,
        timeout_s=None,
        priority=priority,
        cpu=0.0,
        memory_mb=0.0,
    )


def _plan(item: Any, ctx: Any) -> Any:
    return plan_windows(ctx.in_progress)


def _node(step: Step, first: Step, ordered: list[Step], stage_of: dict[str, str]) -> Node:
    # A gather step is started by the run, not by items, so nothing is fed to it.
    after = [each for each in ordered if step.name in each.after and not each.is_gather]
    fused = [each for each in after if stage_of[each.name] == first.name]
    fed = [each for each in after if stage_of[each.name] != first.name]
    return Node(
        name=step.name,
        invoke=step.invoke,
        takes_ctx=step.takes_ctx,
        is_async=step.is_async,
        is_root=step is first,
        is_leaf=not after,
        fused=tuple(_node(each, first, ordered, stage_of) for each in fused),
        feeds=tuple(
            Feed(each.name, step.name, key_of(each), each.priority, each.takes)
            for each in (*fed, *((step,) if step.feeds_itself else ()))
        ),
    )


def _fingerprint(ordered: list[Step], version: str) -> str:
    """Equal for equal code and configuration: the text of every module that holds a step counts, and of
    the project's modules that it uses, so that a change of a function a step calls is a new version too."""
    digest = hashlib.blake2b(digest_size=8)
    written = [step for step in ordered if not (version and is_ours(step.function))]
    for step in written:
        digest.update(repr(_configuration(step)).encode("utf-8", "backslashreplace"))
    for text in sorted(set().union(*(code_texts(step.function) for step in written))):
        digest.update(text)
    digest.update(version.encode())
    return digest.hexdigest()


def _files(ordered: list[Step]) -> dict[Path, str]:
    found: dict[Path, bytes] = {}
    for step in ordered:
        found |= code_files(step.function)
    return {file: hash_of(text) for file, text in found.items()}


def _configuration(step: Step) -> tuple[object, ...]:
    key = step.key if isinstance(step.key, str) or step.key is None else "function"
    wants = (step.retry, step.timeout_s, step.priority, step.cpu, step.memory_mb, step.isolation)
    # What most steps are not is left out, so that their version stays what it was.
    kind: tuple[object, ...] = ("windows",) if step.takes_windows else ()
    if step.follow is not None:
        kind = (*kind, "follow", step.follow.depth, step.follow.pages)
        kind = (*kind, "itself") if step.feeds_itself else kind
    if step.takes:
        kind = (*kind, "takes", *step.takes)
    return (step.name, step.unit, step.is_stream, step.after, key, step.is_gather, *wants, *kind)
