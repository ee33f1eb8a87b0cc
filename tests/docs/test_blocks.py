"""Every code block of the documentation runs, or says in its info string why it can't.

A block without a language holds commands, a `text` block holds output. What runs where: recipes in
test_cookbook.py, the first pipeline in tests/journeys/test_demo.py, testing.md in tests/unit/test_testing.py.
"""

from __future__ import annotations

import argparse
import configparser
import json
import re
import runpy
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

from penstock.cli.entry import parser_for
from penstock.project import Project
from penstock.settings import load_settings
from penstock.settings.dotenv import parse_dotenv
from penstock.settings.schema import json_schema
from penstock.store.address import grants_for
from penstock.testing import Request, ScriptedNetwork, Simulation, VirtualClock, answer
from tests.contract.test_sql_interface import AGING, BACKLOG, FAILURES, FRESHNESS, POLLUTION
from tests.docs.pages import ROOT, Block, all_blocks, name_of, names_of, pages, prose

LANGUAGES = {"", "console", "text", "python", "yaml", "json", "ini", "sql", "sh", "mermaid"}
MENTIONED = re.compile(r"`(penstock [a-z][^`\n]*)`")
SHELL = {
    "aws",
    "cd",
    "cp",
    "createdb",
    "createuser",
    "curl",
    "export",
    "psql",
    "rsync",
    "systemctl",
}
BLOCKS = [block for block in all_blocks() if not block.reason]
FILE_KEYS = set(json_schema()["properties"])


def of(*languages: str) -> list[Block]:
    return [block for block in BLOCKS if block.language in languages]


def test_every_block_has_a_language_that_is_checked_here() -> None:
    assert [f"{b}: {b.language}" for b in all_blocks() if b.language not in LANGUAGES] == []


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_commands_stand_in_fenced_blocks(page: Path) -> None:
    assert not re.search(r"^ {4,}(\$ )?penstock ", prose(page), re.MULTILINE)


# Commands.


def lines_of(block: Block) -> list[str]:
    """The commands of a block; in a `console` block they follow a prompt, and the rest is output."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.language == "console":
        return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [line for line in lines if line.strip()]


@pytest.mark.parametrize("block", of("", "console"), ids=str)
def test_every_command_can_be_typed(block: Block) -> None:
    for line in lines_of(block):
        for command in shlex.join(shlex.split(line, comments=True)).split(" '|' "):
            check_command(shlex.split(command))


def check_command(words: list[str]) -> None:
    if not words:
        return
    program, *rest = words
    program = program.removeprefix(".venv/bin/")
    if program == "penstock":
        check_penstock(rest)
    elif program == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert rest[0] in targets
    elif program == "pip":
        check_pip(rest)
    elif program == "python":
        assert rest[:1] == ["-m"]
    else:
        assert program in SHELL, program


def check_penstock(words: list[str]) -> None:
    words = words[: words.index(">")] if ">" in words else words
    if "--help" not in words and "--version" not in words:
        parse(words)


def parse(words: list[str]) -> argparse.Namespace:
    return parser_for(words).parse_args(words, argparse.Namespace(project=None, env=None))


def check_pip(words: list[str]) -> None:
    assert words[0] == "install"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for named in re.findall(r"\[([\w,]+)\]", " ".join(words)):
        assert set(named.split(",")) <= set(extras)


def mentioned() -> list[str]:
    return sorted({text for page in pages() for text in MENTIONED.findall(prose(page))})


@pytest.mark.parametrize("mention", mentioned())
def test_every_command_that_the_prose_names_exists_with_its_options(mention: str) -> None:
    words = shlex.split(mention.replace("\\|", "|").partition(" |")[0])[1:]
    parser: argparse.ArgumentParser = parser_for(words)
    for word in words:
        names = _verbs(parser)
        if names and not word.startswith("-"):
            assert word in names, f"{word} is not one of {sorted(names)}"
            parser = names[word]
        elif word.startswith("--"):
            assert word.partition("=")[0] in parser._option_string_actions, word


def _verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


# Configuration.


@pytest.mark.parametrize("block", of("yaml"), ids=str)
def test_every_yaml_block_is_a_valid_configuration_or_a_part_of_one(
    block: Block, tmp_path: Path
) -> None:
    text = block.text
    found = yaml.safe_load(text)
    if not set(found) <= FILE_KEYS:  # keys of a source, or a source
        is_source = isinstance(next(iter(found.values())), dict) and "pipeline" in str(found)
        depth, head = (2, "sources:\n") if is_source else (4, _A_SOURCE)
        text = head + "".join(f"{' ' * depth}{line}\n" for line in text.splitlines())
    elif "sources" not in found:
        text = f"{text}\n{_A_SOURCE}"
    (tmp_path / "penstock.yaml").write_text(text)
    for name in re.findall(r"schema: ([\w.]+\.json)", text):
        (tmp_path / name).write_text("{}")

    names = re.findall(r"\$\{(\w+)\}", text)
    values = {name: ADDRESS if name.endswith("_URL") else "a" * 16 for name in names}
    load_settings(tmp_path, environ=values)


ADDRESS = "https://example.com/aaaaaaaa"
_A_SOURCE = "sources:\n  other: {pipeline: p:p}\n  acme.com:\n    pipeline: p:p\n"


@pytest.mark.parametrize("block", of("json"), ids=str)
def test_every_json_block_is_json(block: Block) -> None:
    is_one_value = block.text.startswith("{\n")  # otherwise each line is a value
    for text in [block.text] if is_one_value else block.text.splitlines():
        json.loads(text)


def test_sql_is_what_the_command_before_it_prints() -> None:
    [block] = [each for each in of("sql") if "GRANT SELECT" in each.text]
    assert block.text.splitlines() == grants_for("penstock", "penstock_worker")


def test_monitoring_statements_are_those_that_the_contract_runs() -> None:
    shown = [each.text.strip() for each in of("sql") if each.text.startswith("SELECT")]
    statements = (BACKLOG, FAILURES, FRESHNESS, POLLUTION, AGING)
    assert shown == [each.strip() for each in statements]


@pytest.mark.parametrize("block", of("ini", "sh"), ids=str)
def test_files_of_other_programs_can_be_read(block: Block) -> None:
    if block.language == "ini":
        read = configparser.ConfigParser()
        read.read_string(block.text)
        assert read.sections()
    else:
        assert parse_dotenv(block.text)[1] == []


# Python.

RUN_ELSEWHERE = {
    "README.md",
    "docs/audit.md",
    "docs/first-pipeline.md",
    "docs/python.md",
    "docs/testing.md",
}
PAGE = """<title>A page</title><a href="/p/2">next</a><meta itemprop="price" content="1.50">"""
PRICES = '[{"day": "2026-01-01", "sku": "A-1", "price": 1.5}]'
SITEMAP = """<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>https://acme.com/p/1</loc></url></urlset>"""
DEFAULTS = """defaults:
  backfill: {window: 1d}
  params:
    sitemap: https://acme.com/sitemap.xml
    start: https://acme.com/p/1
    api: https://acme.com/api
"""


