"""Every recipe of the cookbook runs from its first block to its last, against a server on loopback."""

from __future__ import annotations

import ast
import json
import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.docs.pages import DOCS, Block, blocks
from tests.docs.site import PAGES, Web, web
from tests.journeys.commands import run_command
from tests.journeys.rig import ENVIRONMENT

OVERLAY = "defaults: {fetch: {allow_private: true, robots: false}}\n"
EXIT = re.compile(r"# exit code (\d+)")
FOREIGN = ("pip", "createuser", "createdb")


@pytest.fixture
def kitchen(tmp_path: Path) -> Iterator[Kitchen]:
    with web() as server:
        yield Kitchen(tmp_path, server)


class Kitchen:
    """A project's folder, and the commands that were run in it."""

    def __init__(self, folder: Path, server: Web) -> None:
        self.folder = folder
        self.server = server
        self.environment = {**ENVIRONMENT, "PENSTOCK_ENV": "test", "NO_COLOR": "1"}
        self.outputs: dict[str, str] = {}
        self.replaced: dict[str, str] = {}
        (folder / "penstock.test.yaml").write_text(OVERLAY)

    def cook(self, recipe: str) -> None:
        for block in blocks(DOCS / "cookbook" / f"{recipe}.md"):
            if block.title:
                self.write(block)
            elif not block.language:
                for line in block.text.splitlines():
                    self.type(line)

    def write(self, block: Block) -> None:
        name, _, function = block.title.partition(": ")
        file, text = self.folder / name, self.here(block.text)
        file.write_text(with_function(file.read_text(), function, text) if function else text)

    def here(self, text: str) -> str:
        for what, instead in self.replaced.items():
            text = text.replace(what, instead)
        text = text.replace(
            'url: "https://hooks.example', f'allow_private: true, url: "{self.server.origin}'
        )
        text = re.sub(r"\brate: \d+/m", "rate: 1000/s", text)  # how fast is no part of the recipe
        return re.sub(r"https://\w+\.example\b", self.server.origin, text)

    def type(self, line: str) -> None:
        program, *words = shlex.split(self.here(line), comments=True)
        if program == "export":
            self.environment |= dict(word.split("=", 1) for word in words)
        elif program not in FOREIGN:
            assert program == "penstock"
            expected = EXIT.search(line)
            done = run_command(words, self.folder, self.environment, 60)
            assert done.returncode == int(expected[1] if expected else 0), done.stderr
            self.outputs[line.partition(" #")[0].strip()] = done.stdout + done.stderr

    def records(self, collection: str) -> dict[str, dict[str, object]]:
        words = ["records", collection, "--format", "jsonl"]
        done = run_command(words, self.folder, self.environment, 60)
        return {row["key"]: row["data"] for row in map(json.loads, done.stdout.splitlines())}


def with_function(module: str, name: str, text: str) -> str:
    """The module with another version of one function."""
    [old] = [
        node
        for node in ast.parse(module).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    ]
    lines = module.splitlines()
    first = min(each.lineno for each in old.decorator_list) - 1
    return "\n".join([*lines[:first], *text.splitlines(), *lines[old.end_lineno :], ""])


def test_article_of_a_feed_that_has_not_changed_is_skipped(kitchen: Kitchen) -> None:
    kitchen.cook("rss-feed")

    assert len(kitchen.records("article")) == PAGES
    assert kitchen.server.statuses["/a/1"] == [200, 304]


def test_api_is_continued_from_its_cursor(kitchen: Kitchen) -> None:
    kitchen.cook("paginated-api")

    assert len(kitchen.records("order")) == 250
    cursors = [parse_qs(urlsplit(path).query).get("after") for path in kitchen.server.asked]
    assert cursors == [
        None,
        *([each] for each in ("100", "200", "250", "250", "100", "200", "250")),
    ]


def test_files_become_records(kitchen: Kitchen) -> None:
    inbox = kitchen.folder / "inbox"
    inbox.mkdir()
    (inbox / "monday.csv").write_text("sku,price\nA-1,12.50\nA-2,\n")

    kitchen.cook("csv-folder")

    assert kitchen.records("price") == {"A-1": {"sku": "A-1", "price": 12.5}}
    assert "no_price" in kitchen.outputs["penstock rejects list --source prices"]


def test_pages_behind_a_login_are_read_and_an_expired_session_is_renewed(kitchen: Kitchen) -> None:
    kitchen.cook("login")

    assert sorted(kitchen.records("invoice")) == ["1", "2", "3"]
    assert len(kitchen.server.sessions) > 1
    stored = b"".join(each.read_bytes() for each in kitchen.folder.rglob("*") if each.is_file())
    assert b"correct-horse" not in stored


def test_incremental_run_asks_for_no_page_again(kitchen: Kitchen) -> None:
    kitchen.cook("incremental-runs")

    assert kitchen.server.asked.count("/p/1") == 1
    assert kitchen.outputs["penstock jobs --state skipped"].count("unchanged") == PAGES


def test_new_logic_is_applied_to_old_pages_and_taken_back(kitchen: Kitchen) -> None:
    kitchen.cook("new-logic")

    assert f"changed  {PAGES}" in kitchen.outputs["penstock replay 1"]
    assert kitchen.server.asked.count("/p/1") == 1
    assert all("price" not in data for data in kitchen.records("product").values())


def test_backfill_fetches_each_day_once_and_then_only_what_is_missing(kitchen: Kitchen) -> None:
    kitchen.cook("backfill")

    assert len(kitchen.records("rate")) == 30
    asked = [path for path in kitchen.server.asked if path.startswith("/rates")]
    assert len(asked) == len(set(asked)) == 30


def test_budget_stops_the_run_and_sets_the_rest_aside(kitchen: Kitchen) -> None:
    kitchen.cook("budget")

    assert len(kitchen.server.asked) == 4
    assert len(kitchen.records("product")) == 3
    assert "4 requests" in kitchen.outputs["penstock budget --run 1"]


def test_failed_run_is_told_to_a_webhook_and_a_command(kitchen: Kitchen) -> None:
    kitchen.cook("alerts")

    told = json.loads((kitchen.folder / "failures.jsonl").read_text().splitlines()[0])
    assert (told["source"], told["state"]) == ("shop.example", "failed")
    [(headers, body)] = kitchen.server.hooked
    is_genuine = runpy.run_path(str(kitchen.folder / "receiver.py"))["is_genuine"]
    assert is_genuine(headers["Penstock-Signature"], body, "a-long-random-text")
    assert not is_genuine(headers["Penstock-Signature"], body + b" ", "a-long-random-text")


def test_project_moves_to_postgres_with_its_records(kitchen: Kitchen, database: str) -> None:
    kitchen.cook("incremental-runs")
    password = "postgresql://penstock:${DATABASE_PASSWORD}@db.example.com/shop?sslmode=verify-full"
    kitchen.replaced = {
        password: database,
        "postgresql://penstock@db.example.com/shop": database,
    }

    kitchen.cook("postgres")

    assert len(kitchen.records("product")) == PAGES


def test_every_recipe_is_cooked() -> None:
    recipes = {page.stem for page in (DOCS / "cookbook").glob("*.md")} - {"index"}
    cooked = set(re.findall(r'kitchen\.cook\("([\w-]+)"\)', Path(__file__).read_text()))
    assert cooked == recipes
