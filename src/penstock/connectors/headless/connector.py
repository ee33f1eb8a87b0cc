"""The connector `headless`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.connectors.contract import Item, Sample
from penstock.connectors.formats.kinds import parse
from penstock.connectors.headless.keys import HeadlessKeys
from penstock.connectors.web.connector import PAGES, Web

if TYPE_CHECKING:
    from penstock.connectors.target import Recognised, Target
    from penstock.http.response import Response
    from penstock.pipeline.context import Context

LOOKED_AT = 200_000
FEW_LETTERS = 100


class Headless(Web):
    """Pages of a site as they stand when their scripts have run: each is opened in chromium.

    Found as `web` finds them. Every request of a page passes the limits and address rules of the source.
    """

    name = "headless"
    summary = "pages that need a browser, found by a sitemap, by links, or from a list"
    Settings = HeadlessKeys
    extra = "headless"
    modules = ("playwright",)
    # Chromium takes a core for each page that it draws.
    concurrency = 2
    settings: HeadlessKeys

    async def bring(self, ctx: Context, item: Item) -> Response:
        keys = self.settings
        return await ctx.render(
            item.address,
            missing="fail",
            wait=keys.wait,
            wait_timeout=keys.wait_timeout,
            screenshot=keys.screenshot,
            viewport=keys.viewport,
            block=keys.block,
            scripts=keys.scripts,
            memory=keys.memory,
            pages_per_browser=keys.pages_per_browser,
            browser=keys.browser,
            folder=str(self.folder) if self.is_in_folder(item) else "",
        )

    @classmethod
    async def recognise(cls, target: Target) -> Recognised | None:
        """What `web` recognises, and better than it where a page has scripts and nothing else."""
        found = await super().recognise(target)
        if found is None or target.response is None:
            return None
        is_empty = _is_left_to_scripts(target.response) and not cls.missing_modules()
        why = "a page whose content comes by script" if is_empty else found.why
        return msgspec.structs.replace(found, why=why, fit=found.fit + 5 if is_empty else 1)

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {"url": "https://example.com/", "wait": {"selector": "main"}}

    @classmethod
    def sample(cls, folder: Path) -> Sample:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in DEMO.items():
            (folder / name).write_text(text, encoding="utf-8")
        keys = {"url": f"./{folder.name}/index.html", "wait": {"selector": "main li"}}
        return Sample("demo-headless", keys)


def _is_left_to_scripts(response: Response) -> bool:
    if response.content_type not in PAGES or b"<script" not in response.body.lower():
        return False
    page = parse("html", response.body[:LOOKED_AT], url=response.url)
    return not page.links and len(page.text) < FEW_LETTERS


DEMO = {
    "index.html": """<!doctype html>
<html lang="en">
<head><title>Teas</title><script src="teas.js" defer></script></head>
<body><main><h1>Teas</h1><p>Nothing is here before the script has run.</p><ul></ul></main></body>
</html>
""",
    "teas.js": """const list = document.querySelector("ul");
const response = fetch("teas.json").then((found) => found.json());
response.then((teas) => {
  document.querySelector("p").textContent = `${teas.length} teas, listed by a script.`;
  for (const tea of teas) {
    const item = document.createElement("li");
    item.innerHTML = `<a href="tea.html?name=${tea.name}">${tea.name}</a>: ${tea.price} per cup`;
    list.append(item);
  }
});
""",
    "teas.json": """[{"name": "Assam", "price": "2.50"}, {"name": "Sencha", "price": "3.20"}]
""",
    "tea.html": """<!doctype html>
<html lang="en">
<head><title>Tea</title></head>
<body><main><h1></h1><ul></ul></main>
<script>
const name = new URLSearchParams(location.search).get("name");
document.title = document.querySelector("h1").textContent = name;
fetch("teas.json").then((found) => found.json()).then((teas) => {
  const item = document.createElement("li");
  item.textContent = `A cup of ${name} is ${teas.find((tea) => tea.name === name).price}.`;
  document.querySelector("ul").append(item);
});
</script></body>
</html>
""",
}
