"""Write the pictures of docs/dashboard.md (`make screenshots`) from the project of `penstock demo`."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.browser.chromium import FLAGS
from tests.browser.shop import served
from tests.journeys.rig import ENVIRONMENT, PENSTOCK
from tests.programs import find

FOLDER = Path(__file__).parents[2] / "docs" / "images"
DESK, PHONE = {"width": 1100, "height": 760}, {"width": 360, "height": 720}
# The name of each picture, its page, the theme, and the size of the screen.
PICTURES: tuple[tuple[str, str, Any, Any], ...] = (
    ("overview", "/", "light", DESK),
    ("overview-phone", "/", "dark", PHONE),
    ("source", "/sources/catalogue", "light", DESK),
    ("run", "/runs/3", "dark", DESK),
    ("act", "/acts/runs.retry?run=3&back=/", "light", DESK),
    ("quarantine", "/quarantine", "light", DESK),
)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "demo"
        demo = [*PENSTOCK, "demo", "--dir", str(folder)]
        subprocess.run(demo, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
        # Whoever leads sums up what happened: the charts are drawn from that.
        idle = [*PENSTOCK, "up", "--until-idle", "--project", str(folder)]
        subprocess.run(idle, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
        with served(folder) as (address, link):
            take(address, link)


def take(address: str, link: str) -> None:
    """One picture after the other, in one browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(find("chromium")), args=FLAGS)
        page = browser.new_page()
        page.goto(link)
        page.wait_for_url(f"{address}/")
        for name, path, theme, size in PICTURES:
            page.set_viewport_size(size)
            page.emulate_media(color_scheme=theme)
            page.goto(address + path)
            page.screenshot(path=FOLDER / f"dashboard-{name}.png")
            print(f"docs/images/dashboard-{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
