"""The store's address: a SQLite file, or a database on a Postgres server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from penstock.errors import ConfigError

SQLITE = "sqlite:"
POSTGRES = ("postgresql://", "postgres://")
_SECRET_OPTIONS = ("password", "sslpassword")
# The schema of a server's database that holds the project, where the address names none.
SCHEMA = "penstock"
# Short enough to be part of other names, and nothing that would have to be quoted or escaped anywhere.
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,47}")


def parse_store(text: str) -> str:
    """The address, if it can be one. No error repeats the text: it may hold a password."""
    if text.startswith(POSTGRES):
        _refuse_broken(text)
        return text
    if not text.startswith(SQLITE) or text == SQLITE:
        raise ConfigError(
            "must be sqlite:FILE, such as sqlite:penstock.db, or postgresql://USER@HOST/DATABASE"
        )
    return text


def _refuse_broken(text: str) -> None:
    try:
        url = urlsplit(text)
    except ValueError:
        raise ConfigError("is not an address: its host can't be read") from None
    if "@" in url.path or "@" in url.query or url.fragment:
        raise ConfigError("is not an address: in a password, write @ as %40, / as %2F, # as %23")
    _refuse_schema(_schemas(url.query))


def _refuse_schema(named: list[str]) -> None:
    if len(named) > 1:
        raise ConfigError("names more than one schema")
    if named and not _SCHEMA.fullmatch(named[0]):
        raise ConfigError(
            "schema must be 1 to 48 lower-case letters, digits and underscores, and begin with no digit"
        )
    if named and (named[0].startswith("pg_") or named[0] == "information_schema"):
        raise ConfigError(f"schema can't be {named[0]}: that name belongs to Postgres")


def _schemas(query: str) -> list[str]:
    return parse_qs(query, keep_blank_values=True).get("schema", [])


def schema_of(store: str) -> str:
    """The schema that holds the project, in the database that this address names."""
    return next(iter(_schemas(urlsplit(store).query)), SCHEMA)


def without_schema(store: str) -> str:
    """The address as Postgres's own programs understand it."""
    url = urlsplit(store)
    options = [each for each in url.query.split("&") if each.partition("=")[0] != "schema"]
    # The empty host of postgresql:///name has to keep its slashes.
    rest, _, _ = store.partition("?")
    return f"{rest}?{'&'.join(options)}" if any(options) else rest


def server_of(store: str) -> tuple[str, int]:
    """The host and port in an address; ("", 0) where it names a socket file, more than one host, or none."""
    url = urlsplit(store)
    options = parse_qs(url.query)
    server = url.netloc.rpartition("@")[2]
    if "host" in options or "hostaddr" in options or "port" in options or "," in server:
        return "", 0
    host = url.hostname or ""
    return (host, url.port or 5432) if host and not host.startswith(("/", "@", "%2f")) else ("", 0)


def through_port(store: str, port: int) -> str:
    """The same server by way of a port on loopback; a certificate is still held against the host's name."""
    url = urlsplit(store)
    user, at, _ = url.netloc.rpartition("@")
    netloc = f"{user}{at}{url.hostname}:{port}"
    query = f"{url.query}&hostaddr=127.0.0.1" if url.query else "hostaddr=127.0.0.1"
    return urlunsplit(url._replace(netloc=netloc, query=query))


def is_unprotected(store: str, environ: Mapping[str, str]) -> bool:
    """Whether a server elsewhere is asked without a word on encryption: anybody between could answer."""
    if not store.startswith(POSTGRES):
        return False
    options = parse_qs(urlsplit(store).query)
    is_said = "sslmode" in options or bool(environ.get("PGSSLMODE"))
    return not is_said and any(map(_is_remote, _hosts(store, options, environ)))


def _hosts(store: str, options: Mapping[str, list[str]], environ: Mapping[str, str]) -> list[str]:
    named = options.get("hostaddr") or options.get("host")
    if named is None:
        named = [urlsplit(store).netloc.rpartition("@")[2] or environ.get("PGHOST", "")]
    return [unquote(host) for text in named for host in text.split(",")]


def _is_remote(host: str) -> bool:
    name = host.rpartition("]")[0].lstrip("[") if "]" in host else host.partition(":")[0]
    if not name or name.startswith(("/", "@")) or name.lower() == "localhost":
        return False
    try:
        return not ip_address(name).is_loopback
    except ValueError:
        return True


def secrets_in(store: str) -> set[str]:
    """The passwords that stand in an address, as they are written and as they are meant."""
    if not store.startswith(POSTGRES):
        return set()
    url = urlsplit(store)
    written = {url.netloc.rpartition("@")[0].partition(":")[2]}
    for option in url.query.split("&"):
        name, _, value = option.partition("=")
        if name in _SECRET_OPTIONS:
            written.add(value)
    return (written | {unquote(each) for each in written}) - {""}


def another_place(store: str, project: str) -> str:
    """Where a project of this name could be beside the one at this address, with nothing secret in it."""
    name = re.sub(r"[^a-z0-9]+", "_", project.lower()).strip("_") or "another"
    if not store.startswith(POSTGRES):
        return f"{SQLITE}{name}.db"
    own = f"_{name}" if name[0].isdigit() else name
    return f"postgresql://…/…?schema={own[:48]}"


def name_of(store: str) -> str:
    """The address for people: which file, or which server and database, and nothing secret."""
    if not store.startswith(POSTGRES):
        return store.removeprefix(SQLITE)
    url = urlsplit(store)
    options = parse_qs(url.query)
    servers = url.netloc.rpartition("@")[2] or ",".join(options.get("host", ["localhost"]))
    database = url.path.lstrip("/") or "".join(options.get("dbname", []))
    schema = schema_of(store)
    return f"postgresql://{servers}/{database}{'' if schema == SCHEMA else f'?schema={schema}'}"
