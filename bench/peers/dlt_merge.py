"""dlt merging records by primary key into a SQLite file (its sqlalchemy destination)."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dlt

from bench.records import check, detail, first_load, second_load


def merge(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Load every other record, uncounted, then merge all of them against the clock.

    By default dlt declares no key to SQLite, and its merge compares every record with every other;
    `has_primary_key` is the setting that mends it.
    """
    file = folder / "records.db"
    pipeline = dlt.pipeline(
        "records",
        pipelines_dir=str(folder / "pipelines"),
        destination=dlt.destinations.sqlalchemy(
            f"sqlite:///{file}", create_primary_keys=size["has_primary_key"]
        ),
        dataset_name="main",
    )
    more_fields = size.get("more_fields", 0)
    _load(pipeline, first_load(size["records"], more_fields))
    began = time.perf_counter()
    _load(pipeline, second_load(size["records"], more_fields))
    seconds = time.perf_counter() - began
    with sqlite3.connect(file) as db:
        check(dict(db.execute("SELECT sku, price FROM product")), size["records"])
        if more_fields:
            query = f"SELECT count({detail(more_fields - 1)}) FROM product"
            [[wide]] = db.execute(query).fetchall()
            if wide != size["records"]:
                raise ValueError(f"{wide} of {size['records']} records have all of their fields")
    return {"seconds": seconds, "done": size["records"]}


def _load(pipeline: dlt.Pipeline, records: Iterator[dict[str, Any]]) -> None:
    resource = dlt.resource(records, name="product", primary_key="sku", write_disposition="merge")
    pipeline.run(resource).raise_on_failed_jobs()
