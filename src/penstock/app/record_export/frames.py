"""Records as a table in memory, for Arrow, pandas and polars."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from penstock.app.record_export.arrow import batches, schema_of
from penstock.app.record_export.columns import columns_of
from penstock.app.record_export.export import as_lines
from penstock.app.record_export.formats import needed
from penstock.schemas.shape import Shape

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.store.rows import RecordRow


def arrow_table(project: Nouns, rows: Iterable[RecordRow], include_private: bool) -> Any:
    """These records as one Arrow table."""
    arrow = needed("pyarrow", "an Arrow table")
    private = frozenset() if include_private else project.settings.private_sources
    lines = as_lines((row for row in rows if row.source not in private), project.settings.secrets)
    shape = Shape()
    for line in lines:
        shape.add(line["data"])
    columns = columns_of(shape, len(lines))
    schema = schema_of(columns)
    return arrow.Table.from_batches(batches(lines, columns, schema), schema=schema)