def python_pages() -> list[str]:
    named = {block.page for block in of("python")}
    return sorted(n for n in named - RUN_ELSEWHERE if not n.startswith("docs/cookbook/"))


async def any_site(request: Request) -> object:
    if request.url.endswith("sitemap.xml"):
        return answer(SITEMAP)
    return answer(PRICES if "/api" in request.url else PAGE)


@pytest.mark.parametrize("page", python_pages())
def test_pipelines_of_a_page_run(page: str, tmp_path: Path) -> None:
    text = "\n\n".join(block.text for block in of("python") if block.page == page)
    (tmp_path / "steps.py").write_text(text)
    names = re.findall(r"^(\w+) = (?:Pipeline|Registry)\(", text, re.MULTILINE)
    by_window = re.findall(r"^@(\w+)\.step\(.*windows=True", text, re.MULTILINE)
    sources = "".join(f"  {name}: {{pipeline: 'steps:{name}'}}\n" for name in names)
    (tmp_path / "penstock.yaml").write_text(f"{DEFAULTS}sources:\n{sources}")

    with Project.load(tmp_path) as project:
        network = ScriptedNetwork(any_site)  # type: ignore[arg-type]
        with Simulation(project, network, seed=1, clock=VirtualClock()) as simulation:
            begun = [
                project.backfill(name, "2024-01-01", "2024-01-02")
                if name in by_window
                else project.run(name)
                for name in names
            ]
            simulation.run()
        states = {project.require_run(number).state for number in begun}

    assert begun
    assert states == {"completed"}


def test_programs_of_the_python_page_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "shop-watch"
    folder.mkdir()
    (folder / "penstock.yaml").write_text(
        "sources: {acme.com: {pipeline: 'shop_of_a_program:shop', backfill: {window: 1d}}}"
    )
    (folder / "shop_of_a_program.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)

    for number, block in enumerate(b for b in of("python") if b.page == "docs/python.md"):
        (tmp_path / f"program_{number}.py").write_text(block.text)
        runpy.run_path(str(tmp_path / f"program_{number}.py"))

    assert "A-1 {'price': 12.5}" in capsys.readouterr().out


SHOP = """
from penstock import Pipeline

shop = Pipeline("shop")


@shop.step(unit="run")
def look(ctx):
    ctx.save("product", key="A-1", data={"price": 12.5})


@shop.step(after="look", unit="page", windows=True)
def day(ctx):
    pass
"""


def titled(page: str) -> dict[str, str]:
    return {block.title: block.text for block in of("python") if block.page == page}


def test_test_of_the_parsing_passes_with_the_parser_of_the_guide(tmp_path: Path) -> None:
    parser = next(b.text for b in of("python") if "def parse_product" in b.text)
    head = (
        "import json\nfrom selectolax.lexbor import LexborHTMLParser\nfrom penstock import Skip\n"
    )
    text = head + parser[parser.index("def parse_product") :] + "\n"

    names = names_of(text + titled("docs/testing.md")["test_parsing.py"], tmp_path)

    names["test_price_is_read"]()


def test_script_of_a_bad_site_breaks_and_hangs_on_virtual_time(tmp_path: Path) -> None:
    network = names_of(titled("docs/testing.md")["test_failures.py"], tmp_path)["network"]
    (tmp_path / "steps.py").write_text(CRAWL)
    (tmp_path / "penstock.yaml").write_text("sources: {acme.com: {pipeline: 'steps:pages'}}")

    with Project.load(tmp_path) as project:
        with Simulation(project, network, seed=1, clock=VirtualClock()) as simulation:
            number = project.run("acme.com")
            simulation.run()
        ended = project.require_run(number)

    assert (ended.state, ended.inserted, ended.quarantined) == ("partial", 1, 2)


CRAWL = """
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
def discover():
    yield from ({"url": f"https://acme.com/{name}"} for name in ("good", "slow", "broken"))


@pages.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    ctx.save("page", key=page["url"], data={"text": (await ctx.fetch(page["url"])).text})
"""
