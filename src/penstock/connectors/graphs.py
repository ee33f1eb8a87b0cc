"""The pipeline of a connector: discover, read, and save; or the user's own steps after `read`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from penstock.connectors.contract import (
    Checkpoint,
    Connector,
    Document,
    Gone,
    Item,
    Place,
    Tombstone,
)
from penstock.connectors.listing import Listing, knowledge_of
from penstock.errors import ConfigError, PipelineError
from penstock.jobs.effects import Announced
from penstock.jobs.outcome import Skip
from penstock.pipeline.graph import Graph
from penstock.pipeline.loader import load_graph, load_pipeline
from penstock.pipeline.pipeline import Pipeline, joined
from penstock.pipeline.step import Follow
from penstock.settings.connector import find_connector

if TYPE_CHECKING:
    from penstock.pipeline.attempt import StepSource
    from penstock.pipeline.context import Context
    from penstock.settings import SourceSettings

# A document as the next step gets it.
Shaped: TypeAlias = Callable[[Document, Item], "Document | dict[str, Any]"]
PROBE_TIMEOUT = "30s"
MOST_MADE = 10_000
_encode = msgspec.json.Encoder(order="deterministic").encode


def graph_of(source: SourceSettings, root: Path, where: str) -> Graph:
    """The graph of a source: of its pipeline, or of its connector, with the pipeline's steps after it."""
    if not source.connector:
        return load_graph(source.pipeline, root, where, source.profile)
    profile = source.profile
    own = load_pipeline(source.pipeline, root, where, profile) if source.pipeline else None
    where = where.replace(".pipeline", ".connector")
    try:
        graph = connected(source.connector, own).compile()
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", error.hint) from error
    except PipelineError as error:
        hint = error.hint or 'a step that gets what the connector reads says after="read"'
        raise PipelineError(f"{where}: {error.message}", hint) from error
    made = _made(source.connector, source.key, str(root), _encode(source.options))
    is_heard = own is None or made.hints
    return _bounded(graph if is_heard else _heard(graph), *made.bounds())


def connected(name: str, own: Pipeline | None) -> Pipeline:
    """The pipeline of a connector, with the user's own steps in place of `save`."""
    connector: type[Connector[Any]] = find_connector(name)
    connector.require()
    if own is not None and own.reads:
        if name not in own.reads:
            raise PipelineError(
                f"pipeline {own.name!r} reads by the connector {' or '.join(own.reads)}, not by {name}",
                f"connector: {own.reads[0]}",
            )
        return own
    made = pipeline_of(connector, saves=own is None)
    return made if own is None else joined(made, own)


def _heard(graph: Graph) -> Graph:
    """The graph without a stream whose events no step of the user's gets: they would be lost."""
    given = {name for stage in graph.stages for name in stage.after}
    stages = [stage for stage in graph.stages if not stage.is_stream or stage.name in given]
    return replace(graph, stages=tuple(stages))


def _bounded(graph: Graph, depth: int, pages: int) -> Graph:
    """The graph with the bounds of a source's own on what is followed."""
    stages = [
        replace(stage, follow=Follow(depth, pages)) if stage.follow else stage
        for stage in graph.stages
    ]
    return replace(graph, stages=tuple(stages))


def pipeline_of(connector: type[Connector[Any]], *, saves: bool) -> Pipeline:
    """discover → read, and save where nobody else has steps."""
    pipeline = Pipeline(connector.name, retry=connector.retry, errors=connector.errors)

    @pipeline.step(unit="run")
    async def discover(ctx: Context) -> AsyncIterator[dict[str, Any]]:
        async for found in listed(ctx, connector_of(connector.name, ctx.source)):
            yield found

    # It has a key, so that it is a job of its own, and its errors are those of one item.
    about: dict[str, Any] = (
        {"windows": True} if connector.takes_windows else {"key": "key", "follow": True}
    )

    shaped = _as_saved if saves else _shaped

    @pipeline.step(
        after="discover",
        unit="page",
        timeout=connector.timeout,
        resources=connector.resources or None,
        **about,
    )
    async def read(item: dict[str, Any], ctx: Context) -> AsyncIterator[Any]:
        made = connector_of(connector.name, ctx.source)
        async for found in documents(ctx, made, item, shaped):
            yield found

    if saves:

        @pipeline.step(after="read", unit="page")
        async def save(document: Document | dict[str, Any], ctx: Context) -> None:
            _save(ctx, connector_of(connector.name, ctx.source), document)

    if connector.has_stream:
        _add_stream(pipeline, connector, saves)
    if connector.settles:

        @pipeline.step(after="read", gather=True)
        async def settle(ctx: Context) -> None:
            await connector_of(connector.name, ctx.source).settle(ctx)

    pipeline.version = f"{connector.name} {connector.version}"
    return pipeline


async def listed(ctx: Context, made: Connector[Any]) -> AsyncIterator[dict[str, Any]]:
    """What a connector finds that is to be read, as items of jobs."""
    cursors = await ctx.in_progress.services.cursors(ctx.in_progress.job)
    listing = Listing(ctx, made)
    async for found in made.discover(ctx, cursors):
        async for item in listing.take(found):
            yield _handed_on(item, made)
    async for item in listing.rest():
        yield _handed_on(item, made)


