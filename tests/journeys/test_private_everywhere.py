"""One word, which is all that two private sources hold, looked for in everything that leaves Penstock."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.cli import main
from penstock.cli.command_list import LISTED
from penstock.cli.entry import parser_for
from tests.journeys.rig import Rig
from tests.otlp_receiver import collecting
from tests.unit.test_alert_routes import receiving
from tests.unit.test_web import Site, visit

WORD = "Zeppelinpost"
# It is printed, logged, noted, in keys, partitions, signals, errors, texts, and in the names of fields.
PIPELINE = f"""
import logging

from penstock import BadData, Pipeline, Reject

letters = Pipeline("letters")


@letters.step(unit="run")
def discover(ctx):
    print("{WORD} is printed")
    ctx.note("{WORD} is noted")
    ctx.checkpoint({{"at": "{WORD}"}}, "{WORD} box")
    ctx.signal("mail.came", subject="{WORD}")
    for name in ("good", "bad", "unwanted", "wrong"):
        yield {{"name": f"{WORD} {{name}}"}}


@letters.step(after="discover", unit="page", key="name")
def read(item, ctx):
    logging.getLogger("letters").warning("{WORD} is logged")
    if "unwanted" in item["name"]:
        raise Reject("{WORD} is not wanted", code="dull")
    if "bad" in item["name"]:
        raise BadData("{WORD} can't be parsed")
    if "wrong" in item["name"]:
        raise KeyError("{WORD} is a bug")
    ctx.save("letter", key=item["name"], data={{"text": "{WORD}", "{WORD}": ctx.run.id}})
"""
# What can't be walked, because it serves, asks, or is about no source; and what shows all, as its page says.
NOT_WALKED = {
    "add", "audit export", "builder", "completion", "connectors", "db", "demo", "help", "init", "mcp",
    "prove", "scheduler", "trigger", "up", "web", "worker",
}  # fmt: skip
# How much is left unwalked is bounded: a new command must be walked.
COMMANDS = 90


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A project whose two sources are private, after two runs of each; and what it has sent and printed."""
    folder = tmp_path_factory.mktemp("private")
    papers = folder / "papers"
    papers.mkdir()
    (papers / f"{WORD}.md").write_text(f"# {WORD}\n{WORD}@post.example [[{WORD}]]\n")
    (papers / f"{WORD}.json").write_text(json.dumps({WORD: [1, {WORD: 2}]}))
    (papers / f"{WORD}.pdf").write_text(f"%PDF-1.4 {WORD}")
    (folder / "private_letters.py").write_text(PIPELINE)
    (folder / "letter.json").write_text("{}")
    sources = {
        "letters": {"pipeline": "private_letters:letters", "private": True},
        "papers": {"connector": "files", "folder": "papers", "private": True},
    }
    keep = "import sys; open('hook.txt', 'a').write(sys.stdin.read())"
    out: dict[str, str] = {}
    with collecting() as collector, receiving(*[200] * 50) as hook, Rig(folder, sources) as rig:
        config = json.loads((folder / "penstock.yaml").read_text())
        config["tracing"] = {"endpoint": collector.url}
        config["hooks"] = [
            {"url": f"http://{hook.place}/", "allow_private": True},
            {"command": [sys.executable, "-c", keep]},
        ]
        config["collections"] = {"letter": {"schema": "letter.json"}}
        (folder / "penstock.yaml").write_text(json.dumps(config))
        done = rig.penstock("run", "letters", "papers")
        out["penstock run"] = done.stdout + done.stderr
        # Other fields than in the run before: drift tells of them.
        changed = PIPELINE.replace('"text": ', f'"{WORD} again": 1, "text": ')
        (folder / "private_letters.py").write_text(changed)
        rig.penstock("run", "letters", "papers", "--detach")
        done = rig.penstock("up", "--until-idle", "--log-format", "json")
        out["penstock up"] = done.stdout + done.stderr
        out["hooks"] = "".join(body.decode() for _, body in hook.seen)
        out["hook commands"] = (folder / "hook.txt").read_text()
        out["traces"] = "\n".join(map(repr, collector.spans))
    return folder, out


