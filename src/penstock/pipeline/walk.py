"""The walk of one item through the steps of a stage: the one place where the two colours meet.

Plain steps are walked by `walk_plain`, in a thread or inline; async ones by `walk_async`, on the
loop. Each hands over to the other where the colour changes.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from contextlib import aclosing, closing
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

import msgspec

from penstock.errors import PipelineError
from penstock.jobs.outcome import Reject, Skip
from penstock.pipeline.attempt import Attempt
from penstock.pipeline.context import Context, PlainContext
from penstock.pipeline.graph import Node
from penstock.pipeline.rejection import rejection_of
from penstock.pipeline.step import DataError

_decode = msgspec.json.decode


def item_of(attempt: Attempt) -> Any:
    """The job's item; a damaged one is this job's failure, not the worker's."""
    if not attempt.stage.takes_item:
        return None
    try:
        return _decode(attempt.job.item)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise DataError(f"the item of this job is not JSON: {error}") from None


def walk_plain(node: Node, item: Any, attempt: Attempt) -> None:
    """Perform a plain step and all that follows it; blocks where an async step follows."""
    result = _call_plain(node, item, attempt)
    if type(result) is not GeneratorType:
        _pass_on_plain(node, result, attempt)
        return
    # Closed here and now: what a step opened in this thread may have to be closed in it.
    with closing(result):
        for output in result:
            _pass_on_plain(node, output, attempt)


def _call_plain(node: Node, item: Any, attempt: Attempt) -> Any:
    if node.is_leaf:
        attempt.has_arrived = True
    ctx = PlainContext(attempt, node.name) if node.takes_ctx else None
    result = node.invoke(item, ctx)
    kind = type(result)
    if kind is CoroutineType or kind is AsyncGeneratorType:
        raise _hidden_async(node, result)
    return result


def _pass_on_plain(node: Node, output: Any, attempt: Attempt) -> None:
    # Nobody can stop a step's thread; one whose attempt is over stops here, at its next yield.
    attempt.guard()
    if output is None:
        return
    for feed in node.feeds:
        if feed.accepts(output):
            attempt.enqueue(feed.job(output, attempt.source.priority, attempt.snapshot))
    for successor, item in _handed_over(node, output):
        try:
            if successor.is_async:
                attempt.wait(walk_async(successor, item, attempt), f"step {successor.name!r}")
            else:
                walk_plain(successor, item, attempt)
        except (Skip, Reject) as dropped:
            _drop(attempt, dropped)
    if attempt.outflow is not None:
        if node.is_root:
            attempt.outflow.seal()
        if attempt.outflow.is_full:
            attempt.wait(attempt.outflow.relieve(), "room to write")
        if attempt.halt_reason:
            attempt.wait(attempt.pause_point(), "its pause")
    if attempt.probe is not None:
        attempt.probe.check()


async def walk_async(node: Node, item: Any, attempt: Attempt) -> None:
    """Perform a step of either colour and all that follows it, from the loop."""
    if node.is_async:
        await _walk_awaited(node, item, attempt)
    elif attempt.hops:
        await attempt.hop(lambda: walk_plain(node, item, attempt))
    else:
        await _pass_on_result(node, _call_plain(node, item, attempt), attempt)


async def _walk_awaited(node: Node, item: Any, attempt: Attempt) -> None:
    if node.is_leaf:
        attempt.has_arrived = True
    result = node.invoke(item, Context(attempt, node.name))
    if type(result) is not AsyncGeneratorType:
        result = await result
        if result is None:
            # The usual end of a step that saves: nothing to pass on, and nothing to wait for.
            attempt.guard()
        else:
            await _pass_on_result(node, result, attempt)
        return
    async with aclosing(result):
        async for output in result:
            await _pass_on_async(node, output, attempt)


async def _pass_on_result(node: Node, result: Any, attempt: Attempt) -> None:
    if type(result) is not GeneratorType:
        await _pass_on_async(node, result, attempt)
        return
    with closing(result):
        for output in result:
            await _pass_on_async(node, output, attempt)


async def _pass_on_async(node: Node, output: Any, attempt: Attempt) -> None:
    attempt.guard()
    if output is None:
        return
    for feed in node.feeds:
        if feed.accepts(output):
            attempt.enqueue(feed.job(output, attempt.source.priority, attempt.snapshot))
    for successor, item in _handed_over(node, output):
        try:
            await (_walk_awaited if successor.is_async else walk_async)(successor, item, attempt)
        except (Skip, Reject) as dropped:
            _drop(attempt, dropped)
    if attempt.outflow is not None:
        if node.is_root:
            attempt.outflow.seal()
        if attempt.outflow.is_full:
            await attempt.outflow.relieve()
        if attempt.halt_reason:
            await attempt.pause_point()
    if attempt.probe is not None:
        attempt.probe.check()


def _handed_over(node: Node, output: Any) -> Iterable[tuple[Node, Any]]:
    """Each fused successor with its own item: what one changes in it, the others must not see."""
    fused = node.fused
    if len(fused) == 1:
        return ((fused[0], output),)
    return [(successor, copy.deepcopy(output)) for successor in fused]


def _drop(attempt: Attempt, dropped: Skip | Reject) -> None:
    """One output of many was not wanted; the others go on."""
    attempt.dropped = dropped
    if isinstance(dropped, Reject):
        attempt.effects.rejections.append(rejection_of(dropped))


def _hidden_async(node: Node, result: Any) -> PipelineError:
    """A decorator can hide that a function is async; what it does would be dropped without a word."""
    if type(result) is CoroutineType:
        result.close()
    return PipelineError(
        f"step {node.name!r} is a plain function but returned something to await: make it async def"
    )
