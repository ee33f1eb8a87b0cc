"""Every query of one database has its twin in the other, asked for by the same name with the same values;
what both say alike is written once."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import penstock
from penstock.store.queries import for_sqlite, queries, split

SOURCE = Path(penstock.__file__).parent
# A file of what only many writers need.
ONLY_POSTGRES_FILES = {"contention.sql"}
# Where one of them has another way to the same end.
ONLY_SQLITE = {
    "job.sql": {
        "last_job_id",  # Postgres has a sequence
        "claimed",  # Postgres answers with the claim itself
        "ready_heads",  # Postgres answers with what is running, too
    },
    "copy.sql": {
        "add_last_id",  # Postgres sets its sequences
        "forget_copy",  # Postgres empties all tables in one statement
    },
}
ONLY_POSTGRES = {
    "copy.sql": {"identity"},
    "job.sql": {
        "add_keys",  # in SQLite the job's own row has the constraint
        "ready_lanes",  # two queries in SQLite
    },
}
# Which values only one of them needs: {query: (SQLite's, Postgres's)}.
OTHER_VALUES = {
    "latest_events": ({"line"}, {"seen"}),  # where a follower begins: a line, or a snapshot
    "follow_events": (set(), {"seen", "upto"}),
    "kinds_behind": (set(), {"seen", "upto"}),
    "last_ids": (set(), {"tables"}),
    "succeed_if_running": ({"ends"}, {"ids", "attempt", "worker"}),  # the fence is in it
    "claim_if_queued": (set(), set()),
    "present_jobs": ({"ids"}, {"jobs"}),  # a known key is met before there is a job
    # SQLite plans by the number of rows; Postgres takes each grant's own.
    "pick": ({"limit"}, set()),
    "pick_suspects": ({"limit"}, set()),
    # What was locked is looked at again.
    "suspect_heads": (set(), {"sources"}),
    "running_counts": (set(), {"sources"}),
    "lines_to_fold": (set(), {"holes"}),  # a file has one writer at a time
    "next_due": (set(), {"after"}),
    "due": (set(), {"after"}),
}
TABLES_OF = re.compile(r"CREATE (?:TABLE|VIEW) penstock\.(\w+)")


@cache
def files(kind: str) -> dict[str, dict[str, str]]:
    """The queries of each file, without their comments."""
    found = {}
    for path in sorted((SOURCE / "store" / kind).glob("*.sql")):
        found[path.name] = {name: bare(text) for name, text in split(path.read_text("utf-8"))}
    return found


def bare(text: str) -> str:
    return re.sub(r"--[^\n]*", "", text)


@cache
def code() -> str:
    return "\n".join(path.read_text("utf-8") for path in SOURCE.rglob("*.py"))


POSTGRES = {name: bare(text) for name, text in queries("penstock.store.postgres").items()}
SQLITE = {name: bare(text) for name, text in queries("penstock.store.sqlite").items()}
BOTH = sorted(set(POSTGRES) & set(SQLITE))


def own(kind: str) -> dict[str, str]:
    return {name: text for found in files(kind).values() for name, text in found.items()}


def test_what_both_databases_say_alike_is_written_once() -> None:
    shared = own("sql")
    sqlite, postgres = own("sqlite"), own("postgres")
    alike = [name for name in set(sqlite) & set(postgres) if is_alike(sqlite[name], postgres[name])]

    assert alike == [], "these belong in store/sql"
    assert shared.keys().isdisjoint(sqlite)
    assert shared.keys().isdisjoint(postgres)


def is_alike(sqlite: str, postgres: str) -> bool:
    """But for white space, how values are named, and the schema, which a file has not."""
    respelled = re.sub(r"%\((\w+)\)s", r":\1", postgres).replace("%%", "%")
    return sqlite.split() == for_sqlite(respelled).split()


def test_both_have_the_same_files() -> None:
    assert set(files("postgres")) == set(files("sqlite")) | ONLY_POSTGRES_FILES


@pytest.mark.parametrize("file", sorted(files("sqlite")))
def test_twins_stand_in_files_of_the_same_name(file: str) -> None:
    sqlite, postgres = set(files("sqlite")[file]), set(files("postgres")[file])

    assert sqlite - postgres == ONLY_SQLITE.get(file, set())
    assert postgres - sqlite == ONLY_POSTGRES.get(file, set())


def test_twins_take_the_same_values() -> None:
    found = {}
    for name in BOTH:
        sqlite = set(re.findall(r"(?<![:\w]):([a-z_]+)", SQLITE[name]))
        postgres = set(re.findall(r"%\(([a-z_]+)\)s", POSTGRES[name]))
        if (sqlite - postgres, postgres - sqlite) != OTHER_VALUES.get(name, (set(), set())):
            found[name] = (sqlite - postgres, postgres - sqlite)

    assert found == {}


def test_exceptions_are_of_queries_that_there_are() -> None:
    assert set(OTHER_VALUES) <= set(BOTH)


def test_every_query_is_asked_for() -> None:
    known = set(re.findall(r'"(\w+)"', code()))

    assert {*POSTGRES, *SQLITE} - known == set()


def test_postgres_reads_columns_by_name() -> None:
    """A column that a later version adds must change nothing for the statements of this one."""
    whole_rows = re.compile(r"(?i)\b(?:SELECT|RETURNING)\s+(?:\w+\.)?\*")

    assert [name for name, text in POSTGRES.items() if whole_rows.search(text)] == []


def test_postgres_names_the_schema_of_every_table() -> None:
    """A pooler's session may have any search_path."""
    after = re.compile(r"(?i)\b(?:FROM|JOIN|INTO|UPDATE|TABLE|ONLY)\s+(\w+)\b(?!\s*[.(])")
    found = {name: after.findall(re.sub(r"'[^']*'", "''", text)) for name, text in POSTGRES.items()}

    assert {name: words for name, words in found.items() if tables() & set(words)} == {}


@cache
def tables() -> frozenset[str]:
    migrations = (SOURCE / "store" / "postgres" / "migrations").glob("*.sql")
    return frozenset(name for path in migrations for name in TABLES_OF.findall(path.read_text()))