def around(text: str) -> str:
    at = text.index(WORD)
    return repr(text[max(0, at - 150) : at + 50])


def test_nothing_that_is_sent_or_logged_has_content_of_a_private_source(
    sent: tuple[Path, dict[str, str]],
) -> None:
    folder, out = sent
    assert {where: around(text) for where, text in out.items() if WORD in text} == {}
    # Each of them has something to say of it.
    assert '"source":"letters"' in out["hooks"]
    assert '"source":"papers"' in out["hook commands"]
    assert "attempt read" in out["traces"]
    assert "job 13 of letters is quarantined" in out["penstock up"]
    assert "letters: partial" in out["penstock run"]
    with Project.load(folder) as project:
        project.includes_private = True
        # As it is in the journal, in signals and in the words of alerts.
        [drift] = project.journal.list(kind="schema.drifted").items
        assert (drift.source, WORD in drift.detail) == ("letters", False)
        assert drift.detail.startswith("letter: #")
        assert any(WORD in line.text for line in project.logs.each(run=1))


def test_no_stream_of_the_server_has_content_of_a_private_source(
    sent: tuple[Path, dict[str, str]],
) -> None:
    texts: list[str] = []

    async def steps(at: Site) -> None:
        await at.log_in()
        for path in ("/api/v1/events/stream?limit=500", "/metrics"):
            url = f"http://127.0.0.1:{at.port}{path}"
            async with at.browser.get(url) as answer:
                assert answer.status == 200, path
                texts.append((await answer.content.read(200_000)).decode())

    with Project.load(sent[0]) as project:
        visit(project, steps)
    assert [around(text) for text in texts if WORD in text] == []
    assert "job.quarantined" in texts[0]


def leaves(parser: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Every command below a parser, with the names of what it takes."""
    below = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    if not below or parser.get_default("run"):
        given = [each for each in parser._actions if not each.option_strings]
        yield path, [each.dest for each in given if each not in below]
    for each in below:
        for name, inner in each.choices.items():
            yield from leaves(inner, (*path, name))


def commands() -> Iterator[tuple[tuple[str, ...], list[str]]]:
    for name in LISTED:
        if name not in NOT_WALKED:
            parser = parser_for([name])
            [below] = [each for each in parser._actions if each.choices]
            yield from leaves(dict(below.choices or {})[name], (name,))


def test_no_command_prints_content_of_a_private_source(
    sent: tuple[Path, dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(sent[0])
    with Project.load(sent[0]) as project:
        jobs = {job.state: str(job.id) for job in project.jobs.list(limit=100).items}
        runs = [str(run.id) for run in project.runs.list().items]
        rejects = [str(each.id) for each in project.rejects.list().items]
    known = {
        "source": ["letters", "papers"],
        "name": ["letters"],
        "run_id": runs[:2],
        "words": runs[:2],
        "job_id": list(jobs.values()),
        "target": ["letters", *jobs.values()],
        "collection": ["letter", "papers"],
        "reject_id": rejects[:1],
    }
    leaks, walked = list[str](), set[tuple[str, ...]]()
    for path, names in commands():
        if " ".join(path) in NOT_WALKED:
            continue
        walked.add(path)
        for given in product(*(known.get(name, ["1"]) for name in names)):
            words = [*path, *given]
            main(words)
            said = "".join(capfd.readouterr())
            if WORD in said:
                leaks.append(f"{' '.join(words)}: {around(said)}")
    assert "\n".join(leaks) == ""
    assert len(walked) > COMMANDS
    for told in (["logs", "1"], ["jobs", jobs["quarantined"]], ["probe", "papers"]):
        main([*told, "--include-private"])
        assert WORD in "".join(capfd.readouterr()), told
