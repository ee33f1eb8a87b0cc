"""Connectors as users meet them: in penstock.yaml, on the command line, in the docs, and as a package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from penstock.app import Project, config, connectors
from penstock.cli.entry import main
from penstock.engine.worker.page_lookups import PageLookups
from penstock.errors import ConfigError
from penstock.http.browser.browsers import Browsers
from penstock.settings import load_settings
from penstock.settings.connector import BUILT_IN, find_connector
from penstock.store.pages import PageRow
from penstock.testing import RawResponse, ScriptedNetwork, Simulation, VirtualClock
from tests.docs.pages import DOCS, blocks
from tests.programs import needed

SITE = "https://example.com/"
Written = Callable[[str], Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def write(text: str) -> Path:
        (tmp_path / "penstock.yaml").write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("connector: fils", "penstock.yaml:3: sources.a.connector: there is no connector 'fils'"),
        (
            "connector: files\n    foldr: x",
            "penstock.yaml:4: sources.a.foldr: unknown key of the connector files, did you mean 'folder'?",
        ),
        ("connector: files", "penstock.yaml:3: sources.a.folder: is missing"),
        (
            "connector: files\n    folder: x\n    symlinks: yes",
            "penstock.yaml:5: sources.a.symlinks: must not be 'yes'",
        ),
        ("folder: x\n    pipeline: a:b", "penstock.yaml:3: sources.a.folder: unknown key"),
        (
            "params: {}",
            "sources.a.pipeline: is missing; write it as module:name, or name a connector",
        ),
    ],
)
def test_a_mistake_in_the_keys_of_a_connector_has_its_file_line_and_key(
    written: Written, keys: str, problem: str
) -> None:
    folder = written(f"sources:\n  a:\n    {keys}\n")
    with pytest.raises(ConfigError, match=re.escape(problem)):
        load_settings(folder)


def test_the_schema_and_config_show_know_the_keys_of_connectors(written: Written) -> None:
    source = config.schema()["definitions"]["Source"]
    for name in BUILT_IN:
        keys = set(find_connector(name).Settings.__struct_encode_fields__)
        assert keys <= set(source["properties"])
    folder = written("sources:\n  a: {connector: files, folder: ./x, hidden: true}\n")
    shown = {each.key: each.value for each in config.show(folder).values}
    assert (shown["sources.a.folder"], shown["sources.a.hidden"]) == ("./x", True)
    assert shown["sources.a.symlinks"] == "skip"


def test_runs_and_schedules_of_a_connector_are_incremental_unless_somebody_says_otherwise(
    written: Written,
) -> None:
    folder = written(
        "sources:\n  a: {connector: files, folder: ., schedule: [{every: 1h}, "
        "{every: 1d, kind: full, name: all}]}\n  b: {pipeline: 'a:b', schedule: {every: 1h}}\n"
    )
    sources = load_settings(folder).sources
    assert [each.run_kind for each in sources["a"].schedules] == ["incremental", "full"]
    assert [each.run_kind for each in sources["b"].schedules] == ["full"]
    assert (sources["a"].usual_kind, sources["b"].usual_kind) == ("incremental", "full")


def test_only_a_connector_that_says_so_bounds_how_much_is_read(written: Written) -> None:
    folder = written(
        "sources:\n  a: {connector: files, folder: .}\n"
        "  b: {connector: web, url: 'https://b.example/', depth: 7, max_pages: 12}\n"
    )
    with Project.open(folder) as project:
        bounds = {
            key: stage.follow and (stage.follow.depth, stage.follow.pages)
            for key in ("a", "b")
            if (stage := project.graph(project.source(key)).stage("read")) is not None
        }
    assert bounds == {"a": (10, 1_000_000_000), "b": (8, 12)}


def test_the_command_lists_and_shows_every_connector(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["connectors", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert main(["connectors", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == listed
    assert [each["name"] for each in listed] == list(BUILT_IN)
    assert all(set(each) == {"name", "summary", "extra", "installed"} for each in listed)
    for name in BUILT_IN:
        assert main(["connectors", "show", name]) == 0
        shown = capsys.readouterr().out
        for key in connectors.get(name).keys:
            assert key.key in shown
    assert main(["connectors", "show", "fils"]) == 2
    assert "did you mean 'files'?" in capsys.readouterr().err


@pytest.mark.parametrize("name", [*BUILT_IN, "index"])
def test_the_examples_of_the_docs_run_on_the_demo_data(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"])
    page = blocks(DOCS / "connectors" / f"{name}.md")
    files = [block for block in page if block.title]
    assert files[0].title == "penstock.yaml"
    folder = tmp_path
    for number, block in enumerate(files):
        if block.title == "penstock.yaml":
            folder = tmp_path / str(number)
            folder.mkdir()
        (folder / block.title).write_text(block.text)
    for folder in sorted(tmp_path.iterdir()):
        read_demo_data(folder)


def read_demo_data(folder: Path) -> None:
    """Every source of a project finds the demo data of its connector at the place that it names."""
    settings = load_settings(folder)
    pages: dict[str, str | bytes | RawResponse] = {}
    for source in settings.sources.values():
        places = [source.options.get(key) for key in ("folder", "mailbox")]
        target = folder / next(filter(None, places), "demo")
        find_connector(source.connector).sample(target)
        if source.connector == "feed":
            pages[source.options["url"]] = (target / "feed.xml").read_text()
        if source.connector == "api":
            url = source.options["url"]
            pages[url] = (target / "items.json").read_text()
            pages[url.replace("items", "items-2.json")] = (target / "items-2.json").read_text()
        if source.connector == "web":
            pages[SITE + "sitemap.xml"] = f"<urlset><url><loc>{SITE}a</loc></url></urlset>"
            pages |= {SITE: "<a href='/a'>a</a>", f"{SITE}a": "a", f"{SITE}docs/": "b"}
        for name in source.options.get("repositories", ()):
            pages |= empty_repository(name)
        if source.connector == "headless":
            os.environ["PATH"] += f":{needed('chromium').parent}"
            pages[SITE] = (
                "<body><script>document.body.append(document.createElement('main'))</script>"
            )
    clock = VirtualClock()
    with Project(settings) as project, closing(Browsers(clock.held)) as browsers:
        network = ScriptedNetwork.of_pages(pages)
        with Simulation(project, network, seed=1, clock=clock, browsers=browsers) as simulation:
            runs = [project.run(key) for key in settings.sources]
            simulation.run()
        assert {project.require_run(run).state for run in runs} == {"completed"}
        assert project.records.collections()


def test_a_document_is_saved_as_the_users_own_step_would_save_it(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "plain.txt").write_text("no data")
    (notes / "rows.csv").write_text("name,price\ntea,\nécru,2.5\n")
    (tmp_path / "own.py").write_text(
        "from penstock import Pipeline\npipeline = Pipeline('own')\n"
        "@pipeline.step(after='read', unit='page')\n"
        "async def keep(document, ctx):\n    ctx.save('own', key=document['key'], data=document)\n"
    )
    (tmp_path / "penstock.yaml").write_text(
        "sources:\n  usual: {connector: files, folder: notes}\n"
        "  own: {connector: files, folder: notes, pipeline: 'own:pipeline'}\n"
    )
    with Project(load_settings(tmp_path)) as project:
        network = ScriptedNetwork.of_pages({})
        with Simulation(project, network, seed=1, clock=VirtualClock()) as simulation:
            for key in ("usual", "own"):
                project.run(key)
            simulation.run()
        usual, own = (
            {row.key: json.dumps(row.data) for row in project.connection.records.of(name, "")}
            for name in ("usual", "own")
        )
    assert usual == own
    assert [key for key in sorted(usual) if '"data"' in usual[key]] == ["rows.csv"]


def test_only_an_item_that_was_read_before_is_looked_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[str] = []
    look_up = PageLookups.get

    async def noted(self: PageLookups, source_id: int, url: str) -> PageRow | None:
        looked_up.append(url)
        return await look_up(self, source_id, url)

    monkeypatch.setattr(PageLookups, "get", noted)
    (tmp_path / "notes").mkdir()
    known = tmp_path / "notes" / "known.txt"
    known.write_text("the same text")
    (tmp_path / "penstock.yaml").write_text("sources: {a: {connector: files, folder: notes}}")
    with Project(load_settings(tmp_path)) as project:
        network = ScriptedNetwork.of_pages({})
        with Simulation(project, network, seed=1, clock=VirtualClock()) as simulation:
            project.run("a")
            simulation.run()
            assert looked_up == []
            os.utime(known, (1, 1))
            (known.parent / "new.txt").write_text("another text")
            run = project.run("a")
            simulation.run()
        assert looked_up == ["files://a/known.txt"]
        assert project.require_run(run).pages_unchanged == 1


def empty_repository(name: str) -> dict[str, str | bytes | RawResponse]:
    """What GitHub's API answers about it."""
    base = f"https://api.github.com/repos/{name}"
    updated = "sort=updated&direction=asc&per_page=100"
    listings = (
        f"issues?state=all&{updated}",
        f"issues/comments?{updated}",
        f"pulls/comments?{updated}",
        "releases?per_page=100",
        "commits?per_page=100",
    )
    return {base: json.dumps({"full_name": name}), **{f"{base}/{each}": "[]" for each in listings}}


def test_a_package_adds_a_connector_that_passes_the_suite(tmp_path: Path) -> None:
    assert main(["connectors", "new", "wiki", "--dir", str(tmp_path)]) == 0
    package = tmp_path / "penstock-wiki"
    # What `pip install` writes beside a package, by which its entry point is found.
    about = package / "penstock_wiki-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: penstock-wiki\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text("[penstock.connectors]\nwiki = penstock_wiki:Wiki\n")
    environ = {**os.environ, "PYTHONPATH": str(package)}
    tested = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:schemathesis",
            "tests",
        ],
        cwd=package,
        env=environ,
        capture_output=True,
        text=True,
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "16 passed" in tested.stdout
    listed = subprocess.run(
        [sys.executable, "-m", "penstock", "connectors", "list", "--json"],
        env=environ,
        capture_output=True,
        text=True,
    )
    assert "wiki" in {each["name"] for each in json.loads(listed.stdout)}
