"""Plain Playwright: one tab that opens every page, takes its HTML and forgets it."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from pathlib import Path
from typing import Any

from playwright.async_api import async_playwright

from bench.site import paths


def crawl(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """From before the browser is started, which Penstock does within its run, too."""
    return asyncio.run(_crawl([size["origin"] + path for path in paths(size["pages"])]))


async def _crawl(urls: list[str]) -> dict[str, Any]:
    began = time.perf_counter()
    taken = 0
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), chromium_sandbox=os.geteuid() != 0
        )
        page = await browser.new_page()
        for url in urls:
            await page.goto(url, wait_until="load")
            taken += bool(await page.content())
        seconds = time.perf_counter() - began
        await browser.close()
    return {"seconds": seconds, "done": taken}
