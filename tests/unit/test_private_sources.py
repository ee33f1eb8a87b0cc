"""A private source: its content leaves by no way that was not asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.cli import main
from penstock.engine.leader.hooks import addressed
from penstock.engine.worker.private_words import PrivateMasker
from penstock.errors import Refused
from penstock.settings.secrets import masker_for
from penstock.store.hooks import Parcel
from penstock.testing import RawResponse, Request, ScriptedNetwork, Simulation, VirtualClock, answer

PIPELINE = """
from penstock import Pipeline

notes = Pipeline("notes")


@notes.step(unit="run")
def discover(ctx):
    for name in ("dear-diary", "broken-heart"):
        yield {"url": f"https://inside.example/notes/{name}", "name": name}


@notes.step(after="discover", unit="page", key="name")
async def read(item, ctx):
    ctx.note(f"reading {item['url']} of /srv/me/notes/{item['name']}.md")
    if item["name"] == "broken-heart":
        await ctx.fetch(item["url"])
    await ctx.fetch("https://inside.example/notes/open-page")
    ctx.save("note", key=item["name"], data={"text": "dear"})
"""


@pytest.fixture
def project(tmp_path: Path) -> Any:
    name = f"notes_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(PIPELINE)
    source = {"pipeline": f"{name}:notes", "private": True, "fetch": {"robots": False}}
    (tmp_path / "penstock.yaml").write_text(json.dumps({"sources": {"diary.example": source}}))

    async def missing(request: Request) -> RawResponse:
        return RawResponse(404, {}, b"") if "broken" in request.url else answer(b"hi")

    with Project.load(tmp_path) as made:
        with Simulation(made, ScriptedNetwork(missing), seed=1, clock=VirtualClock()) as simulation:
            made.run("diary.example")
            simulation.run()
        yield made


def test_journal_has_no_address_path_or_key_of_a_private_source(project: Project) -> None:
    project.includes_private = True
    texts = [
        event.detail + json.dumps(event.data) for event in project.journal.list(limit=500).items
    ]
    failed = project.quarantine.list().items

    told = "\n".join([*texts, *(each.error for each in failed)])

    assert len(failed) == 1
    assert "reading #" in told
    for content in ("dear-diary", "broken-heart", "inside.example/notes", "/srv/me"):
        assert content not in told


def test_records_of_a_private_source_are_shown_only_where_they_are_asked_for(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(project.records("note")) == []
    assert project.records.list("note").items == []
    assert [each.key for each in project.records.each("note", include_private=True)] == [
        "dear-diary"
    ]
    with pytest.raises(Refused, match="private source"):
        project.records.get("note", "dear-diary")
    assert project.records.get("note", "dear-diary", include_private=True).data == {"text": "dear"}
    folder = ("--project", str(tmp_path))
    assert main(["records", "note", "--format", "csv", *folder]) == 0
    assert "dear" not in capsys.readouterr().out
    assert main(["records", "note", "--json", "--include-private", *folder]) == 0
    assert "dear-diary" in capsys.readouterr().out


def test_page_of_a_private_source_is_shown_only_where_it_is_asked_for(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "https://inside.example/notes/open-page"
    [page] = project.pages.list(url)

    with pytest.raises(Refused, match="private source"):
        project.pages.read(page)

    assert project.pages.read(page, include_private=True).body == b"hi"
    command = ["page", url, "--project", str(tmp_path)]
    assert main(command) == 7
    assert "hi" not in capsys.readouterr().out
    assert main([*command, "--include-private"]) == 0


def test_hook_gets_counts_of_a_private_source_and_no_texts() -> None:
    body = {
        "source": "diary.example",
        "reason": "secret words",
        "jobs": {"quarantined": 1},
        "errors": [{"kind": "data", "cause": "secret words", "error": "secret words", "jobs": 1}],
    }
    parcel = Parcel(1, "h", 1, "failed", json.dumps(body), 0)

    sent = json.loads(addressed(parcel, "p", {"diary.example"}).body)

    assert "secret words" not in json.dumps(sent)
    assert (sent["private"], sent["jobs"], sent["errors"][0]["kind"]) == (
        True,
        {"quarantined": 1},
        "data",
    )
    assert "secret words" in addressed(parcel, "p").body


def test_words_of_a_private_source_are_hashed_the_same_way_each_time() -> None:
    masker = PrivateMasker(masker_for(frozenset({"hunter2-secret"})), "diary", "my-key")

    first = masker.mask("my-key at https://a.example/x?y=1 (hunter2-secret) in ./notes/a.md: no")
    again = masker.mask_and_cut("my-key at https://a.example/x?y=1", 100)

    assert first.startswith(again)
    for content in ("my-key", "a.example", "notes", "hunter2"):
        assert content not in first
