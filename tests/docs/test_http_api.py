"""The commands of the page on the HTTP API, run against a real server."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

from tests.browser.shop import served
from tests.contract.scenes import PLAIN_STEPS
from tests.docs.pages import ROOT, blocks
from tests.journeys.rig import ENVIRONMENT, PENSTOCK

PAGE = ROOT / "docs" / "http-api.md"
FILE = "sources: {acme.com: {pipeline: 'steps:plain'}}\n"
TIMED_OUT = 28


def commands() -> list[str]:
    found = [block for block in blocks(PAGE) if not block.language]
    return [line for block in found for line in block.text.splitlines() if line]


def test_every_example_of_the_page_does_what_it_shows(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text(FILE)
    (tmp_path / "steps.py").write_text(PLAIN_STEPS)
    create, *curls = commands()
    made = subprocess.run(
        [*PENSTOCK, *shlex.split(create)[1:]],
        cwd=tmp_path,
        env=ENVIRONMENT,
        check=True,
        capture_output=True,
    )
    token, answers = json.loads(made.stdout)["token"], list[str]()
    with served(tmp_path) as (address, _):
        for line in curls:
            words = shlex.split(
                line.replace("$TOKEN", token).replace("http://127.0.0.1:8787", address)
            )
            assert words[0] == "curl"
            words = [words[0], "--silent", "--show-error", *words[1:]]
            found = subprocess.run(words, capture_output=True, text=True)
            assert found.returncode == (TIMED_OUT if "--max-time" in words else 0), found.stderr
            answers.append(found.stdout)
    document, runs, paused, first, again, stream = answers
    assert json.loads(document)["openapi"] == "3.1.0"
    assert json.loads(runs)["items"] == []
    assert json.loads(paused) == {"changed": True}
    assert json.loads(first)["is_new"] is True
    assert again == first
    events = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: ")]
    assert "source.paused" in [event["kind"] for event in events]
    assert {event["actor"] for event in events if event["kind"] == "source.paused"} == {"ci"}
