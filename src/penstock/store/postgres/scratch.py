"""Schemas of scratch projects, which are dropped when they have served."""

from __future__ import annotations

import re

import psycopg
from psycopg import sql

from penstock.errors import StoreError
from penstock.store.postgres.connection import conninfo, place_of

# Whatever else is in the server, this never drops it.
_SCRATCH = re.compile(r"penstock_prove_[0-9a-f]{8}_[0-9]{1,6}")


def drop_schema(address: str, schema: str) -> None:
    """Drop a scratch project's schema, whoever is connected to it still."""
    if not _SCRATCH.fullmatch(schema):
        raise StoreError(f"the schema {schema[:60]!r} is not one of a scratch project")
    try:
        with psycopg.connect(conninfo(address), autocommit=True) as connection:
            connection.execute("SET lock_timeout = '30s'")
            connection.execute(
                sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema))
            )
    except psycopg.Error as error:
        raise StoreError(
            f"the scratch schema {schema} at {place_of(address)} could not be dropped: "
            f"{type(error).__name__}",
            f'drop it: DROP SCHEMA "{schema}" CASCADE',
        ) from None
