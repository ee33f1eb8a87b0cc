"""A project that somebody operates by runbooks: faults are caused for real, and each step is really taken."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, Self

from penstock import Project
from penstock.app.views.runbooks import RunbookState, StepResult
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock

# Modules stay imported: each deployed pipeline has a name of its own.
NUMBERS = count(1)
SHOP = "shop"
STEPS = """
import re

from penstock import BadData, Pipeline

shop = Pipeline("shop")


@shop.step(unit="run")
async def discover(ctx):
    async for url in ctx.sitemap(ctx.params["sitemap"]):
        yield {"url": url}


@shop.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    text = (await ctx.fetch(page["url"])).text
    found = re.search(r'PATTERN', text)
    if found is None:
        raise BadData("no price")
    yield {"url": page["url"], "price": float(found[1])}


@shop.step(after="extract", unit="candidate")
def persist(product, ctx):
    ctx.save("product", key=KEY, data=product, score=SCORE)
"""


def steps(
    pattern: str = 'class="price">([0-9.]+)', key: str = 'product["url"]', score: str = "1.0"
) -> str:
    return STEPS.replace("PATTERN", pattern).replace("KEY", key).replace("SCORE", score)


class Operated:
    """The project, and whoever follows its runbooks. Its runs are performed by real workers."""

    def __init__(self, folder: Path, text: str, params: dict[str, Any], **settings: Any) -> None:
        self.folder = folder
        self._params = params
        self._settings = settings
        self._opened: list[Project] = []
        self.deploy(text)

    @property
    def project(self) -> Project:
        return self._opened[-1]

    def deploy(self, text: str, **source: Any) -> None:
        """Put this pipeline into service, with these settings of the source."""
        module = f"steps_{next(NUMBERS)}"
        (self.folder / f"{module}.py").write_text(text)
        sources = {
            SHOP: {
                "pipeline": f"{module}:shop",
                "params": self._params,
                "fetch": {"allow_private": True, "robots": False},
                **self._settings.get("source", {}),
                **source,
            }
        }
        known = {key: value for key, value in self._settings.items() if key != "source"}
        (self.folder / "penstock.yaml").write_text(
            json.dumps({"project": "operated", **known, "sources": sources})
        )
        self._opened.append(self._open())

    def _open(self) -> Project:
        return Project.open(self.folder)

    def close(self) -> None:
        for project in self._opened:
            project.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, times: int = 1) -> None:
        for _ in range(times):
            self.project.runs.start(SHOP)
            self.work()

    def work(self) -> None:
        """Do what there is to do."""
        active = [run.id for run in self.project.runs.each(active=True)]
        self.project.runs.finish(active)

    def state(self, runbook: str, source: str | None = SHOP) -> RunbookState:
        return self.project.runbooks.state(runbook, source)

    def take(self, runbook: str, step: str, source: str | None = SHOP) -> StepResult:
        """Look at the dry run, take the step, and work on what it starts."""
        seen = self.project.runbooks.do(runbook, step, source, dry_run=True)
        assert not seen.is_done
        done = self.project.runbooks.do(
            runbook, step, source, actor="ann", reason=f"because of {runbook}"
        )
        if done.run_id is not None:
            self.work()
        return done

    def follow(
        self,
        runbook: str,
        source: str | None = SHOP,
        *,
        skipped: Sequence[str] = (),
        before: str | None = None,
    ) -> list[str]:
        """Take the step that applies until there is none, or it is `before`; answers with what was taken."""
        taken: list[str] = []
        while (step := self.state(runbook, source).next) not in (None, before):
            assert step is not None
            assert step not in taken, f"{step} applies again after {taken}"
            if step in skipped:
                self.project.runbooks.skip(runbook, step, source, actor="ann", reason="not now")
            else:
                self.take(runbook, step, source)
                taken.append(step)
        return taken

    def journal(self) -> list[str]:
        """The steps of runbooks in the journal, oldest first, with who took them and why."""
        rows = list(self.project.journal.each(kind="runbook"))[::-1]
        return [f"{row.actor}: {row.kind} {row.detail}" for row in rows]


class Simulated(Operated):
    """The same on virtual time: the engine is the real one, the site is this mapping of pages."""

    def __init__(self, folder: Path, text: str, **settings: Any) -> None:
        self.clock = VirtualClock()
        self.pages: dict[str, str] = {}
        self._network = ScriptedNetwork.of_pages(self.pages)
        super().__init__(folder, text, {"sitemap": "https://shop.test/sitemap.xml"}, **settings)

    def _open(self) -> Project:
        project = super()._open()
        project.clock = self.clock
        return project

    def work(self, for_s: float | None = None) -> None:
        with Simulation(self.project, self._network, seed=1, clock=self.clock) as simulation:
            simulation.run(for_s)
        while self.project.connection.rollups.fold():
            pass

    def serve(self, layout: str, pages: int, query: str = "") -> None:
        """A site of so many pages; the price of the first is 1."""
        self.pages.clear()
        urls = [f"https://shop.test/p/{number}{query}" for number in range(pages)]
        self.pages.update({url: layout.format(at) for at, url in enumerate(urls, 1)})
        rows = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        self.pages["https://shop.test/sitemap.xml"] = f'<urlset xmlns="{space}">{rows}</urlset>'
