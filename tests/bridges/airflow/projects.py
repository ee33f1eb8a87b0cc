"""Projects for the tests of the bridge, and DAG files for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

STEPS = """
import json
from pathlib import Path

from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params["pages"]):
        yield {"number": number}


@pages.step(after="discover", unit="page", key="number")
def extract(page, ctx):
    mended = Path(__file__).with_name("mended").exists()
    if page["number"] in ctx.params.get("bad", ()) and not mended:
        raise ValueError(f"page {page['number']} has no price")
    return page


@pages.step(after="extract", unit="candidate")
def persist(page, ctx):
    ctx.save("page", key=str(page["number"]), data=page)


@pages.step(after="persist", unit="run", gather=True)
async def package(ctx):
    records = [record async for record in ctx.records("page")]
    ctx.save("report", key="all", data={"pages": len(records)})
"""
BACKFILLED = """
from penstock import Pipeline

bars = Pipeline("bars")


@bars.step(unit="page", windows=True)
def fetch(window, ctx):
    return {"day": window["from"][:10], "to": window["to"]}


@bars.step(after="fetch", unit="candidate")
def save(bar, ctx):
    ctx.save("bar", key=bar["day"], data=bar)
"""
DAG = """
from datetime import timedelta

from penstock.bridges.airflow import pipeline_dag

tries = {{"retries": {retries}, "retry_delay": timedelta(0)}}
dag = pipeline_dag({folder!r}, "shop", default_args=tries{more})
"""


def source(pages: int, **params: Any) -> dict[str, Any]:
    return {
        "pipeline": "steps:pages",
        "params": {"pages": pages, **params},
        "retry": {"tries": 1},
    }


def dag_text(folder: Path, more: str = "", retries: int = 1) -> str:
    return DAG.format(folder=str(folder), more=f", {more}" if more else "", retries=retries)
