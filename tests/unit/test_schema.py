"""Migrations: what their files say of themselves, and which code may open which schema."""

from __future__ import annotations

import pytest

from penstock.errors import PenstockError, Refused, StoreError
from penstock.store.schema import (
    Migration,
    OldWorker,
    Plan,
    State,
    migrations,
    parse,
    pending,
    refuse_in_the_way,
    refuse_newer,
    refuse_unasked,
)

EXPAND = Migration(3, "0003_more", "")
CONTRACT = Migration(4, "0004_less", "", contracts=4)
PACKAGES = ("penstock.store.sqlite", "penstock.store.postgres")


def words(error: pytest.ExceptionInfo[PenstockError]) -> str:
    return f"{error.value.message} {error.value.hint}"


def test_file_says_which_code_it_is_safe_beside_and_what_it_locks() -> None:
    more = parse("0003_more", "-- expands\n-- locks: penstock.job, for a moment\nSELECT 1;")
    assert (more.number, more.effect, more.locks) == (3, "expands", "penstock.job, for a moment")
    assert not more.is_outside

    less = parse("0004_less", "-- Nobody reads it.\n-- contracts: 3\nSELECT 1;")
    assert (less.number, less.effect, less.contracts) == (4, "contracts", 3)

    slow = parse("0005_slow", "-- expands\n-- outside a transaction\nSELECT 1;")
    assert slow.is_outside


@pytest.mark.parametrize(
    "head",
    [
        "",
        "-- contracts: soon\n",
        "-- expands\n-- contracts: 3\n",
        "-- contracts: 3\n-- outside a transaction\n",
        "SELECT 0;\n-- expands\n",
    ],
)
def test_file_that_does_not_say_it_is_refused(head: str) -> None:
    with pytest.raises(ValueError, match=r"0003_odd\.sql"):
        parse("0003_odd", f"{head}SELECT 1;")


def test_statements_are_split_where_they_end_and_nowhere_else() -> None:
    text = """-- expands
-- and more; of course
CREATE TABLE a (b text DEFAULT ';'); -- not here;
CREATE FUNCTION f() AS $$ BEGIN; END; $$;
SELECT 'it''s; fine';
"""
    assert parse("0003_x", text).statements() == [
        "-- expands\n-- and more; of course\nCREATE TABLE a (b text DEFAULT ';')",
        "-- not here;\nCREATE FUNCTION f() AS $$ BEGIN; END; $$",
        "SELECT 'it''s; fine'",
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_migration_of_ours_can_be_read_and_ends_its_last_statement(package: str) -> None:
    for each in migrations(package):
        assert each.text.rstrip().endswith(";")
        assert each.statements()


def test_every_migration_on_postgres_says_what_it_locks() -> None:
    assert all(each.locks for each in migrations("penstock.store.postgres"))


def test_no_migration_on_sqlite_leaves_its_transaction() -> None:
    assert not any(each.is_outside for each in migrations("penstock.store.sqlite"))


def test_both_stores_have_the_same_schema_number() -> None:
    first, second = (migrations(package)[-1].number for package in PACKAGES)
    assert first == second


@pytest.mark.parametrize(
    ("number", "contract", "known", "is_welcome"),
    [
        (2, 0, 2, True),
        (3, 0, 2, True),
        (4, 2, 2, True),
        (4, 3, 2, False),
        (4, 4, 3, False),
        (4, 4, 4, True),
    ],
)
def test_code_opens_what_it_does_not_know_until_what_it_knows_is_gone(
    number: int, contract: int, known: int, is_welcome: bool
) -> None:
    if is_welcome:
        refuse_newer("here", State(number, contract), known)
        return
    with pytest.raises(StoreError, match=f"here has schema {number}, .* knows up to {known}"):
        refuse_newer("here", State(number, contract), known)


def test_nothing_that_contracts_is_done_unasked_but_in_an_empty_database() -> None:
    refuse_unasked("here", [EXPAND], State(2))
    refuse_unasked("here", [EXPAND, CONTRACT], State())
    with pytest.raises(StoreError) as refusal:
        refuse_unasked("here", [EXPAND, CONTRACT], State(2))
    assert "penstock db migrate" in words(refusal)


def test_pending_is_what_comes_after() -> None:
    assert pending([EXPAND, CONTRACT], State(3)) == [CONTRACT]


def test_plan_tells_who_is_in_the_way_of_what() -> None:
    old = [OldWorker("a", "alpha", "0.1.0", 2), OldWorker("b", "beta", "0.2.0", 3)]
    late = Migration(5, "0005_late", "", contracts=3)
    plan = Plan(State(2), [EXPAND, late, CONTRACT], old)
    assert [len(plan.in_the_way(each)) for each in plan.pending] == [0, 1, 2]
    with pytest.raises(Refused) as refusal:
        refuse_in_the_way(CONTRACT, plan.in_the_way(CONTRACT))
    assert "alpha (Penstock 0.1.0) needs and 1 more" in words(refusal)