async def documents(
    ctx: Context, made: Connector[Any], item: dict[str, Any], shaped: Shaped | None = None
) -> AsyncIterator[Any]:
    """What is read of an item; further items are followed, and what is gone becomes a tombstone."""
    wanted = made.windowed(ctx.window) if made.takes_windows else msgspec.convert(item, Item)
    if wanted.is_deleted:
        await made.deleted(ctx, wanted)
        yield _tombstone(ctx, wanted)
        return
    shaped = shaped or _shaped
    if wanted.is_new:
        ctx.in_progress.new_page = wanted.address
    try:
        async for found in made.read(ctx, wanted):
            if isinstance(found, Document):
                yield shaped(found, wanted)
            elif isinstance(found, Tombstone):
                yield {"key": found.key, "deleted": True}
            else:
                _remember(ctx, found)
    except Gone as gone:
        made_of_it = await _gone(ctx, wanted, gone)
        await made.deleted(ctx, wanted)
        yield made_of_it


def _remember(ctx: Context, found: Item | Checkpoint) -> None:
    """Further items are followed."""
    if isinstance(found, Item):
        _follow(ctx, found)
    else:
        ctx.checkpoint(found.cursor, found.partition, ordered=found.ordered)


def _add_stream(pipeline: Pipeline, connector: type[Connector[Any]], saves: bool) -> None:
    """A step of its own, for runs of kind `stream`."""

    @pipeline.step(unit="stream")
    async def listen(ctx: Context) -> AsyncIterator[dict[str, Any]]:
        made = connector_of(connector.name, ctx.source)
        async for found in made.listen(ctx):
            if isinstance(found, Checkpoint):
                ctx.checkpoint(found.cursor, found.partition, ordered=found.ordered)
            elif saves:
                _save(ctx, made, _shaped(found))
            else:
                yield _shaped(found)


def _save(ctx: Context, made: Connector[Any], document: Document | dict[str, Any]) -> None:
    key = document.key if isinstance(document, Document) else document["key"]
    ctx.save(made.settings.collection or ctx.source.key, key=key, data=document)


def _handed_on(item: Item, made: Connector[Any]) -> dict[str, Any]:
    """An item as its job has it; a window needs no more than its times."""
    found: dict[str, Any] = item.about if made.takes_windows else msgspec.to_builtins(item)
    return found


def probe_graph(name: str, facts: dict[str, Any]) -> Graph:
    """One step that asks the connector about its place, with the connector's classes of errors."""
    connector: type[Connector[Any]] = find_connector(name)
    pipeline = Pipeline(name, retry=connector.retry, errors=connector.errors)

    @pipeline.step(unit="run", timeout=PROBE_TIMEOUT)
    async def probe(ctx: Context) -> None:
        facts.update(await connector_of(name, ctx.source).probe(ctx))

    return pipeline.compile()


# Each document of a page asks for its connector: the last answer of a source is at hand.
_last: dict[tuple[str, str], tuple[StepSource, Connector[Any]]] = {}


def connector_of(name: str, source: StepSource) -> Connector[Any]:
    """The connector of a source, made once."""
    found = _last.get((name, source.key))
    if found is not None and found[0] is source:
        return found[1]
    made = _made(name, source.key, source.root, _encode(source.options))
    if len(_last) >= MOST_MADE:
        _last.clear()
    _last[name, source.key] = (source, made)
    return made


@lru_cache(maxsize=MOST_MADE)
def _made(name: str, source: str, root: str, options: bytes) -> Connector[Any]:
    connector: type[Connector[Any]] = find_connector(name)
    settings = msgspec.json.decode(options, type=connector.Settings)
    return connector(settings, Place(source, Path(root)))


def _follow(ctx: Context, item: Item) -> None:
    """Announced first: what is as it was is not even asked for."""
    ctx.in_progress.announce(Announced(item.address, item.announced))
    ctx.follow(msgspec.to_builtins(item))


def _as_saved(document: Document, item: Item) -> Document | dict[str, Any]:
    """A document as nobody but `save` sees it: most need no other shape to be written."""
    if document.data is None or item.moved_from:
        return _shaped(document, item)
    return document


def _shaped(document: Document, item: Item | None = None) -> dict[str, Any]:
    """A document as it is saved: every field of its shape, and the rare ones where they say something."""
    made: dict[str, Any] = msgspec.to_builtins(document)
    if made["data"] is None:
        del made["data"]
    if item is not None and item.moved_from:
        made["moved_from"] = item.moved_from
    return made


def _tombstone(ctx: Context, item: Item) -> dict[str, Any]:
    ctx.in_progress.effects.gone.append(item.address)
    made: dict[str, Any] = {"key": item.key, "deleted": True}
    if item.moved_to:
        made["moved_to"] = item.moved_to
    return made


async def _gone(ctx: Context, item: Item, gone: Gone) -> dict[str, Any]:
    """A tombstone, for what was read before; what was never there leaves nothing."""
    known = await knowledge_of(ctx).known_pages(ctx.in_progress.job, [item.address])
    if item.address not in known or known[item.address].done_hash is None:
        raise Skip(f"not there: {gone}")
    return _tombstone(ctx, item)
