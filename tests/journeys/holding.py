"""Pipelines whose pages do not end before they are let go: the test decides what is running when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.journeys.rig import Rig, until

HOLDING = """
import asyncio
import os
from pathlib import Path

from penstock import Pipeline

here = Path(__file__).parent
pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params["pages"]):
        yield {"number": number}


@pages.step(after="discover", unit="page", key="number")
async def hold(page, ctx):
    seen = "nothing"
    if "site" in ctx.params:
        response = await ctx.fetch(f"{ctx.params['site']}/page/{page['number']}")
        seen = "snapshot" if response.is_from_snapshot else "site"
    (here / f"held-{page['number']}").touch()
    while not (here / "go").exists():
        await asyncio.sleep(0.01)
    ctx.save("page", key=str(page["number"]), data={"pid": os.getpid(), "seen": seen})
"""


def holding_source(pages: int, **params: Any) -> dict[str, Any]:
    return {
        "pipeline": "steps:pages",
        "params": {"pages": pages, **params},
        "limits": {"concurrency": 4},
        "fetch": {"allow_private": True, "robots": False},
    }


def held(rig: Rig) -> list[Path]:
    return list(rig.folder.glob("held-*"))


def wait_until_held(rig: Rig, pages: int) -> None:
    until(lambda: len(held(rig)) >= pages, f"{pages} pages are held")


def forget_held(rig: Rig) -> None:
    for path in held(rig):
        path.unlink()


def let_go(rig: Rig) -> None:
    (rig.folder / "go").touch()
