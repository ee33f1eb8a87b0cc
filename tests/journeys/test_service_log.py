"""What `up` says while it works: a line for what an operator must know, bounded, for people or programs."""

from __future__ import annotations

import json
from pathlib import Path

from tests.journeys.rig import Rig

STEPS = """
from penstock import BadData, Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params["pages"]):
        yield {"number": number}


@pages.step(after="discover", unit="page", key="number")
async def judge(page, ctx):
    if ctx.params["bad"]:
        raise BadData(f"no price on {page['number']}", cause=f"cause {page['number']}")
    ctx.save("page", key=str(page["number"]), data={})
"""


def source(pages: int, *, bad: bool) -> dict[str, object]:
    params = {"pages": pages, "bad": bad}
    return {"pipeline": "steps:pages", "params": params, "breaker": "off"}


def test_up_tells_of_runs_and_quarantines_within_bounds_and_sums_up_at_its_end(
    tmp_path: Path,
) -> None:
    sources = {"good": source(3, bad=False), "bad": source(40, bad=True)}
    with Rig(tmp_path, sources, STEPS) as rig:
        good, bad = rig.enqueue("good", "bad")
        done = rig.penstock("up", "--until-idle")
        assert done.returncode == 0, done.stderr
        said = done.stderr
        assert f"run {good} of good started (full)" in said
        assert f"run {good} of good completed in " in said
        assert ": 3 pages, 3 accepted" in said
        assert f"run {bad} of bad failed in " in said
        assert 1 <= said.count("is quarantined") <= 5
        assert said.splitlines()[-1] == "idle: 2 runs ended (1 completed, 1 failed)" or (
            said.splitlines()[-1] == "idle: 2 runs ended (1 failed, 1 completed)"
        )


def test_json_lines_name_what_they_are_about_and_quiet_says_nothing_of_it(tmp_path: Path) -> None:
    with Rig(tmp_path, {"good": source(3, bad=False)}, STEPS) as rig:
        [run_id] = rig.enqueue("good")
        done = rig.penstock("up", "--until-idle", "--log-format", "json")
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        [ended] = [line for line in lines if line["event"] == "run.completed"]
        assert (ended["run"], ended["source"], ended["pages"]) == (run_id, "good", 3)
        assert ended["level"] == "info"
        assert lines[-1]["event"] == "idle"
        assert lines[-1]["ended"] == {"completed": 1}

        rig.enqueue("good")
        quiet = rig.penstock("up", "--until-idle", "--quiet").stderr
        assert "started" not in quiet
        assert "idle: 1 run ended (1 completed)" in quiet


def test_log_format_of_the_project_makes_every_line_an_object_without_secrets(
    tmp_path: Path,
) -> None:
    says = 'async def discover(ctx):\n    print("say hunter2hunter2hunter2")'
    steps = STEPS.replace("async def discover(ctx):", says)
    with Rig(tmp_path, {"good": source(2, bad=False)}, steps) as rig:
        file = tmp_path / "penstock.yaml"
        more = {"log": {"format": "json"}, "trigger": {"token": "${TOKEN}"}}
        file.write_text(json.dumps(json.loads(file.read_text()) | more))
        (tmp_path / ".env").write_text("TOKEN=hunter2hunter2hunter2\n")
        (tmp_path / ".env").chmod(0o600)
        for command in (("run", "good"), ("up", "--until-idle")):
            done = rig.penstock(*command)
            lines = [json.loads(line) for line in done.stderr.splitlines()]
            assert all({"at", "level", "event", "message"} <= line.keys() for line in lines)
            assert "hunter2" not in done.stderr
            if command[0] == "run":
                [ended] = [line for line in lines if line["event"] == "run.completed"]
                assert (ended["source"], ended["pages_done"]) == ("good", 2)
        text = rig.penstock("run", "good", "--log-format", "text").stderr
        assert "completed" in text
        assert not text.startswith("{")
