"""dlt's rest_api source, page by page into a SQLite file (its sqlalchemy destination)."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import dlt
from dlt.sources.rest_api import rest_api_source

from bench.records import check


def load(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Read all items once. `is_merged`: by their key, as Penstock saves them; else they are only appended."""
    file = folder / "items.db"
    pipeline = dlt.pipeline(
        "items",
        pipelines_dir=str(folder / "pipelines"),
        destination=dlt.destinations.sqlalchemy(f"sqlite:///{file}", create_primary_keys=True),
        dataset_name="main",
    )
    resource: dict[str, Any] = {
        "name": "items",
        "primary_key": "sku",
        "write_disposition": "merge" if size["is_merged"] else "append",
        "endpoint": {
            "path": "items",
            "data_selector": "items",
            "paginator": {"type": "page_number", "base_page": 1, "total_path": "pages"},
        },
    }
    client = {"base_url": size["origin"]}
    began = time.perf_counter()
    source = rest_api_source({"client": client, "resources": [resource]})  # type: ignore[typeddict-item]
    pipeline.run(source).raise_on_failed_jobs()
    seconds = time.perf_counter() - began
    with sqlite3.connect(file) as db:
        check(dict(db.execute("SELECT sku, price FROM items")), size["items"])
    return {"seconds": seconds, "done": size["items"]}
