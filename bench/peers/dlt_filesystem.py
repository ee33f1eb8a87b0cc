"""dlt's filesystem source: reads every file of a folder into a SQLite file (its sqlalchemy destination)."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dlt
from dlt.sources.filesystem import filesystem

from bench import text_files


def load(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Read all files once, merged by their name, as Penstock saves them."""
    place, file = folder / "texts", folder / "files.db"
    text_files.write(place, size["files"], size["file_bytes"])
    pipeline = dlt.pipeline(
        "files",
        pipelines_dir=str(folder / "pipelines"),
        destination=dlt.destinations.sqlalchemy(f"sqlite:///{file}", create_primary_keys=True),
        dataset_name="main",
    )
    began = time.perf_counter()
    listed = filesystem(bucket_url=place.as_uri(), file_glob="**/*.txt")
    read = (listed | texts()).with_name("document")
    read.apply_hints(primary_key="name", write_disposition="merge")
    pipeline.run(read).raise_on_failed_jobs()
    seconds = time.perf_counter() - began
    with sqlite3.connect(file) as db:
        found = dict(db.execute("SELECT name, length(trim(text, char(10))) FROM document"))
    text_files.check(found, size["files"], size["file_bytes"])
    return {"seconds": seconds, "done": size["files"]}


@dlt.transformer
def texts(items: list[Any]) -> Iterator[dict[str, Any]]:
    for item in items:
        text = item.read_bytes().decode()
        yield {
            "name": item["file_name"].rpartition("/")[2],
            "text": text,
            "size": item["size_in_bytes"],
        }
