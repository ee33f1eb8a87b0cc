"""The connector `obsidian`: the conformance suite, and what a vault has besides files."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.app import new_source
from penstock.connectors.files import connector, file_reader
from penstock.connectors.files.walk import Symlinks
from penstock.connectors.obsidian.notes import Link, read_note
from penstock.connectors.obsidian.vault import Vault
from penstock.testing.connectors import ALL_WRITES, COLLECTION, ConnectorSuite, Trial
from tests.connectors.folder_place import FolderPlace

GRAPH = f"{COLLECTION}-links"
watched: list[FolderPlace] = []


class VaultPlace(FolderPlace):
    connector = "obsidian"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        watched[:] = [self]

    def _file(self, name: str) -> Path:
        return super()._file(name).with_suffix(".md")

    def write(self, name: str, text: str | bytes) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        os.utime(file, ns=(0, next(self._ticks)))


class TestObsidian(ConnectorSuite):
    place = VaultPlace

    @pytest.fixture(autouse=True)
    def _watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def read_file(root: Path, path: str, most: int, symlinks: Symlinks) -> bytes:
            body = file_reader.read_file(root, path, most, symlinks)
            watched[0].on_read()
            return body

        monkeypatch.setattr(connector, "read_file", read_file)


@pytest.mark.torture
class TestManyNotes(TestObsidian):
    many, writes = 25_000, ALL_WRITES
    held = 500


class Vaulted(Trial):
    """A vault that is run, and its graph."""

    def __init__(self, folder: Path, files: dict[str, str | bytes]) -> None:
        self.vault = VaultPlace(folder)
        for name, text in files.items():
            self.vault.write(name, text)
        super().__init__(folder, self.vault)

    def edges(self) -> dict[str, Any]:
        with self.project() as project:
            rows = project.connection.records.of(GRAPH)
            return {row.key: row.data for row in rows if not row.data.get("deleted")}

    def links(self, key: str) -> dict[str, str | None]:
        return {link["target"]: link["to"] for link in self.documents()[key]["meta"]["links"]}


NOTE = """---
tags: [work, "#deep/er"]
aliases: Third, Tertius
related: "[[a]]"
count: 3
---
# One `[[code]]`
text #inline #deep/er/est #123 no#tag `#code` and https://example.com/#fragment
%% #hidden [[hidden]] %% <!-- [[comment]] -->
```
[[fenced]] #fenced ^fenced
```
~~~md
``` [[still fenced]]
~~~
## Two ##
[[a#Heading|shown]] ![[pic.png|100]] [md](sub%20folder/b.md#^blk) ![alt](<pic.png> "title")
[[#One]] [[table\\|x]] [web](https://example.com/x) <https://example.com/y> [mail](mailto:a@b.example)
A line with an id. ^block-1
"""


def test_a_note_is_read_as_obsidian_reads_it() -> None:
    note = read_note(NOTE.encode())
    assert note.tags == ["work", "deep/er", "inline", "deep/er/est"]
    assert note.aliases == ["Third", "Tertius"]
    assert note.headings == [
        {"level": 1, "text": "One"},
        {"level": 2, "text": "Two"},
    ]
    assert note.blocks == ["block-1"]
    assert note.front["count"] == 3
    assert note.links == [
        Link("property", "a"),
        Link("link", "a", heading="Heading", text="shown"),
        Link("embed", "pic.png", text="100"),
        Link("link", "", heading="One"),
        Link("link", "table", text="x"),
        Link("link", "sub folder/b.md", block="blk"),
        Link("embed", "pic.png"),
    ]
    assert note.urls == ["https://example.com/x", "mailto:a@b.example", "https://example.com/y"]


@pytest.mark.parametrize(
    ("link", "note", "found"),
    [
        ("Plain", "x.md", "plain.md"),
        ("PLAIN.MD", "x.md", "plain.md"),
        ("same", "one/x.md", "one/same.md"),
        ("same", "two/x.md", "two/deep/same.md"),
        ("same", "x.md", "one/same.md"),
        ("deep/same", "one/x.md", "two/deep/same.md"),
        ("eep/same", "one/x.md", None),
        ("/one/same", "two/x.md", "one/same.md"),
        ("/same", "one/x.md", None),
        ("../plain", "one/x.md", "plain.md"),
        ("./same", "two/x.md", None),
        ("../../plain", "one/x.md", None),
        ("pic.png", "x.md", "media/pic.png"),
        ("pic", "x.md", None),
        ("version 1.2", "x.md", "version 1.2.md"),
        ("Cafe\u0301", "x.md", "café.md"),
        ("home", "x.md", "index.md"),
        ("one/home", "x.md", None),
        ("none", "x.md", None),
    ],
)
def test_a_link_leads_where_obsidian_leads_it(link: str, note: str, found: str | None) -> None:
    vault = Vault()
    for path in ("plain.md", "one/same.md", "two/deep/same.md", "media/pic.png", "index.md"):
        vault.add(path)
    vault.add("version 1.2.md")
    vault.add("café.md")
    vault.add_aliases("index.md", ["Home"])
    resolved = vault.resolve(Link("link", link), note)
    assert (resolved.path if resolved else None) == found


def test_notes_attachments_and_canvases_become_documents_and_edges(tmp_path: Path) -> None:
    canvas = {
        "nodes": [
            {"id": "1", "type": "text", "text": "see [[a]]"},
            {"id": "2", "type": "file", "file": "pic.png", "subpath": "#^x"},
            {"id": "3", "type": "link", "url": "https://example.com/"},
        ],
        "edges": [],
    }
    trial = Vaulted(
        tmp_path,
        {
            ".obsidian/app.json": "{}",
            ".trash/old.md": "[[a]]",
            "a.md": "[[b]] [[B#x]] ![[pic.png]] [[nowhere]] [[#here]]",
            "sub/b.md": "---\naliases: [Bee]\n---\nback to [[a]]",
            "c.md": "[[bee]]",
            "pic.png": b"\x89PNG\x00",
            "board.canvas": json.dumps(canvas),
            "broken.canvas": "{",
        },
    )
    run = trial.run()
    assert run.state == "partial"
    [broken] = [job for job in trial.jobs(run) if job.state == "quarantined"]
    assert (broken.key, broken.kind) == ("broken.canvas", "data")
    documents = trial.documents()
    assert {key: each["kind"] for key, each in documents.items()} == {
        "a.md": "note",
        "board.canvas": "canvas",
        "c.md": "note",
        "pic.png": "binary",
        "sub/b.md": "note",
    }
    assert documents["a.md"]["meta"]["unresolved"] == 1
    assert documents["board.canvas"]["links"] == ["https://example.com/", "a.md", "pic.png"]
    edges = trial.edges()
    assert set(edges) == {
        "a.md → nowhere",
        "a.md → pic.png",
        "a.md → sub/b.md",
        "board.canvas → a.md",
        "board.canvas → pic.png",
        "c.md → sub/b.md",
        "sub/b.md → a.md",
    }
    assert edges["a.md → sub/b.md"] == {
        "key": "a.md → sub/b.md",
        "from": "a.md",
        "to": "sub/b.md",
        "targets": ["b", "B#x"],
        "kinds": ["link"],
        "count": 2,
        "resolved": True,
    }
    assert edges["a.md → nowhere"]["resolved"] is False


def test_a_note_is_read_again_when_its_links_lead_elsewhere_and_only_then(tmp_path: Path) -> None:
    trial = Vaulted(tmp_path, {"a.md": "[[b]]", "other.md": "[[a]]", "c.md": "[[Bee]]"})
    trial.run()
    assert trial.links("a.md") == {"b": None}
    trial.vault.write("deep/b.md", "---\naliases: [Bee]\n---\n")
    assert set(trial.items_read(trial.run())) == {"a.md", "c.md", "deep/b.md"}
    assert (trial.links("a.md"), trial.links("c.md")) == ({"b": "deep/b.md"}, {"Bee": "deep/b.md"})
    # An alias that goes away changes what others' links lead to, and no name.
    trial.vault.write("deep/b.md", "no alias any more")
    assert set(trial.items_read(trial.run())) == {"c.md", "deep/b.md"}
    assert trial.links("c.md") == {"Bee": None}
    (trial.vault.root / "deep/b.md").rename(trial.vault.root / "b2.md")
    assert set(trial.items_read(trial.run())) == {"a.md", "deep/b.md", "b2.md"}
    assert trial.records()["b2.md"][0]["moved_from"] == "deep/b.md"
    assert trial.edges().keys() == {"a.md → b", "c.md → Bee", "other.md → a.md"}
    assert trial.items_read(trial.run()) == []


def test_edges_disappear_with_their_links_and_with_their_note(tmp_path: Path) -> None:
    trial = Vaulted(
        tmp_path, {"a.md": "[[b]] [[c]]", "b.md": "[[a]]", "c.md": "", "a2.md": "[[b]]"}
    )
    trial.run()
    trial.vault.write("a.md", "[[c]]")
    (trial.vault.root / "b.md").unlink()
    trial.run()
    assert trial.edges().keys() == {"a.md → c.md", "a2.md → b"}


def test_a_vault_without_a_graph_saves_notes_alone(tmp_path: Path) -> None:
    class Plain(VaultPlace):
        def keys(self) -> dict[str, Any]:
            return {**super().keys(), "graph": False, "hidden": True}

    place = Plain(tmp_path)
    place.write("a.md", "[[b]]")
    place.write(".obsidian/b.md", "settings")
    trial = Trial(tmp_path, place)
    trial.run()
    with trial.project() as project:
        assert [each.collection for each in project.records.collections()] == [COLLECTION]
    assert set(trial.documents()) == {"a.md"}


@pytest.mark.parametrize(
    "text", ["[[" * 200_000, "`" * 400_000, "``` ` `` " * 50_000, "<!--" * 100_000, "[a](" * 100_000,
             "%%" * 199_999, "#a" * 200_000, "---\n" + "a: &a [*a]\n" * 9_000, "![[" + "x|" * 200_000]
)  # fmt: skip
def test_no_text_takes_long_to_read(text: str) -> None:
    began = time.process_time()
    read_note(text.encode())
    assert time.process_time() - began < 5.0


def test_a_folder_with_an_obsidian_folder_is_recognised_as_a_vault(tmp_path: Path) -> None:
    (tmp_path / "vault" / ".obsidian").mkdir(parents=True)
    found = new_source.propose(tmp_path, new_source.Wish(str(tmp_path / "vault")))
    assert (found.connector, found.keys) == ("obsidian", {"folder": "./vault"})
