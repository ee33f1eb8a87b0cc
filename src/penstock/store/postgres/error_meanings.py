"""What errors of the driver and the server mean for an operator."""

from __future__ import annotations

import re

import psycopg
from psycopg import errors as e

from penstock.errors import (
    Remedy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreUnreachable,
)
from penstock.store.postgres.connection import LOCK_S, STATEMENT_S

# After these the session is not to be trusted with another statement.
WORN_OUT = (
    e.OperationalError,
    e.InterfaceError,
    e.FeatureNotSupported,  # a plan made before a migration
    e.InvalidSqlStatementName,
    e.DuplicatePreparedStatement,
    e.ActiveSqlTransaction,
    e.InFailedSqlTransaction,
    e.ReadOnlySqlTransaction,
)
UNREACHABLE = (
    e.AdminShutdown, e.CrashShutdown, e.CannotConnectNow, e.TooManyConnections,
    e.ConnectionException, e.IdleInTransactionSessionTimeout,
)  # fmt: skip
# What servers and poolers answer whom they do not let in. The driver passes on their words and no code.
REFUSED = re.compile(
    r"password authentication failed|authentication failed|no password supplied|no pg_hba\.conf entry"
    r"|permission denied for database|is not permitted to log in|no such user"
    r"|(?P<missing>(role|user|database) \"[^\"]*\" does not exist|no such database)"
    r"|server requested a cleartext password|server does not support SSL|certificate verify failed"
    r"|invalid sslmode",
    re.IGNORECASE,
)
PREAMBLE = re.compile(r"^connection failed: connection to server at .*? failed: (FATAL: +)?")


def meaning(error: psycopg.Error, place: str, is_gone: bool) -> StoreError:
    """What an error of the driver or the server means for an operator."""
    said = PREAMBLE.sub("", " ".join(str(error).split()))[:300]
    if error.sqlstate is None and (refused := REFUSED.search(said)):
        hint = "create it, or correct its name" if refused["missing"] else "check user and password"
        if "cleartext password" in said:
            hint = "the password would be sent unencrypted: add ?sslmode=verify-full&sslrootcert=system"
        return StoreError(f"{place} refused the login ({said})", f"{hint} in `store:`")
    match error:
        case e.DiskFull():
            return StoreFull(
                f"no space left at {place}", "free some space; work resumes automatically"
            )
        case e.DataCorrupted() | e.IndexCorrupted():
            return StoreCorrupt(
                f"{place} is damaged ({said})", "stop Penstock and restore a backup"
            )
        case e.InsufficientPrivilege():
            return StoreError(f"not allowed at {place}: {said}", "grant it to the user in `store:`")
        case e.ReadOnlySqlTransaction():
            return StoreUnreachable(
                f"{place} does not accept writes: it is a standby or read-only",
                "name the primary server in `store:`",
            )
        # As good as away: whoever works waits and tries again, and none of it is given up.
        case e.DeadlockDetected() | e.SerializationFailure():
            return StoreUnreachable(f"deadlock or serialization failure at {place}", "try again")
        case e.LockNotAvailable():
            return StoreLocked(f"waited {LOCK_S:.0f} s for a lock at {place}", "try again")
        case e.QueryCanceled():
            return StoreUnreachable(f"{place} took longer than {STATEMENT_S:.0f} s", "try again")
        case e.UndefinedTable() | e.UndefinedColumn() | e.InvalidSchemaName():
            return StoreError(
                f"{place} has another schema than this Penstock needs ({said})",
                code="schema_differs",
                remedy=Remedy("store.migrate"),
            )
    if is_gone or isinstance(error, (UNREACHABLE, psycopg.OperationalError)):
        return StoreUnreachable(
            f"can't reach the database at {place} ({said})",
            "check that the server is running; work continues once it is reachable",
        )
    return StoreError(f"{place}: {said}")
