"""Golden corpora: what was approved is what is right, offline and without anything but the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.app.golden.corpus import folder_name
from penstock.cli import main
from penstock.project import Project
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock

CONFIG = """
project: ${PROJECT_NAME}
store: ${STORE_URL}
sources:
  shop.example:
    pipeline: steps:shop
    fetch: {robots: false, headers: {Authorization: "Bearer ${SHOP_TOKEN}"}}
  diary.example:
    pipeline: steps:shop
    private: true
    fetch: {robots: false}
"""
STEPS = """
import re
from penstock import Pipeline, Reject

shop = Pipeline("shop")


@shop.step(unit="run")
async def discover(ctx):
    for path in ("a/1", "a/2", "a/3", "b/1", "c/1"):
        yield {"url": f"https://{ctx.source.key}/{path}"}


@shop.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    title = re.search("<h1>(.*)</h1>", response.text).group(1)
    yield {"title": title, "at": ctx.now()}


@shop.step(after="extract", unit="candidate")
def persist(item, ctx):
    if item["title"] == "junk":
        raise Reject("junk", code="junk")
    ctx.save("thing", key=item["title"], data=item, score=0.5)
"""
SECRETS = {"PROJECT_NAME": "golden", "STORE_URL": "sqlite:real.db", "SHOP_TOKEN": "s3cr3t-token"}
BODIES = {"a/1": "lamp", "a/2": "chair", "a/3": "s3cr3t-token", "b/1": "junk", "c/1": "vase"}
Command = Callable[..., tuple[int, Any]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose sources were read once."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "penstock.yaml").write_text(CONFIG)
    (tmp_path / "steps.py").write_text(STEPS)
    pages = {
        f"https://{source}/{path}": f"<h1>{title}</h1>"
        for source in ("shop.example", "diary.example")
        for path, title in BODIES.items()
    }
    clock = VirtualClock()
    with Project.load(tmp_path) as project:
        network = ScriptedNetwork.of_pages(dict(pages))
        with Simulation(project, network, seed=1, clock=clock) as simulation:
            project.run("shop.example")
            project.run("diary.example")
            simulation.run()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def golden(folder: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    def command(*words: str) -> tuple[int, Any]:
        sys.modules.pop("steps", None)
        capsys.readouterr()
        code = main(["golden", *words])
        shown = capsys.readouterr()
        if "--json" in words and code in (0, 3, 4):
            return code, json.loads(shown.out)
        return code, shown.out + shown.err

    return command


def corpus(folder: Path) -> Path:
    return folder / "golden" / "shop.example"


def as_in_ci(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout: no database, no snapshots, no variables."""
    (folder / "real.db").unlink()
    shutil.rmtree(folder / "snapshots")
    for name in SECRETS:
        monkeypatch.delenv(name)


def test_checkout_is_held_to_what_was_approved(
    folder: Path, golden: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, recorded = golden("record", "shop.example", "--json")
    assert (code, recorded["cases"], recorded["records"]) == (3, 4, 3)
    [left_out] = recorded["left_out"]
    assert left_out["url"] == "https://shop.example/a/3"
    assert "a secret of this project" in left_out["reason"]
    kept = b"".join(path.read_bytes() for path in corpus(folder).rglob("*") if path.is_file())
    assert b"s3cr3t" not in kept
    as_in_ci(folder, monkeypatch)

    code, [checked] = golden("check", "--json")
    assert (code, checked["same"], checked["details"]) == (0, 4, [])

    # The page that was rejected is saved, a field is renamed, and a record is lost.
    changed = STEPS.replace('"junk":', '"vase":').replace(
        '"title": title,', '"name": title, "title": title,'
    )
    (folder / "steps.py").write_text(changed)
    code, [checked] = golden("check", "--json")
    assert (code, checked["differs"], checked["failed"]) == (4, 4, 0)
    kinds = sorted(change["kind"] for case in checked["details"] for change in case["changes"])
    assert kinds == ["added", "changed", "changed", "removed"]
    shifts = {
        (s["change"], s["what"], s["reason"]) for c in checked["details"] for s in c["shifts"]
    }
    assert shifts == {("removed", "rejected", "junk"), ("added", "rejected", "junk")}
    code, told = golden("check")
    assert code == 4
    assert '+ name: "lamp"' in told
    assert "penstock golden check shop.example --update" in told

    approved = (corpus(folder) / "records.jsonl").read_text()
    code, [checked] = golden("check", "shop.example", "--update", "--json")
    assert (code, checked["updated"]) == (0, True)
    assert (corpus(folder) / "records.jsonl").read_text() != approved
    assert golden("check")[0] == 0
    (folder / "steps.py").write_text(STEPS)
    assert golden("check")[0] == 4
    assert golden("check", "--update")[0] == 0
    assert (corpus(folder) / "records.jsonl").read_text() == approved
    assert not (folder / "real.db").exists()


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (
            '    await ctx.fetch("https://shop.example/elsewhere")\n',
            "it asks for https://shop.example/elsewhere, which is not in the corpus",
        ),
        (
            "    import socket\n    socket.create_connection(('127.0.0.1', 9))\n",
            "a step opened a connection of its own, to 127.0.0.1",
        ),
        ("    raise KeyError('price')\n", "extract failed: KeyError: 'price'"),
    ],
)
def test_request_that_is_not_in_the_corpus_is_an_error_that_names_it(
    folder: Path, golden: Command, more: str, complaint: str
) -> None:
    golden("record", "shop.example", "--url", "https://shop.example/a/1")
    (folder / "steps.py").write_text(STEPS.replace("    title = re", f"{more}    title = re"))
    code, [checked] = golden("check", "--json")
    assert (code, checked["failed"]) == (4, 1)
    [case] = checked["details"]
    assert any(complaint in problem for problem in case["problems"]), case["problems"]
    # What failed can't be approved.
    code, [checked] = golden("check", "--update", "--json")
    assert (code, checked["updated"]) == (4, False)


