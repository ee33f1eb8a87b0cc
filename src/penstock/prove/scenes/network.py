"""A site that drops, resets, hangs, stops half-way and fails."""

from __future__ import annotations

from penstock.prove.pipelines import BROKEN_WAYS, FAILING, WAYS, source_at
from penstock.prove.scenes.stage import Scene, Stage, look_at
from penstock.prove.verdict import Verdict

NAME, TITLE = "network", "a site that drops, resets, hangs, stops half-way or fails"
PAGES = 84
WITHIN_S = 180.0


def play(stage: Stage) -> Verdict:
    verdict = Verdict(NAME, TITLE)
    stage.site.forget()
    source = source_at(
        stage.site.url,
        params={"site": stage.site.url, "pages": PAGES, "ways": [*WAYS]},
        limits={"concurrency": stage.scratch.terms().concurrency, "adaptive": False},
        fetch={"allow_private": True, "robots": False, "timeout": "1s"},
    )
    with stage.scratch.place({"shop": source}, FAILING) as place:
        run_id = place.begin("shop")
        process = place.start("up", "--until-idle")
        if place.wait(process, WITHIN_S) != 0:
            verdict.wrong(f"`penstock up` failed: {place.output(process)[-500:]}")
        counts = stage.site.counts()
        expected = {f"/{WAYS[n % len(WAYS)]}/{n}" for n in range(PAGES)}
        look_at(place, run_id, expected, verdict, requests=counts.total())
        # A fault that was not met again was taken for an answer.
        once = [path for path in expected if path.split("/")[1] in BROKEN_WAYS and counts[path] < 2]
        verdict.wanted = sum(path.split("/")[1] in BROKEN_WAYS for path in expected)
        verdict.faults = verdict.wanted - len(once)
        if once:
            verdict.wrong(f"{len(once)} failed pages were not asked for again, such as {once[0]}")
        verdict.text = "each failed once: " + ", ".join(BROKEN_WAYS)
    return verdict


SCENE = Scene(NAME, TITLE, play, least_s=20.0)
