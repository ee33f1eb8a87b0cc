"""What is counted is never less than what went over the wire, whatever ends in the middle."""

from __future__ import annotations

import json
from pathlib import Path

from tests.journeys.rig import CountingSite, Rig, counting_site, kill, until

PAGES, RATE = 160, 40
PIPELINE = """
from penstock import Pipeline

pages = Pipeline("pages")
WAYS = ("page", "moved", "dropped", "reset", "flaky")


@pages.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params["pages"]):
        yield {"url": f"{ctx.params['site']}/{WAYS[number % len(WAYS)]}/{number}"}


@pages.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    await ctx.fetch(page["url"])
"""


def source(site: CountingSite) -> dict[str, object]:
    return {
        "pipeline": "steps:pages",
        "params": {"site": site.url, "pages": PAGES},
        "limits": {"rate": f"{RATE}/s", "concurrency": 8},
        "budget": {"requests": "100000/d"},
        "breaker": "off",
        "fetch": {"allow_private": True, "robots": False},
    }


def test_drops_resets_redirects_kills_and_restarts_are_all_counted(tmp_path: Path) -> None:
    with counting_site() as site, Rig(tmp_path, {"shop": source(site)}, PIPELINE) as rig:
        [run_id] = rig.enqueue("shop")
        process = rig.start("up", "--until-idle")
        for sent in (20, 60, 100):
            until(lambda sent=sent: len(site.times()) >= sent, f"{sent} requests", process=process)  # type: ignore[misc]
            worker = rig.worker_pid(process)
            if worker is not None:
                kill(worker)
            if sent == 60:
                process.kill()
                process.wait()
                process = rig.start("up", "--until-idle")
        process.wait(timeout=300)
        times, counts = sorted(site.times()), site.counts()
        rows = json.loads(rig.penstock("budget", "--json").stdout)
        [used] = [row["used"] for row in rows if row["measure"] == "requests"]
        run = rig.run(run_id)
        print(f"{len(times)} requests at the site, {used} counted, {run.requests} of the run")
        # Each page that drops, resets, redirects or fails was met at least twice.
        assert all(counts[f"/{way}/{n}"] >= 1 for n, way in enumerate(ways(PAGES)))
        assert sum(counts[f"/dropped/{n}"] for n in range(PAGES)) >= 2 * PAGES // 5
        assert used >= len(times)
        # What died with a worker is put down when it is buried; of what was put down just before, once more.
        assert len(times) <= run.requests <= len(times) + 3 * RATE
        # Over the whole, however late single requests are looked at.
        assert len(times) <= 1 + RATE * 1.25 * (times[-1] - times[0] + 1.0)
        assert run.state == "completed"


def ways(pages: int) -> list[str]:
    known = ("page", "moved", "dropped", "reset", "flaky")
    return [known[number % len(known)] for number in range(pages)]
