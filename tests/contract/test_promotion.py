"""Promotion: exactly what was tested, whole or not at all, as the policy asks, and without secrets."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import Project
from penstock.app.guard import confirming, refuse_unconfirmed
from penstock.cli import exits, main
from penstock.errors import PenstockError, Refused
from penstock.gates.loaded import Loaded
from penstock.project.release_folder import release_folder, release_settings
from tests.contract.scenes import POSTGRES, SQLITE, StoreKind

SECRET = "sk-4f9a0c7e1b2d3f4a5b6c"
CODE = """
from penstock import Pipeline

things = Pipeline("things")


@things.step(unit="run")
def begin(ctx):
    from promoted_words import WORD

    ctx.save("thing", key=WORD, data={})
"""
BASE = """
project: shop
store: sqlite:local.db
sources:
  acme.com: {pipeline: "promoted_steps:things", params: {api_key: "${SHOP_KEY}"}}
"""
DIES = """
import os, signal, sys
from penstock import Project
from penstock.store.ledger import Ledger
Ledger.write = lambda self: os.kill(os.getpid(), signal.SIGKILL)
Project.open(sys.argv[1], "production").releases.promote("staging", reason="dies", actor="ann")
"""


@pytest.fixture(
    params=[(SQLITE, SQLITE), (SQLITE, POSTGRES), (POSTGRES, POSTGRES)],
    ids=["sqlite", "sqlite to postgres", "postgres"],
)
def folder(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A project with staging and production; on a server, each in a schema of its own."""
    kinds: tuple[StoreKind, StoreKind] = request.param
    stores = {}
    for name, kind in zip(("staging", "production"), kinds, strict=True):
        stores[name] = f"sqlite:{name}.db"
        if kind is POSTGRES:
            url = request.getfixturevalue("schema_database")
            stores[name] = f"{url}{'&' if '?' in url else '?'}schema=the_{name}"
    (tmp_path / "promoted_steps.py").write_text(CODE)
    (tmp_path / "promoted_words.py").write_text("WORD = 'a'\n")
    (tmp_path / "penstock.yaml").write_text(BASE)
    for name, store in stores.items():
        (tmp_path / f"penstock.{name}.yaml").write_text(f'store: "{store}"\n')
    monkeypatch.setenv("SHOP_KEY", SECRET)
    yield tmp_path
    for module in ("promoted_steps", "promoted_words"):
        sys.modules.pop(module, None)


def opened(folder: Path, environment: str) -> Project:
    return Project.open(folder, environment)


def created(folder: Path, word: str = "a") -> str:
    (folder / "promoted_words.py").write_text(f"WORD = '{word}'\n")
    with opened(folder, "staging") as staging:
        return staging.releases.create(actor="ann", reason="new").release


def test_production_runs_what_staging_ran_and_goes_back(folder: Path) -> None:
    first = created(folder)
    with opened(folder, "production") as production:
        moved = production.releases.promote("staging", actor="bob", reason="tested")
        again = production.releases.promote("staging", actor="bob", reason="twice")
        second = created(folder, "b")
        assert (moved.release, moved.is_new, again.is_new) == (first, True, False)
        with pytest.raises(Refused, match="the release of staging is"):
            production.releases.promote("staging", first, actor="bob", reason="older")
        production.releases.promote("staging", actor="bob", reason="tested")

        assert production.releases.running().release == second
        back = production.releases.rollback(actor="eve", reason="wrong")
        assert (back.release, back.before) == (first, second)
        with pytest.raises(Refused, match="before this one"):
            production.releases.rollback(actor="eve", reason="further")
        acts = [(each.act, each.actor) for each in production.releases.each()]
        assert acts == [("rollback", "eve"), ("promote", "bob"), ("promote", "bob")]
        kinds = [row.kind for row in production.connection.journal.events(kind="release")]
        assert kinds == ["release.promoted", "release.promoted", "release.rolled_back"]


