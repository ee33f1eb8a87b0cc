"""The SQL interface in a server's database: views in a schema of their own, roles, and row-level security."""

from __future__ import annotations

import re
from collections.abc import Sequence

from psycopg import sql

from penstock.errors import Refused
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.postgres.migrate import PACKAGE
from penstock.store.sql_interface import VIEWS, Installed, digest_of, parts

READER, OPERATOR = "penstock_reader", "penstock_operator"
_TARGET = re.compile(r"\bpenstock_sql\.")
_MARK = re.compile(r"Penstock SQL interface of schema (\w+), version (\w+)")
_FUNCTION = re.compile(r"CREATE FUNCTION penstock_sql\.(\w+)")
FIND = """
SELECT n.nspname, obj_description(c.oid, 'pg_class')
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relname = 'ingestion_jobs' AND c.relkind = 'v'
"""
TRIGGERS = """
SELECT count(*) FROM pg_trigger AS t
JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = {schema} AND t.tgname LIKE 'penstock_%' AND t.tgenabled <> 'D'
"""
SECURED = """
SELECT count(*) FROM pg_class
WHERE oid IN ('penstock.sql_source'::regclass, 'penstock.inbox'::regclass) AND relrowsecurity
"""
TAKEN = """
SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = {schema} AND c.relname = ANY ({names}) ORDER BY 1
"""
ROLE = """
DO $role$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = {name}) THEN
    BEGIN
      EXECUTE format('CREATE ROLE %I NOLOGIN', {name});
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END;
  END IF;
END $role$
"""
KNOWN_SCHEMA = "SELECT 1 FROM pg_namespace WHERE nspname = {schema}"
NO_ROLES = (
    "the user in `store:` may not create roles, so nobody else can use the views yet; have an administrator "
    f"run: CREATE ROLE {READER} NOLOGIN; CREATE ROLE {OPERATOR} NOLOGIN; then install again"
)
MAY_CREATE = "SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user"
KNOWN_ROLES = (
    "SELECT count(*) FROM pg_roles WHERE rolname IN ('penstock_reader', 'penstock_operator')"
)
# What the database gives to everybody by itself, or to whom an administrator has chosen, is taken back first.
CLOSE = """
DO $close$
DECLARE
  taken text;
BEGIN
  FOR taken IN
    SELECT format('REVOKE ALL ON TABLE %s FROM %s', c.oid::regclass,
      CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace, aclexplode(c.relacl) AS a
    WHERE n.nspname = {schema} AND c.relname = ANY ({views}) AND a.grantee <> c.relowner
    UNION
    SELECT format('REVOKE ALL ON FUNCTION %s FROM %s', f.oid::regprocedure,
      CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END)
    FROM pg_proc AS f JOIN pg_namespace AS n ON n.oid = f.pronamespace,
      aclexplode(coalesce(f.proacl, acldefault('f', f.proowner))) AS a
    WHERE n.nspname = {schema} AND f.proname = ANY ({functions}) AND a.grantee <> f.proowner
  LOOP
    EXECUTE taken;
  END LOOP;
END $close$
"""
# It says only what the role that asks may see; policies and views ask it with that role's rights.
FOR_ALL = "GRANT EXECUTE ON FUNCTION {schema}.penstock_sees(text) TO PUBLIC"
GRANTS = """
GRANT USAGE ON SCHEMA {schema} TO penstock_reader, penstock_operator;
GRANT SELECT ON {views} TO penstock_reader, penstock_operator;
GRANT INSERT ON {schema}.ingestion_jobs TO penstock_operator;
GRANT UPDATE ON {views} TO penstock_operator;
GRANT EXECUTE ON FUNCTION {schema}.penstock_problems(interval) TO penstock_reader, penstock_operator;
GRANT EXECUTE ON FUNCTION {schema}.penstock_watchdog(interval) TO penstock_operator;
GRANT EXECUTE ON FUNCTION {schema}.penstock_retry_failed(integer, interval) TO penstock_operator;
"""
DROP_POLICIES = """
DROP POLICY IF EXISTS penstock_sees ON penstock.inbox;
DROP POLICY IF EXISTS penstock_sees ON penstock.sql_source;
ALTER TABLE penstock.inbox DISABLE ROW LEVEL SECURITY;
ALTER TABLE penstock.sql_source DISABLE ROW LEVEL SECURITY;
"""


