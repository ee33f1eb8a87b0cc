"""Schemas of collections: made from what is stored, and stored records tested against one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.views.record_schemas import MisfitView, SchemaCheckView
from penstock.errors import UsageError
from penstock.schemas.infer import schema_of
from penstock.schemas.models import ModelCheck, check_of
from penstock.schemas.problems import SchemaError
from penstock.schemas.shape import Shape
from penstock.schemas.tombstones import is_tombstone

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.store.rows import RecordRow

SHOWN = 20


def infer(project: Nouns, collection: str, *, include_private: bool = False) -> dict[str, Any]:
    """The JSON Schema that all present records of a collection fit; tombstones fit every schema.

    The names of fields may be content, so records of private sources are left out.
    """
    project.records.require_collection(collection)
    shape = Shape()
    is_included = include_private or project.includes_private
    private = frozenset() if is_included else project.settings.private_sources
    for row in _rows(project, collection):
        if row.source not in private:
            shape.add(row.data)
    return {**schema_of(shape), "title": collection}


def check(project: Nouns, collection: str, schema: Path | None, limit: int) -> SchemaCheckView:
    """Which present records do not fit the schema of their collection, or the one in a file."""
    project.records.require_collection(collection)
    checks = [_in_file(schema)] if schema is not None else list(_checks(project, collection))
    if not checks:
        raise UsageError(
            f"{collection} has no schema",
            "name a file under collections: in penstock.yaml, or a model in the pipeline",
            code="no_schema",
        )
    tested = misfits = 0
    shown: list[MisfitView] = []
    for row in _rows(project, collection):
        tested += 1
        problem = next(filter(None, (each(row.data, False) for each in checks)), None)
        if problem is not None:
            misfits += 1
            if len(shown) < limit:
                shown.append(
                    MisfitView(key=row.key, source=row.source, run=row.run, problem=problem)
                )
    return SchemaCheckView(collection=collection, records=tested, misfits=misfits, shown=shown)


def _rows(project: Nouns, collection: str) -> Iterator[RecordRow]:
    return (
        row for row in project.connection.records.each(collection) if not is_tombstone(row.data)
    )


def _in_file(file: Path) -> ModelCheck:
    try:
        return check_of(msgspec.json.decode(file.read_bytes()))
    except OSError as error:
        raise UsageError(
            f"can't read {file}: {error.strerror or error}", code="no_schema"
        ) from None
    except (msgspec.DecodeError, SchemaError) as error:
        raise UsageError(f"{file} is no schema: {error}", code="no_schema") from None


def _checks(project: Nouns, collection: str) -> Iterator[ModelCheck]:
    configured = project.settings.collections.get(collection)
    if configured is not None:
        yield _configured(configured.schema, configured.file)
    seen: set[int] = set()
    for source in project.loadable_sources().values():
        for stage in project.graph(source).stages:
            named = stage.schemas.get(collection)
            if named is not None and id(named) not in seen:
                seen.add(id(named))
                yield named


def _configured(schema: Any, file: Path) -> ModelCheck:
    try:
        return check_of(schema)
    except SchemaError as error:
        raise UsageError(f"{file.name}: {error}", code="no_schema") from None