def test_a_promotion_that_dies_in_the_middle_has_done_nothing(folder: Path) -> None:
    release = created(folder)
    with opened(folder, "production") as production:
        assert production.releases.running().release is None

    died = subprocess.run([sys.executable, "-c", DIES, str(folder)], env=os.environ, check=False)

    assert died.returncode == -9
    with opened(folder, "production") as production:
        assert production.releases.running().release is None
        assert production.connection.releases.get(release) is None
        assert list(production.releases.each()) == []
        assert production.releases.promote("staging", actor="ann", reason="again").is_new


def test_a_worker_that_runs_something_else_was_testing_something_else(folder: Path) -> None:
    created(folder)
    with opened(folder, "staging") as staging, opened(folder, "production") as production:
        staging.connection.workers.register("w", "far", 7, "1")
        staging.connection.workers.announce("w", Loaded(runs="another"), 7)
        with pytest.raises(Refused, match="a worker of staging on far"):
            production.releases.promote("staging", actor="ann", reason="why")
        [other] = staging.releases.running().others
        assert (other.worker, other.host) == ("w", "far")

        staging.connection.workers.announce("w", staging.loaded(), 7)
        assert production.releases.promote("staging", actor="ann", reason="why").is_new


def test_a_policy_asks_for_people_and_for_a_way(folder: Path) -> None:
    policy = "promotion: {production: {approvals: 2, after: staging}}\n"
    (folder / "penstock.yaml").write_text(BASE + policy)
    release = created(folder)
    with opened(folder, "production") as production:
        releases = production.releases
        with pytest.raises(Refused, match="takes releases from staging"):
            releases.create(actor="ann", reason="directly")
        with pytest.raises(Refused, match="from staging only"):
            releases.promote("local", actor="ann", reason="round it")
        assert releases.approve(release[:12], actor="ann", reason="fine").is_new
        assert not releases.approve(release, actor="ann", reason="again").is_new
        with pytest.raises(Refused, match="has 1 of the 2 approvals"):
            releases.promote("staging", actor="ann", reason="early")
        releases.approve(release, actor="bob", reason="fine")
        moved = releases.promote("staging", actor="ann", reason="now")
        assert moved.approved_by == ["ann", "bob"]

    (folder / "penstock.yaml").write_text(BASE)  # a checkout without the policy
    created(folder, "b")
    with opened(folder, "production") as production, pytest.raises(Refused, match="has 0 of the 2"):
        production.releases.promote("staging", actor="ann", reason="policy away")


def test_no_secret_is_in_a_release_nor_where_it_is_stored(folder: Path) -> None:
    own = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    (folder / "penstock.yaml").write_text(
        BASE + f"hooks: [{{url: 'http://127.0.0.1/', secret: {own}}}]\n"
    )
    with opened(folder, "staging") as staging:
        made = staging.releases.create(actor="ann", reason="new")
        row = staging.connection.releases.get(made.release)
        assert row is not None
        contents = staging.connection.releases.contents(row).values()
        view = repr(staging.releases.get().as_json())
    assert any("hooks" in note for note in made.notes)
    for secret in (SECRET, own):
        assert secret not in view
        assert not any(secret.encode() in each for each in contents)
        for file in folder.glob("staging.db*"):
            assert secret.encode() not in file.read_bytes()

    (folder / "promoted_words.py").write_text(f"WORD = '{SECRET}'\n")
    with opened(folder, "staging") as staging, pytest.raises(PenstockError, match="SHOP_KEY"):
        staging.releases.create(actor="ann", reason="leaks")