def _text() -> str:
    found = parts(PACKAGE)
    return "\n".join(found[name] for name in ("functions", "views", "triggers"))


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string(None)


def _literal(text: str) -> str:
    return sql.Literal(text).as_string(None)


def _array(names: Sequence[str]) -> str:
    return sql.Literal(list(names)).as_string(None)


class PostgresInterface:
    """The dialect of Postgres."""

    def __init__(self, db: PostgresDatabase) -> None:
        self._db = db

    def installed(self) -> Installed | None:
        for schema, mark in self._db.run_sql(FIND):
            found = _MARK.fullmatch(mark or "")
            if found and found[1] == self._db.namespace:
                return Installed(schema, tuple(self._problems(schema, found[2])))
        return None

    def _problems(self, schema: str, version: str) -> list[str]:
        problems = []
        if version != digest_of(_text()):
            problems.append("the views are of another version of Penstock")
        names = {name for (name,) in self._taken(schema)}
        problems += [f"{schema}.{name} is missing" for name in VIEWS if name not in names]
        [(triggers,)] = self._db.run_sql(TRIGGERS.format(schema=_literal(schema)))
        if triggers < _text().count("CREATE TRIGGER"):
            problems.append("a trigger is missing or disabled")
        [(secured,)] = self._db.run_sql(SECURED)
        if secured < 2:
            problems.append("row-level security is off")
        return problems

    def refuse(self, schema: str) -> None:
        taken = self._taken(schema)
        if taken:
            raise Refused(
                f"{schema}.{taken[0][0]} is there already, and is not Penstock's",
                "rename it, or choose another --schema",
                code="name_taken",
            )

    def _taken(self, schema: str) -> list[tuple[str]]:
        text = TAKEN.format(schema=_literal(schema), names=_array(VIEWS))
        return [(row[0],) for row in self._db.run_sql(text)]

    def make(self, schema: str) -> Sequence[str]:
        if not self._db.run_sql(KNOWN_SCHEMA.format(schema=_literal(schema))):
            self._db.run_sql(f"CREATE SCHEMA {_quoted(schema)}")
        self._db.run_sql(_TARGET.sub(lambda _: f"{_quoted(schema)}.", _text()))
        mark = (
            f"Penstock SQL interface of schema {self._db.namespace}, version {digest_of(_text())}"
        )
        self._db.run_sql(f"COMMENT ON VIEW {_quoted(schema)}.ingestion_jobs IS {_literal(mark)}")
        self._close(schema)
        return self._grant(schema)

    def _close(self, schema: str) -> None:
        """Nobody but the owner may use any of it, until it is granted."""
        ours = {"views": _array(VIEWS), "functions": _array(_FUNCTION.findall(_text()))}
        self._db.run_sql(CLOSE.format(schema=_literal(schema), **ours))
        self._db.run_sql(FOR_ALL.format(schema=_quoted(schema)))

    def _grant(self, schema: str) -> Sequence[str]:
        [(may,)] = self._db.run_sql(MAY_CREATE)
        if may:
            for role in (READER, OPERATOR):
                self._db.run_sql(ROLE.format(name=_literal(role)))
        [(known,)] = self._db.run_sql(KNOWN_ROLES)
        if known < 2:
            return (NO_ROLES,)
        views = ", ".join(f"{_quoted(schema)}.{name}" for name in VIEWS)
        self._db.run_sql(GRANTS.format(schema=_quoted(schema), views=views))
        return ()

    def drop(self, schema: str) -> None:
        """Without CASCADE: what others have built on the views is theirs, and stands in the way."""
        self._db.run_sql(DROP_POLICIES)
        for name in VIEWS:
            self._db.run_sql(f"DROP VIEW IF EXISTS {_quoted(schema)}.{name}")
        for name in reversed(_FUNCTION.findall(_text())):
            self._db.run_sql(f"DROP FUNCTION IF EXISTS {_quoted(schema)}.{name}")
