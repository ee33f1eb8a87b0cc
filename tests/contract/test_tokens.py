"""Tokens: who has one is known, its text is nowhere, and an ended one lets nobody in."""

from __future__ import annotations

import pytest

from penstock.store.tables import TABLES
from penstock.store.tokens import TokenRow
from penstock.store.upkeep import Keep
from tests.contract.scenes import World

DAY_S = 86_400.0


def made(
    world: World, name: str = "ci", expires_in_s: float | None = DAY_S
) -> tuple[str, TokenRow]:
    found = world.store.tokens.create(name, "operator", expires_in_s, "ann", "for the pipeline")
    assert found is not None
    return found


def test_a_token_is_found_by_its_whole_text_alone(world: World) -> None:
    text, row = made(world)
    other, _ = made(world, "other")

    assert world.store.tokens.find(text) == row
    swapped = row.prefix + other[len(row.prefix) :]
    for wrong in ("", row.prefix, text[:-1], f"{text}x", text.upper(), swapped, "\x00", "\udc80"):
        assert world.store.tokens.find(wrong) is None, wrong
    assert world.store.tokens.find("x" * 1_000_000) is None


def test_the_text_of_a_token_is_not_in_the_database(world: World) -> None:
    text, row = made(world)
    secret = text.removeprefix(row.prefix)
    [table] = [each for each in TABLES if each.name == "token"]
    stored = repr(world.store._db.rows("token_of_prefix", prefix=row.prefix))
    events = repr(world.store.journal.events(kind="token"))

    assert len(secret) >= 43
    assert secret not in stored + events
    assert {column.name for column in table.columns}.isdisjoint({"text", "secret"})


def test_a_name_is_free_again_when_its_token_was_revoked(world: World) -> None:
    text, row = made(world)
    assert world.store.tokens.create("ci", "admin", None, "eve", "") is None

    assert world.store.tokens.revoke(row, "bob", "it leaked")
    assert not world.store.tokens.revoke(row, "bob", "again")
    found = world.store.tokens.find(text)
    assert found is not None
    assert found.state(world.clock.now()) == "revoked"
    assert world.store.tokens.of_name("ci") == found
    _, fresh = made(world)
    assert world.store.tokens.of_name("ci") == fresh
    told = [(row.kind, row.actor, row.detail) for row in world.store.journal.events(kind="token")]
    assert told == [
        ("token.created", "ann", "ci (operator): for the pipeline"),
        ("token.revoked", "bob", "ci (operator): it leaked"),
        ("token.created", "ann", "ci (operator): for the pipeline"),
    ]


@pytest.mark.parametrize("name", ["expired", "revoked"])
def test_retention_drops_tokens_that_ended_long_ago(world: World, name: str) -> None:
    _, row = made(world, name, DAY_S if name == "expired" else None)
    _, endless = made(world, "endless", None)
    if name == "revoked":
        world.store.tokens.revoke(row, "ann", "")
    world.clock.advance(DAY_S)
    assert row.state(world.clock.now()) == ("expired" if name == "expired" else "valid")

    world.clock.advance(900)
    while world.store.upkeep.prune(Keep(None, 1000.0, None, None)):
        pass
    kept = [each.id for each in world.store.tokens.newest(9)]
    assert kept == ([endless.id, row.id] if name == "expired" else [endless.id])
    world.clock.advance(200)
    while world.store.upkeep.prune(Keep(None, 1000.0, None, None)):
        pass
    assert [each.id for each in world.store.tokens.newest(9)] == [endless.id]


def test_the_last_use_is_noted_and_never_goes_back(world: World) -> None:
    _, row = made(world)
    world.clock.advance(60)
    world.store.tokens.note_used(row.id)
    found = world.store.tokens.get(row.id)
    assert found is not None
    assert found.used_at == row.created_at + 60
    assert world.store.tokens.newest(9, row.id) == []