def test_what_only_sounds_like_a_secret_is_in_a_release(folder: Path) -> None:
    """Else a promoted source would wait for no signal any more."""
    schedules = "[{name: a, signal: [gap, go]}, {name: b, session: {calendar: XNYS, at: open}}]"
    source = (
        f"pipeline: 'promoted_steps:things', schedule: {schedules}, params: {{session: {SECRET}}}"
    )
    (folder / "penstock.yaml").write_text(f"{BASE}  waits: {{{source}}}\n")
    with opened(folder, "staging") as staging:
        made = staging.releases.create(actor="ann", reason="new")
        settings = release_settings(staging, made.release)

    assert [note.partition(":")[2] for note in made.notes] == [
        " sources.waits.params.session: a secret, left out"
    ]
    waits = settings.sources["waits"]
    assert waits.params == {"session": "***"}
    assert [each.signals for each in waits.schedules] == [("gap", "go"), ()]


def test_a_release_becomes_a_folder_whose_code_loads(folder: Path) -> None:
    release = created(folder)
    (folder / "promoted_words.py").write_text("WORD = 'other'\n")
    with opened(folder, "staging") as staging:
        place = release_folder(staging, release)
        assert (place / "promoted_words.py").read_text() == "WORD = 'a'\n"
        (place / "promoted_words.py").write_text("WORD = 'tampered'\n")
        settings = release_settings(staging, release)

    assert (place / "promoted_words.py").read_text() == "WORD = 'a'\n"
    assert settings.root == place
    assert settings.sources["acme.com"].params == {"api_key": SECRET}
    with Project(settings) as of_release:
        assert of_release.releases.running().release == release
        sys.modules.pop("promoted_steps", None)
        assert of_release.graph(settings.sources["acme.com"]).stage_names == ("begin",)


def test_production_asks_for_its_name(folder: Path) -> None:
    with opened(folder, "production") as production, opened(folder, "staging") as staging:
        refuse_unconfirmed(staging, "runs.undo")
        refuse_unconfirmed(production, "runs.pause")
        for typed in ("", "staging", "Production"):
            with confirming(typed), pytest.raises(Refused, match="this is production"):
                refuse_unconfirmed(production, "runs.undo")
        with confirming("production"):
            refuse_unconfirmed(production, "runs.undo")


def test_a_release_is_fetched_to_be_tried_and_nothing_runs_it_by_that(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "penstock.yaml").write_text(
        BASE + "promotion: {production: {approvals: 1, after: staging}}\n"
    )
    older, release = created(folder), created(folder, "b")
    canary = ("canary", "acme.com", "--from", "staging", "--sources", "100%", "--yes", "--json")
    production_ = ("--project", str(folder), "--env", "production")
    assert main([*production_, *canary, "--dry-run"]) == exits.REFUSED
    assert "a dry run copies nothing" in capsys.readouterr().err
    assert main([*production_, *canary]) == exits.REFUSED
    assert "has 0 of the 1 approvals" in capsys.readouterr().err
    with opened(folder, "production") as production:
        releases = production.releases
        assert (releases.running().release, list(releases.each())) == (None, [])
        assert releases.get(release[:12]).id == release
        [event] = production.connection.journal.events(kind="release")
        assert (event.kind, event.detail) == ("release.fetched", f"{release[:12]} from staging")
        with pytest.raises(Refused, match="from staging only"):
            releases.fetch("local", actor="ann")
        with pytest.raises(PenstockError, match="no release aaaaaaaa"):
            releases.fetch("staging", "aaaaaaaa", actor="ann")
        assert not releases.fetch("staging", release, actor="ann").is_new
        assert releases.fetch("staging", older[:12], actor="ann", dry_run=True).is_new
        releases.approve(release, actor="bob", reason="to be tried")
    assert main([*production_, *canary]) == exits.DONE, capsys.readouterr().err
    with opened(folder, "production") as production:
        [tried] = production.canaries.each()
        assert (tried.release, tried.state) == (release, "active")
        # What it was approved for is the promotion.
        assert [each.actor for each in production.releases.policy().approvals] == ["bob"]
        assert production.releases.promote("staging", actor="ann", reason="passed").is_new
        assert production.releases.policy().approvals == []
