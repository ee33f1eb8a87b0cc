"""Whatever a site does between two runs: an incremental run leaves the records that a full run would.

A site of a few pages changes at random: pages come, go, change, break and are mended, announce their
changes exactly, by the day, in a wrong form or not at all, know their ETags or don't; code and parameters
change; snapshots are dropped. After every incremental run the records must be what the site says now.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.store.upkeep import Keep
from tests.unit.site import HOST, PIPELINES, Page, Shop, Site

PATHS = [f"/{number}" for number in range(8)]
# Every page is fetched again on its own account: a source that fails is not to be left alone here.
NEVER: dict[str, Any] = {"degrade_after": 0, "breaker": "off"}


def announced(chance: random.Random, now: float) -> str:
    """How a page that changes now says so: never wrongly, but in any form, or not at all."""
    moment = datetime.fromtimestamp(now, UTC)
    return chance.choice(
        [
            moment.strftime("%Y-%m-%d"),
            moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            moment.strftime("%Y-%m-%dT%H:%M+00:00"),
            moment.strftime("%a, %d %b %Y %H:%M:%S GMT"),
            moment.strftime("%Y-%m"),
            moment.strftime("%d.%m.%Y"),
            "2199-01-01",
            "",
        ]
    )


class World:
    """A site, the project that reads it, and what its records must be."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.site = Site()
        self.shop = Shop(folder, self.site, seed=seed * 1000)
        self.made, self.mark = "v0", ""
        self.expected: dict[str, dict[str, str]] = {}
        self.step_count = 0
        self.write()

    def write(self) -> None:
        params = {"mark": self.mark} if self.mark else {}
        self.shop.write(self.made, PIPELINES, params=params, **NEVER)

    def change(self) -> None:
        self.step_count += 1
        path = self.chance.choice(PATHS)
        match self.chance.randrange(10):
            case 0 if len(self.site.pages) > 1:
                self.site.pages.pop(path, None)
            case 1:
                self.made = f"v{self.step_count}"
                self.write()
            case 2:
                self.mark = f"m{self.step_count}"
                self.write()
            case 3:
                self.drop_snapshots()
            case 4:
                self.page(path, f"broken {self.step_count}")
            case 5:
                self.page(path, f"poison {self.step_count}")
            case _:
                self.page(path, f"text {self.step_count}")

    def page(self, path: str, text: str) -> None:
        lastmod = announced(self.chance, self.shop.clock.now())
        self.site.pages[path] = Page(text.encode(), lastmod, etag=self.chance.random() < 0.5)

    def drop_snapshots(self) -> None:
        with self.shop.project() as project:
            while project.connection.upkeep.prune(Keep(None, None, None, snapshots_s=60.0)):
                pass

    def run(self, kind: str) -> list[str]:
        """Run, bring what is expected up to date, and answer what it has asked for."""
        self.site.take()
        run = self.shop.run(kind)
        for path, page in self.site.pages.items():
            text = page.body.decode()
            if not text.startswith(("broken", "poison")):
                self.expected[path] = {
                    "url": HOST + path,
                    "text": text,
                    "made": self.made + self.mark,
                }
        assert self.shop.records() == self.expected, (kind, run)
        bad = sum(p.body.startswith((b"broken", b"poison")) for p in self.site.pages.values())
        assert run.quarantined == bad
        return self.site.take()


@pytest.mark.parametrize("seed", range(12))
def test_incremental_run_leaves_the_records_that_a_full_run_would(
    tmp_path: Path, seed: int
) -> None:
    world = World(tmp_path / "project", seed)
    for path in PATHS[:4]:
        world.page(path, f"text {path}")
    world.run("full")
    for _ in range(8):
        world.shop.clock.advance(world.chance.choice([1.0, 600.0, 43_200.0, 86_400.0, 400_000.0]))
        for _ in range(world.chance.randrange(4)):
            world.change()
            world.shop.clock.advance(world.chance.choice([0.0, 5.0, 7200.0]))
        kind = "full" if world.chance.random() < 0.15 else "incremental"
        world.run(kind)
    # Nothing has changed since, and everything that can vouch for itself does.
    world.shop.clock.advance(3 * 86_400.0)
    world.run("incremental")
    world.shop.clock.advance(86_400.0)
    asked = world.run("incremental")
    for path, page in world.site.pages.items():
        is_good = not page.body.startswith((b"broken", b"poison"))
        is_dated = page.lastmod[:2] == "20" or page.lastmod.endswith("GMT")
        if is_good and is_dated and len(page.lastmod) > 7:
            assert path not in asked
