"""`kill -9` of the worker, the supervisor or both, at random moments."""

from __future__ import annotations

from penstock.prove.killer import Killer, recovery_times, survive
from penstock.prove.pipelines import PAGES, sitemap_source
from penstock.prove.scenes.stage import Scene, Stage, asked_in_vain, look_at
from penstock.prove.verdict import Verdict

NAME, TITLE = "kills", "kill -9 of worker, supervisor or both"
PAGE_MS = 40
# So many pages for each kill that work remains until the last one, whatever the concurrency.
PAGES_FOR_A_KILL = 10
LEAST_PAGES = 100
# A run that has no time left is worked off without more kills, in about this time.
ENDING_S = 10.0


def play(stage: Stage) -> Verdict:
    verdict = Verdict(NAME, TITLE)
    concurrency = stage.scratch.terms().concurrency
    pages = max(LEAST_PAGES, stage.kills * PAGES_FOR_A_KILL * concurrency // 2)
    stage.site.forget()
    source = sitemap_source(stage.site.url, pages, PAGE_MS, limits={"concurrency": concurrency})
    with stage.scratch.place({"shop": source}, PAGES) as place:
        run_id = place.begin("shop")
        killer = Killer(place, stage.rng, run_id, pages, stage.kills)
        survive(
            place,
            killer,
            stage.kills,
            lambda done: stage.tell(f"{done} of {stage.kills} kills"),
            lambda: stage.left_s > ENDING_S,
        )
        counts = stage.site.counts()
        look_at(
            place, run_id, {f"/page/{n}" for n in range(pages)}, verdict, requests=counts.total()
        )
        asked = sum(times for path, times in counts.items() if path.startswith("/page/"))
        verdict.wrong(*asked_in_vain(place, asked, pages))
        verdict.faults = len(killer.strikes)
        verdict.recoveries_s = recovery_times(place, killer.strikes)
        whom = ", ".join(f"{name} {times}" for name, times in killer.deaths.items())
        verdict.text = f"killed: {whom}"
        verdict.wanted = stage.kills
    return verdict


SCENE = Scene(NAME, TITLE, play)
