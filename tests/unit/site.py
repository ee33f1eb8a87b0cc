"""A small site on virtual time that can be changed between runs, and the projects that read it.

site = Site()
site.page("/a", "first", lastmod="2026-11-01")
project = a_project(tmp_path, site)
run = go(project, site, "full")
assert site.asked == ["/robots.txt", "/sitemap.xml", "/a"]
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import Project
from penstock.http.network import RawResponse, Request
from penstock.store.rows import RunRow
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock

HOST = "https://shop.example"
MODULE = "visiting"

PIPELINES = """
from penstock import Pipeline, Skip

MADE = "{made}"

shop = Pipeline("shop")


@shop.step(unit="run")
async def discover(ctx):
    async for url in ctx.sitemap(ctx.params["sitemap"]):
        yield {{"url": url}}


@shop.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    if "broken" in response.text:
        raise ValueError("no price here")
    if "unwanted" in response.text:
        raise Skip("not a product")
    yield {{"url": response.url, "text": response.text, "made": MADE + ctx.params.get("mark", "")}}


@shop.step(after="extract", unit="candidate")
def persist(page, ctx):
    if "poison" in page["text"]:
        raise ValueError("can't be saved")
    ctx.save("page", key=page["url"], data=page)
"""


@dataclass
class Page:
    body: bytes
    lastmod: str = ""
    etag: bool = False
    status: int = 200
    location: str = ""
    takes_s: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)


class Site:
    """What the host serves now, and what it was asked for since it was last looked at."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.asked: list[str] = []
        self.conditional: list[str] = []
        self.robots = ""
        self.sitemap_has_etag = False

    def page(self, path: str, body: str, **about: Any) -> None:
        self.pages[path] = Page(body.encode(), **about)

    def take(self) -> list[str]:
        """The paths asked for since the last look, without robots.txt."""
        asked, self.asked = self.asked, []
        self.conditional = []
        return [path for path in asked if path != "/robots.txt"]

    @property
    def network(self) -> ScriptedNetwork:
        return ScriptedNetwork(self._answer)

    async def _answer(self, request: Request) -> RawResponse:
        import asyncio

        path = "/" + request.url.split("/", 3)[3]
        self.asked.append(path)
        match = {name.lower(): value for name, value in request.headers.items()}
        if "if-none-match" in match or "if-modified-since" in match:
            self.conditional.append(path)
        if path == "/robots.txt":
            return RawResponse(200 if self.robots else 404, {}, self.robots.encode())
        page = self._sitemap() if path == "/sitemap.xml" else self.pages.get(path)
        if page is None:
            return RawResponse(404, {}, b"gone")
        if page.takes_s:
            await asyncio.sleep(page.takes_s)
        headers = {"content-type": "text/html", **page.headers}
        if page.location:
            return RawResponse(302, {**headers, "location": page.location}, b"")
        if page.etag:
            headers["etag"] = '"' + hashlib.sha256(page.body).hexdigest() + '"'
            if match.get("if-none-match") == headers["etag"]:
                return RawResponse(304, headers, b"")
        return RawResponse(page.status, headers, page.body)

    def _sitemap(self) -> Page:
        rows = "".join(
            f"<url><loc>{HOST}{path}</loc>"
            + (f"<lastmod>{page.lastmod}</lastmod>" if page.lastmod else "")
            + "</url>"
            for path, page in self.pages.items()
        )
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        body = f'<urlset xmlns="{space}">{rows}</urlset>'.encode()
        return Page(body, etag=self.sitemap_has_etag)


@dataclass
class Shop:
    """A project with one source, and everything a test does with it."""

    folder: Path
    site: Site
    clock: VirtualClock = field(default_factory=VirtualClock)
    seed: int = 0

    def write(self, made: str = "v1", pipelines: str = PIPELINES, **source: Any) -> None:
        """The project's files, as they are from now on."""
        params = {"sitemap": f"{HOST}/sitemap.xml", **source.pop("params", {})}
        config = {"pipeline": f"{MODULE}:shop", "params": params, "retry": "fast", **source}
        self.folder.mkdir(exist_ok=True)
        (self.folder / "penstock.yaml").write_text(
            json.dumps({"project": "visits", "sources": {"shop.example": config}})
        )
        (self.folder / f"{MODULE}.py").write_text(pipelines.format(made=made))

    @contextmanager
    def project(self) -> Iterator[Project]:
        """The project as it is on the disk now: each time anew, as a restart does."""
        sys.modules.pop(MODULE, None)
        sys.path.insert(0, str(self.folder))
        try:
            with Project.load(self.folder) as project:
                project.clock = self.clock
                yield project
        finally:
            sys.path.remove(str(self.folder))
            sys.modules.pop(MODULE, None)

    def run(self, kind: str = "full") -> RunRow:
        """Run the source to its end."""
        with self.project() as project:
            run_id = project.run("shop.example", kind)
            self.work(project)
            return project.require_run(run_id)

    def work(self, project: Project) -> None:
        self.seed += 1
        with Simulation(project, self.site.network, seed=self.seed, clock=self.clock) as simulation:
            simulation.run()

    def records(self) -> dict[str, Any]:
        with self.project() as project:
            rows = project.connection.records.of("page", limit=1000)
        return {row.key.removeprefix(HOST): row.data for row in rows}

    def skips(self, run: RunRow) -> list[str]:
        """Why jobs of a run were skipped."""
        with self.project() as project:
            events = project.connection.journal.events(run_id=run.id, limit=1000)
        return [event.detail for event in events if event.kind == "job.skipped"]

    def later(self, days: float) -> None:
        self.clock.advance(days * 86400.0)
