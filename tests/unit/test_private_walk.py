"""Nothing shows the content of a private source: every list, view and page, asked for once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.routing import Route

from penstock import Project
from penstock.app.verbs.reads import READS, Read
from penstock.app.views.quarantine import EntryFilter
from penstock.app.views.rejects import RejectFilter
from penstock.cli import main
from penstock.mcp.tools import tools
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock
from penstock.web.dashboard.routes import ROUTES
from tests.journeys.rig import counting_site
from tests.otlp_receiver import collecting
from tests.unit.mcp_clients import called, connected_to, said_of
from tests.unit.test_web import Site, visit

# Stands in every key, address, text, error, log line, cursor, note and record of the private source.
CONTENT = "Zeppelinpost"
PAGE = f"https://post.example/{CONTENT}"
PIPELINE = """
import logging

from penstock import BadData, Pipeline, Reject

notes = Pipeline("notes")


@notes.step(unit="run")
def discover(ctx):
    word = ctx.params["word"]
    print(f"{word} is printed")
    ctx.note(f"{word} is noted")
    ctx.checkpoint({"at": word}, f"{word} box")
    ctx.signal("mail.came", subject=word)
    for name in ("good", "bad", "unwanted"):
        yield {"url": f"https://post.example/{word}/{name}", "name": f"{word} {name}"}


@notes.step(after="discover", unit="page", key="name")
async def read(item, ctx):
    word = ctx.params["word"]
    logging.getLogger("notes").warning("%s is logged", word)
    if "unwanted" in item["name"]:
        raise Reject(f"{word} is not wanted", code="dull")
    if "bad" in item["name"]:
        raise BadData(f"{word} can't be parsed")
    if "url" in ctx.params:
        await ctx.fetch(ctx.params["url"])
    ctx.save("note", key=item["name"], data={"text": word})
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    name = f"walk_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(PIPELINE)
    usual = {"pipeline": f"{name}:notes", "fetch": {"robots": False}}
    sources = {
        "a": {**usual, "private": True, "params": {"word": CONTENT, "url": PAGE}},
        "b": {**usual, "private": True, "params": {"word": CONTENT}},
        "open": {**usual, "params": {"word": "Postcard"}},
    }
    (tmp_path / "penstock.yaml").write_text(json.dumps({"sources": sources}))
    network = ScriptedNetwork.of_pages({PAGE: f"<p>{CONTENT}"})
    with Project.load(tmp_path) as made:
        # By a real worker, for what steps print and log.
        made.runs.perform("open")
        made.runs.perform("b")
        with Simulation(made, network, seed=1, clock=VirtualClock()) as simulation:
            for _ in range(2):
                made.run("a")
                simulation.run()
            made.replays.start(run=3)
            simulation.run()
        yield made


def shows(text: str) -> bool:
    return CONTENT.lower() in text.lower()


def around(text: str) -> str:
    at = text.lower().index(CONTENT.lower())
    return text[max(0, at - 150) : at + 50]


def arguments(project: Project) -> dict[str, list[str]]:
    """For each name in a path: everything that there is of the private source."""
    store = project.connection
    jobs = [str(job.id) for job in project.jobs.list(limit=100).items]
    return {
        "source": ["a"],
        "run": [str(run.id) for run in project.runs.list().items],
        "job": jobs,
        "snapshot": [str(page.id) for job in jobs for page in store.snapshots.of_job(int(job), 9)],
        "reject": [str(each.id) for each in project.rejects.list().items],
        "collection": ["note"],
        "measure": ["pages"],
        "alert": ["1"],
        "runbook": ["source-broke"],
    }


def paths(read: Read, known: dict[str, list[str]]) -> list[str]:
    found = [f"/api/v1{read.path}"]
    for name in read.path_names:
        found = [
            path.replace(f"{{{name}}}", value) for path in found for value in known.get(name, ["7"])
        ]
    if {"run", "job"} <= set(read.takes):
        return [*found, *(f"{path}?run={run}" for path in found for run in known["run"])]
    if read.name == "pages.list":
        return [f"{path}?target={job}" for path in found for job in known["job"]]
    if read.name == "quarantine.list":
        return [f"{path}{query}" for path in found for query in ("", "?is_whole=true")]
    return found


def test_no_view_of_the_api_and_no_page_of_the_dashboard_shows_a_private_source(
    project: Project,
) -> None:
    known, leaks, seen = arguments(project), list[str](), set[str]()
    token = project.tokens.create("walker", "admin").text

    async def steps(at: Site) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        # The sealed journal is exported to administrators as it was written, with hashes for paths and keys.
        for read in (each for name, each in READS.items() if name != "audit.export"):
            for path in paths(read, known):
                answer = await at.ask("GET", path, headers=headers)
                if answer.status == 200:
                    seen.add(read.name)
                if shows(answer.text):
                    leaks.append(f"{path}: {around(answer.text)}")
        await at.log_in()
        found = [route.path for route in ROUTES if isinstance(route, Route)]
        pages = [path.replace("{source:path}", "a") for path in found]
        pages = [page.replace("{collection:path}", "note") for page in pages]
        for kind in ("run", "job", "snapshot"):
            pages = [
                page.replace(f"{{{kind}:int}}", value)
                for page in pages
                for value in (known[kind] if f"{{{kind}:int}}" in page else [""])
            ]
        for page in pages:
            answer = await at.ask("GET", page, headers={"Accept": "text/html"})
            if answer.status == 200:
                seen.add(page)
            if shows(answer.text):
                leaks.append(f"{page}: {around(answer.text)}")

    visit(project, steps)
    assert "\n".join(leaks) == ""
    # Else it has looked at nothing.
    assert seen >= {
        "jobs.detail",
        "quarantine.get",
        "rejects.get",
        "logs.list",
        "replays.diff",
        "pages.get",
    }
    assert seen >= {
        "/jobs/1",
        "/quarantine",
        "/quarantine/jobs",
        "/runs/1",
        "/events",
        "/sources/a",
    }


