"""`penstock add`: from an address or a folder to a source that works."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from penstock import Context
from penstock.app import Project, new_source
from penstock.cli.entry import main
from penstock.connectors import Recognised, Target
from penstock.connectors.feed.connector import DEMO
from penstock.connectors.files import Files
from penstock.errors import Refused, UsageError
from penstock.jobs.failures import AuthFailed
from penstock.settings import load_settings
from penstock.settings.connector import BUILT_IN
from penstock.settings.insertion import with_source
from penstock.testing import ScriptedNetwork, answer
from tests.connectors.api_server import Server

SITE = "https://acme.example"
SITEMAP = f"<urlset><url><loc>{SITE}/a</loc></url></urlset>"


def proposed(folder: Path, target: str, pages: dict[str, Any]) -> new_source.Proposal:
    return new_source.propose(folder, new_source.Wish(target), ScriptedNetwork.of_pages(pages))


def test_an_address_is_recognised_by_what_is_there(tmp_path: Path) -> None:
    for target, pages, connector, keys in (
        (f"{SITE}/feed.xml", {f"{SITE}/feed.xml": DEMO}, "feed", {"url": f"{SITE}/feed.xml"}),
        (f"{SITE}/map.xml", {f"{SITE}/map.xml": SITEMAP}, "web", {"sitemap": f"{SITE}/map.xml"}),
        (
            "acme.example",
            {SITE: "<p>hi", f"{SITE}/": "<p>hi", f"{SITE}/sitemap.xml": SITEMAP},
            "web",
            {"sitemap": f"{SITE}/sitemap.xml"},
        ),
        (
            f"{SITE}/docs/",
            {f"{SITE}/docs/": "<p>hi"},
            "web",
            {"url": f"{SITE}/docs/", "scope": "prefix"},
        ),
        (
            f"{SITE}/app",
            {f"{SITE}/app": "<div id=root></div><script src=app.js></script>"},
            "headless",
            {"url": f"{SITE}/app", "scope": "prefix"},
        ),
    ):
        found = proposed(tmp_path, target, pages)
        assert (found.connector, found.keys) == (connector, keys), target


def test_a_file_is_recognised_by_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    for name, text, connector, keys in (
        ("news.xml", DEMO, "feed", {"url": "./news.xml"}),
        ("note.xml", "<note>no feed</note>", "files", {"folder": ".", "include": ["/note.xml"]}),
        ("site/index.html", "<a href=a.html>a</a>", "web", {"url": "./site/index.html"}),
    ):
        (tmp_path / name).write_text(text)
        found = proposed(tmp_path, str(tmp_path / name), {})
        assert (found.connector, found.keys) == (connector, keys), name


def test_what_no_connector_reads_is_refused_in_one_line(tmp_path: Path) -> None:
    data = answer('{"a": 1}', headers={"Content-Type": "application/json"})
    with pytest.raises(Refused, match="is application/json: no connector recognises that"):
        proposed(tmp_path, f"{SITE}/api", {f"{SITE}/api": data})
    with pytest.raises(Refused, match="status 404"):
        proposed(tmp_path, f"{SITE}/nothing", {})
    with pytest.raises(UsageError, match="neither a folder or file"):
        proposed(tmp_path, "no such place", {})


class Wiki(Files):
    """A connector of another package: it recognises folders better than files does, and addresses unseen."""

    name = "wiki"

    async def probe(self, ctx: Context) -> dict[str, Any]:
        if (self._root / "wiki.ini").read_text() == "locked":
            raise AuthFailed("the wiki refuses the password")
        return {"pages": 12_000}

    @classmethod
    async def recognise(cls, target: Target) -> Recognised | None:
        if target.path is not None and (target.path / "wiki.ini").exists():
            return Recognised(keys={"folder": target.written(target.path)}, why="a wiki")
        if target.url.startswith("https://wiki.example/"):
            return Recognised(keys={"folder": "."}, why="the wiki", fit=90)
        return None


def test_connectors_recognise_targets_themselves_and_the_best_fit_is_proposed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BUILT_IN, "wiki", f"{__name__}:Wiki")
    monkeypatch.setitem(BUILT_IN, "broken", "no_such_module:Broken")
    (tmp_path / "notes").mkdir()
    assert proposed(tmp_path, str(tmp_path / "notes"), {}).connector == "files"
    (tmp_path / "notes" / "wiki.ini").touch()
    found = proposed(tmp_path, str(tmp_path / "notes"), {})
    assert (found.connector, found.keys, found.name) == ("wiki", {"folder": "./notes"}, "wiki")
    # Nobody is asked over the network for what an address alone tells.
    assert proposed(tmp_path, "https://wiki.example/a", {}).why == "the wiki"
    named = new_source.Wish(str(tmp_path / "notes"), connector="files", keys={"hidden": True})
    chosen = new_source.propose(tmp_path, named)
    assert (chosen.connector, chosen.keys) == ("files", {"folder": "./notes", "hidden": True})
    with pytest.raises(UsageError, match=r"the connector files does not recognise 'acme\.example'"):
        new_source.propose(
            tmp_path,
            new_source.Wish("acme.example", connector="files"),
            ScriptedNetwork.of_pages({"https://acme.example": "<p>hi"}),
        )


def test_a_probe_says_what_is_there_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(BUILT_IN, "wiki", f"{__name__}:Wiki")
    monkeypatch.chdir(tmp_path)
    Path("penstock.yaml").write_text("sources: {w: {connector: wiki, folder: notes}}\n")
    assert main(["probe", "w"]) == 4
    assert "w (connector wiki): failed, " in capsys.readouterr().out
    Path("notes").mkdir()
    Path("notes/wiki.ini").write_text("open")
    Path("notes/a.md").write_text("# A")
    assert main(["probe", "w", "--records", "1"]) == 0
    said = capsys.readouterr().out
    assert "pages: 12,000" in said
    assert "a.md  A" in said
    assert "wiki.ini" not in said
    Path("notes/wiki.ini").write_text("locked")
    assert main(["probe", "w", "--json"]) == 4
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["kind"]) == ("failed", "auth")
    assert (found["reason"], found["requests"]) == ("the wiki refuses the password", 0)
    Path("penstock.yaml").write_text(
        "sources: {w: {connector: files, folder: notes, private: true}}"
    )
    assert main(["probe", "w"]) == 0
    assert "# A" not in capsys.readouterr().out
    assert main(["probe", "w", "--include-private"]) == 0
    assert "# A" in capsys.readouterr().out
    with Project.open(tmp_path) as project:
        assert not project.runs.list().items
        assert not project.records.collections()


def test_the_source_is_added_with_a_sample_and_every_comment_stays(tmp_path: Path) -> None:
    before = (
        "# my project\nproject: p\nsources:\n    # the first\n    one: {pipeline: 'a:b'}  # x\n\n"
        "# the end\n"
    )
    (tmp_path / "penstock.yaml").write_text(before)
    pages = {f"{SITE}/feed.xml": DEMO}
    proposal = proposed(tmp_path, f"{SITE}/feed.xml", pages)
    network = ScriptedNetwork.of_pages({**pages})
    tried = new_source.add(tmp_path, proposal, dry_run=True, network=network)
    assert (tmp_path / "penstock.yaml").read_text() == before
    assert [each.title for each in tried.samples] == [
        "The wheel turns again",
        "Flour for everybody",
    ]
    new_source.add(tmp_path, proposal, network=network)
    after = (tmp_path / "penstock.yaml").read_text()
    assert [line for line in before.splitlines() if line not in after.splitlines()] == []
    assert load_settings(tmp_path).sources["acme.example-feed"].connector == "feed"
    with pytest.raises(Refused, match=r"there is a source acme\.example-feed already"):
        new_source.add(tmp_path, proposal, network=network)
    assert not list(tmp_path.glob(".penstock-add-*"))


def test_a_place_that_cannot_be_read_is_not_added(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text("project: p\n")
    proposal = new_source.Proposal("a", "web", {"urls": [f"{SITE}/x"]}, "")
    refusing = ScriptedNetwork.of_pages({f"{SITE}/x": answer("", status=403)})
    with pytest.raises(Refused, match=r"it can't be read \(auth\): .*403"):
        new_source.add(tmp_path, proposal, network=refusing)
    assert (tmp_path / "penstock.yaml").read_text() == "project: p\n"


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_demo_data_is_read_offline_from_an_empty_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["add", "--demo", name, "--json"]) == 0
    added = json.loads(capsys.readouterr().out)
    assert (added["connector"], added["is_written"]) == (name, True)
    assert main(["run", added["source"]]) == 0
    with Project.open(tmp_path) as project:
        assert project.records.collections()[0].records >= 2


def test_a_folder_is_added_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("notes")
    Path("notes/a.md").write_text("# A")
    assert main(["add", "./notes", "--set", 'include=["*.md"]', "--yes"]) == 0
    assert load_settings(tmp_path).sources["notes"].options["folder"] == "./notes"
    assert main(["add", "./notes", "--yes"]) == 7
    assert main(["add"]) == 2


def test_a_key_of_a_section_is_set_by_its_path_and_a_private_address_can_be_permitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with Server(records=3).on_loopback() as origin:
        assert main(["add", f"{origin}/pages", "--yes"]) == 7
        refused = capsys.readouterr().err
        assert "if you trust it, add it with --set fetch.allow_private=true" in refused
        # Neither a file of the project nor a database.
        assert list(tmp_path.iterdir()) == []
        permitted = ["--set", "fetch.allow_private=true", "--set", "paging.max_pages=5", "--yes"]
        assert main(["add", f"{origin}/pages", "--name", "items", *permitted]) == 0
    source = load_settings(tmp_path).sources["items"]
    assert (source.connector, source.fetch.allow_private) == ("api", True)
    assert source.options["paging"] == {"max_pages": 5}
    for said in ("fetch.=1", ".a=1", "=1"):
        assert main(["add", "./x", "--set", said]) == 2
    assert main(["add", "./x", "--set", "a=1", "--set", "a.b=2"]) == 2


def test_a_dry_run_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes").mkdir()
    Path("notes/a.md").write_text("# A")
    assert main(["add", "./notes", "--dry-run"]) == 0
    assert [each.name for each in tmp_path.iterdir()] == ["notes"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_in_a_terminal_it_asks_for_what_is_missing_and_before_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("notes")
    Path("notes/a.md").write_text("# A")
    for answers, code in (("files\n./notes\nHTTPS://Mine.example/\nn\n", 7), ("\n", 2)):
        monkeypatch.setattr("sys.stdin", Terminal(answers))
        assert main(["add"]) == code
        assert not Path("penstock.yaml").exists()
    asked = capsys.readouterr().err
    assert all(f"\n  {name} " in f"\n{asked}" for name in BUILT_IN)
    assert "folder (the folder, relative to penstock.yaml): " in asked
    monkeypatch.setattr("sys.stdin", Terminal("./notes\nHTTPS://Mine.example/\n\n"))
    assert main(["add"]) == 0
    assert load_settings(tmp_path).sources["mine.example"].options["folder"] == "./notes"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "project: p\n",
        "sources:\n",
        "a: 1\nsources:\n  x:\n    y: |\n      z\n",
        "sources:\n  x:\n  - 1\n# end\n",
    ],
)
def test_sources_are_added_to_whatever_is_there(text: str) -> None:
    made = with_source(text, "new", {"connector": "files", "folder": "./x"})
    assert "\n  new:" in f"\n{made}" or "new: {" in made
    assert all(line in made.splitlines() for line in text.splitlines())


def test_a_source_comes_after_the_comments_of_the_one_before_it() -> None:
    above = (
        "sources:\n  one:\n    pipeline: a:b  # x\n    # limits: {rate: 1/s}\n\n    # retry: fast\n"
    )
    below = "\n  # another\n  # two: {}\n# the end\n"
    made = with_source(above + below, "new", {"connector": "files"})
    assert made == f"{above}  new: {{connector: files}}\n{below}"


def test_a_flow_mapping_is_left_to_its_owner() -> None:
    with pytest.raises(Refused, match="write it yourself"):
        with_source("sources: {a: {pipeline: 'x:y'}}\n", "new", {"connector": "files"})


def test_what_can_not_be_added_is_refused_with_what_to_do_instead(tmp_path: Path) -> None:
    for target, problem, hint in (
        ("http://[::1", "can't be an address", None),
        ("me@acme.com", "is a mail address", "name its server: imaps://USER@imap.acme.com/INBOX"),
        ("s3://bucket", "names no table in a bucket", "s3://BUCKET/dumps/*.csv.gz"),
        ("s3://bucket/readme.txt", "names no table in a bucket", "name an object or a pattern"),
        ("ftp://acme.com/x", "is neither a folder or file that is there", "connectors: "),
    ):
        with pytest.raises(UsageError, match=problem) as caught:
            new_source.propose(tmp_path, new_source.Wish(target))
        assert hint is None or hint in str(caught.value.hint)


def test_a_mailbox_without_its_password_says_which_variable_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MAIL_PASSWORD", raising=False)
    proposal = new_source.propose(tmp_path, new_source.Wish("imaps://me@mail.example"))
    with pytest.raises(
        Refused, match="the environment variable MAIL_PASSWORD is not set"
    ) as caught:
        new_source.add(tmp_path, proposal)
    assert str(caught.value.message).startswith("sources.mail.password: ")
    assert caught.value.hint == (
        "set MAIL_PASSWORD in the environment or in .env, then add it again"
    )
    assert list(tmp_path.iterdir()) == []