def test_private_source_is_copied_only_where_that_is_asked_for(
    folder: Path, golden: Command
) -> None:
    code, told = golden("record", "diary.example")
    assert code == 7
    assert "private source" in told
    code, recorded = golden("record", "diary.example", "--include-private", "--json")
    assert (code, recorded["cases"]) == (3, 4)
    (folder / "steps.py").write_text(STEPS.replace("0.5", "0.6"))
    code, told = golden("check", "diary.example")
    assert code == 4
    assert "lamp" not in told
    code, told = golden("check", "diary.example", "--include-private")
    assert "lamp" in told
    assert "+ (score): 0.6" in told


def test_source_that_has_not_run_yet_is_told_to(folder: Path, golden: Command) -> None:
    config = (folder / "penstock.yaml").read_text()
    (folder / "penstock.yaml").write_text(config.replace("shop.example", "new.example"))
    code, told = golden("record", "new.example")
    assert code == 7
    assert "run the source first" in told


def test_corpus_is_not_overwritten_by_mistake_and_grows_when_asked(
    folder: Path, golden: Command
) -> None:
    first, second = (f"https://shop.example/a/{number}" for number in (1, 2))
    assert golden("record", "shop.example", "--url", first)[0] == 0
    code, told = golden("record", "shop.example", "--url", second)
    assert code == 7
    assert "--add" in told
    code, recorded = golden("record", "shop.example", "--url", second, "--add", "--json")
    assert (code, recorded["cases"], recorded["added"]) == (0, 2, 1)
    code, recorded = golden("record", "shop.example", "--url", second, "--replace", "--json")
    assert (code, recorded["cases"]) == (0, 1)
    assert len(list((corpus(folder) / "pages").iterdir())) == 1
    [listed] = golden("list", "--json")[1]
    assert (listed["source"], listed["cases"], listed["records"]) == ("shop.example", 1, 1)
    # The same seed chooses the same pages.
    chosen = []
    for _ in range(2):
        golden("record", "shop.example", "--pages", "3", "--seed", "5", "--replace")
        chosen.append((corpus(folder) / "penstock-golden.json").read_text())
    assert chosen[0] == chosen[1]


def test_damaged_corpus_is_one_line(folder: Path, golden: Command) -> None:
    assert golden("check")[0] == 2
    golden("record", "shop.example", "--url", "https://shop.example/a/1")
    [page] = (corpus(folder) / "pages").iterdir()
    page.write_bytes(page.read_bytes() + b"\n")
    code, told = golden("check")
    assert code == 2
    assert "is not the page that was recorded" in told
    (corpus(folder) / "records.jsonl").write_text('{"case": "nobody"}\n')
    code, told = golden("check")
    assert (code, "records.jsonl:1" in told) == (2, True)
    (corpus(folder) / "penstock-golden.json").write_text("{")
    assert golden("check")[0] == 2


def test_names_of_sources_are_safe_as_folders() -> None:
    assert folder_name("acme.com") == "acme.com"
    names = {folder_name(key) for key in ("../etc", "a/b", "a-b", "A b", "..")}
    assert len(names) == 5
    assert not any("/" in name or name.startswith(".") for name in names)


# The plugin of pytest.

LISTED = """
import sys


def pytest_sessionfinish():
    rooms = sorted(name for name in sys.modules if name.startswith("penstock."))
    print("rooms:", *rooms)
"""


def run_pytest(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in SECRETS}
    environment |= {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": str(Path(penstock.__file__).parents[1]),
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "penstock.pytest_plugin", "-q", "-s", *words],
        cwd=folder, env=environment, capture_output=True, text=True,
    )  # fmt: skip


def test_pytest_collects_corpora_and_shows_the_difference(folder: Path, golden: Command) -> None:
    golden("record", "shop.example")
    done = run_pytest(folder)
    assert (done.returncode, "4 passed" in done.stdout) == (0, True), done.stdout

    (folder / "steps.py").write_text(STEPS.replace("0.5", "0.75"))
    done = run_pytest(folder, "-k", "a/1")
    assert done.returncode == 1
    assert "~ thing lamp: differs" in done.stdout
    assert "- (score): 0.5" in done.stdout
    assert "+ (score): 0.75" in done.stdout
    assert "penstock golden check shop.example --update" in done.stdout
    assert "golden.py" not in done.stdout


def test_pytest_without_a_corpus_imports_none_of_our_rooms(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(LISTED)
    (tmp_path / "test_it.py").write_text("def test_it():\n    pass\n")
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "rooms: penstock.pytest_plugin penstock.version\n" in done.stdout


def test_pytest_finds_the_plugin_by_itself() -> None:
    file = Path(__file__).parents[2] / "pyproject.toml"
    declared = tomllib.loads(file.read_text())["project"]["entry-points"]["pytest11"]
    assert declared == {"penstock": "penstock.pytest_plugin"}