def test_no_tool_and_no_resource_of_mcp_shows_a_private_source(project: Project) -> None:
    known, leaks, seen = arguments(project), list[str](), set[str]()
    known |= {"job_id": known["job"], "run_id": known["run"], "target": known["job"]}
    token = project.tokens.create("walker", "admin").text

    def look(name: str, text: str) -> None:
        seen.add(name)
        if shows(text):
            leaks.append(f"{name}: {around(text)}")

    async def steps(at: Site) -> None:
        async with connected_to(at, token) as client:
            for tool in (each for each in tools().values() if not each.is_act):
                schema = tool.input_schema
                names = [*schema["required"], *set(schema["properties"]) & {"run", "job", "target"}]
                for name in names or [""]:
                    for value in known.get(name, ["7"]) if name else ["7"]:
                        given = {each: known.get(each, ["7"])[0] for each in schema["required"]}
                        found = await called(
                            client, tool.name, {**given, **({name: value} if name else {})}
                        )
                        look(tool.name if not found.is_error else "refused", said_of(found))
            for page in (await client.list_resources()).resources:
                look(page.uri, (await client.read_resource(page.uri)).model_dump_json())
            for act, given in (
                ("jobs_retry", {"job": known["job"][0]}),
                ("runs_retry", {"run": "3"}),
            ):
                look(act, said_of(await called(client, act, {**given, "reason": "why"})))

    visit(project, steps)
    assert "\n".join(leaks) == ""
    assert seen >= {"jobs_detail", "quarantine_get", "rejects_get", "logs_list", "replays_diff"}
    assert seen >= {"pages_get", "records_list", "penstock://journal", "penstock://sources/a"}


COMMANDS = """
jobs --run 3
jobs {bad}
quarantine list
quarantine list --json --source a
quarantine show {bad}
rejects list --source a
rejects list --source a --json
rejects show {reject}
logs 2
logs 2 --json
runs
runs show 3
events --run 3
events --run 3 --json
checkpoints a
signals
replay 5
replay 5 --json
undo 3 --dry-run
undo 3 --dry-run --json
try a {bad}
status
explain a
explain --job {bad}
sources
records
records note
schema infer note
page {good}
alerts
"""


def test_no_command_shows_a_private_source_without_being_told_to(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [reject] = project.rejects.list(RejectFilter(run_id=3)).items
    [bad] = project.quarantine.list(EntryFilter(run_id=4)).items
    known = {"bad": bad.id, "good": bad.id - 1, "reject": reject.id}

    def said(line: str) -> str:
        assert main([*line.format(**known).split(), "--project", str(tmp_path)]) != 2, line
        return "".join(capsys.readouterr())

    lines = COMMANDS.split("\n")[1:-1]
    leaks = [f"{line}: {around(out)}" for line in lines if shows(out := said(line))]
    assert "\n".join(leaks) == ""
    # And each of these has something to hide.
    for line in (
        "jobs --run 3",
        "quarantine show {bad}",
        "rejects list --source a",
        "logs 2",
        "checkpoints a",
    ):
        assert shows(said(f"{line} --include-private")), line


def test_open_sources_are_shown_beside_a_private_one(project: Project) -> None:
    run = 1
    [job] = [each for each in project.jobs.each(run=run) if "bad" in each.key]
    views = (
        job,
        next(project.logs.each(run=run)),
        next(project.journal.each(run=run, kind="job.quarantined")),
        project.checkpoints.list("open").items[0],
        project.jobs.timeline(job.id),
        project.quarantine.list(EntryFilter(source="open")).items[0],
    )
    assert [type(each).__name__ for each in views if "Postcard" not in repr(each)] == []


def test_traces_have_hashes_and_no_texts_of_a_private_source(tmp_path: Path) -> None:
    name = f"traced_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(PIPELINE)
    usual = {"pipeline": f"{name}:notes", "fetch": {"robots": False, "allow_private": True}}
    with counting_site() as site, collecting() as collector:
        params = {"word": CONTENT, "url": f"{site.url}/{CONTENT}"}
        sources = {
            "diary": {**usual, "private": True, "params": params},
            "open": {**usual, "params": params},
        }
        written = {"tracing": {"endpoint": collector.url}, "sources": sources}
        (tmp_path / "penstock.yaml").write_text(json.dumps(written))
        with Project.load(tmp_path) as made:
            made.runs.perform("diary")
            made.runs.perform("open")
        traced = {
            source: [
                span for span in collector.spans if span.attributes.get("penstock.source") == source
            ]
            for source in sources
        }
        fetches = collector.named("fetch ")
    assert {span.name.partition(" ")[0] for span in traced["diary"]} == {"run", "job", "attempt"}
    assert [span for span in traced["diary"] if shows(repr(span))] == []
    assert [span for span in traced["open"] if shows(repr(span))] != []
    assert sorted(shows(repr(span)) for span in fetches) == [False, True]
