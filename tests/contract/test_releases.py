"""Releases in the store: what an environment runs moves in one piece, and what was changed is refused."""

from __future__ import annotations

import pytest

from penstock.errors import Refused, StoreError
from penstock.releases.manifest import Manifest, hash_of
from penstock.store.releases import ReleaseActRow, ReleaseMove, ReleaseVerb, new_release
from tests.contract.scenes import World

BINARY = b"\xff\x00\xfe"


@pytest.fixture
def world(world: World) -> World:
    """A database that a project has used."""
    world.store.claim_for("shop", "here", "there")
    return world


def move_to(
    world: World,
    code: str,
    verb: ReleaseVerb = "create",
    seen: str | None = None,
    approvals: int = 0,
) -> ReleaseMove:
    """A move to a release with this code."""
    contents = {hash_of(each): each for each in (code.encode(), BINARY, b"{}")}
    manifest = Manifest(
        project="shop",
        penstock="1",
        configuration={"staging": hash_of(b"{}")},
        files={"steps.py": hash_of(code.encode()), "model.bin": hash_of(BINARY)},
    )
    row = new_release(manifest, "staging", "ann", "why", world.store.now())
    return ReleaseMove(
        verb=verb,
        release=row,
        contents=contents,
        seen=seen,
        actor="ann",
        reason="why",
        approvals_needed=approvals,
    )


def moved(world: World, move: ReleaseMove) -> ReleaseActRow:
    found = world.store.releases.move(move)
    assert found is not None
    return found


def test_an_environment_runs_the_release_that_came_last_and_remembers_the_others(
    world: World,
) -> None:
    releases = world.store.releases
    first, second = move_to(world, "a = 1"), move_to(world, "a = 2")
    assert releases.running() is None

    moved(world, first)
    assert releases.move(first) is None
    act = moved(world, move_to(world, "a = 2", seen=first.release.id))

    assert releases.running() == second.release.id
    assert (act.before_id, act.actor, act.reason) == (first.release.id, "ann", "why")
    assert [each.release_id for each in releases.acts(9)] == [
        second.release.id,
        first.release.id,
    ]
    found = releases.get(first.release.id)
    assert found == first.release
    assert releases.contents(found) == first.contents
    assert releases.like(first.release.id[:10]) == [first.release.id]
    told = [row.kind for row in world.store.journal.events(kind="release")]
    assert told == ["release.created", "release.created"]


def test_who_has_seen_another_release_moves_nothing(world: World) -> None:
    first = move_to(world, "a = 1")
    moved(world, first)

    with pytest.raises(Refused, match="just now"):
        world.store.releases.move(move_to(world, "a = 2", seen=None))

    assert world.store.releases.running() == first.release.id
    assert len(world.store.releases.acts(9)) == 1


def test_approvals_are_of_different_people_and_are_spent(world: World) -> None:
    releases = world.store.releases
    move = move_to(world, "a = 1", "promote", approvals=2)
    assert releases.approve(move.release.id, "ann", "fine")
    assert not releases.approve(move.release.id, "ann", "again")

    with pytest.raises(Refused, match="1 of the 2 approvals"):
        releases.move(move)
    assert releases.running() is None
    assert releases.get(move.release.id) is None

    releases.approve(move.release.id, "bob", "seen")
    act = moved(world, move)
    assert [each.actor for each in act.approvals] == ["ann", "bob"]
    assert releases.acts(1) == [act]
    assert releases.approvals(move.release.id) == []


def test_what_somebody_changed_behind_our_back_is_refused(world: World) -> None:
    releases = world.store.releases
    move = move_to(world, "a = 1")
    moved(world, move)
    row = releases.get(move.release.id)
    assert row is not None

    world.tamper("UPDATE release_content SET content = 'a = 666' WHERE content = 'a = 1'")
    with pytest.raises(StoreError, match="not what it was made as"):
        releases.contents(row)
    world.tamper("DELETE FROM release_content WHERE encoding = 'base64'")
    with pytest.raises(StoreError, match="is missing"):
        releases.contents(row, [hash_of(BINARY)])
    world.tamper("UPDATE release SET manifest = replace(manifest, 'steps.py', 'other.py')")
    with pytest.raises(StoreError, match="not what it was made as"):
        releases.get(move.release.id)


def test_a_database_belongs_to_the_environment_that_used_it_first(world: World) -> None:
    is_apart = "production".__eq__
    world.store.claim_environment("production", "here", is_apart)
    world.store.claim_environment("production", "here", is_apart)

    with pytest.raises(Refused, match="here belongs to the environment production, and this is st"):
        world.store.claim_environment("staging", "here", is_apart)


def test_an_overlay_that_is_not_apart_is_another_configuration_on_the_same_data(
    world: World,
) -> None:
    is_apart = "production".__eq__
    world.store.claim_environment("local", "here", is_apart)
    world.store.claim_environment("next", "here", is_apart)

    with pytest.raises(Refused, match="here belongs to the environment local, and this is produc"):
        world.store.claim_environment("production", "here", is_apart)
