"""What a database's schema is, in words that are the same for the same schema."""

from __future__ import annotations

from typing import Any

import psycopg

DEFINITIONS = {
    "columns": """
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
          a.attcollation::regcollation::text, pg_get_expr(d.adbin, d.adrelid)
        FROM pg_class AS c
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relkind IN ('r', 'v', 'S') AND c.relnamespace = 'penstock'::regnamespace""",
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'penstock'::regnamespace""",
    "indexes": """
        SELECT pg_get_indexdef(i.indexrelid), i.indisvalid
        FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
        WHERE c.relnamespace = 'penstock'::regnamespace""",
    "views": "SELECT viewname, definition FROM pg_views WHERE schemaname = 'penstock'",
    "options": """
        SELECT relname, reloptions::text FROM pg_class WHERE relnamespace = 'penstock'::regnamespace""",
    "migrations": "SELECT number, name, contracts FROM penstock.migration",
}


def definitions(url: str) -> dict[str, list[tuple[Any, ...]]]:
    with psycopg.connect(url, autocommit=True) as connection:
        return {
            what: sorted(connection.execute(query.encode()).fetchall(), key=repr)
            for what, query in DEFINITIONS.items()
        }
