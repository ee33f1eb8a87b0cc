"""What a role must be allowed to work here, and which of it one lacks.

A role that works needs far less than the one that owns the schema and migrates it.
"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from penstock.errors import Remedy, StoreError
from penstock.store.postgres.connection import Connection

# (kind, name) of each thing that the present role may not use as it must.
LACKING = """
SELECT 'SCHEMA', nspname FROM pg_namespace
WHERE nspname = %(schema)s AND NOT has_schema_privilege(oid, 'USAGE')
UNION ALL
SELECT CASE relkind WHEN 'S' THEN 'SEQUENCES' ELSE 'TABLES' END, relname FROM pg_class
WHERE relnamespace = to_regnamespace(%(schema)s) AND CASE relkind
  WHEN 'r' THEN NOT (has_table_privilege(oid, 'SELECT') AND (relname = 'migration'
    OR has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'UPDATE')
    AND has_table_privilege(oid, 'DELETE')))
  WHEN 'v' THEN NOT has_table_privilege(oid, 'SELECT')
  WHEN 'S' THEN NOT (has_sequence_privilege(oid, 'USAGE') AND has_sequence_privilege(oid, 'SELECT'))
  ELSE false END
ORDER BY 1, 2
"""
GRANTS = {
    "SCHEMA": "GRANT USAGE ON SCHEMA {schema} TO {role};",
    "TABLES": "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};",
    "SEQUENCES": "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role};",
}
# For what later versions add. Holds for what the role makes that has said it: the schema's owner.
LATER = (
    "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role};",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT USAGE, SELECT ON SEQUENCES TO {role};",
)


def grants(schema: str, role: str) -> list[str]:
    """The statements that let a role work in this schema, and nothing more; for its owner to run."""
    return [_statement(text, schema, role) for text in (*GRANTS.values(), *LATER)]


def refuse_lacking(connection: Connection, place: str, schema: str) -> None:
    """Refuse at the door a role that would fail in the middle of something."""
    lacking = connection.execute(LACKING, {"schema": schema}).fetchall()
    if lacking:
        [(role,)] = connection.execute("SELECT current_user").fetchall()
        raise _refusal(lacking, place, schema, role)


def _refusal(lacking: Sequence[tuple[str, str]], place: str, schema: str, role: str) -> StoreError:
    kinds = list(dict.fromkeys(kind for kind, _ in lacking))
    wanted = " ".join(_statement(GRANTS[kind], schema, role) for kind in kinds)
    more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
    return StoreError(
        f"the user {role} may not use {_noun(lacking[0])}{more} at {place}",
        f"as the owner of the schema: {wanted}",
        code="privileges_missing",
        remedy=Remedy("store.grants", role),
    )


def _noun(thing: tuple[str, str]) -> str:
    kind, name = thing
    return f"the {kind.lower().removesuffix('s')} {name}"


def _statement(text: str, schema: str, role: str) -> str:
    return text.format(schema=_quoted(schema), role=_quoted(role))


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string(None)
