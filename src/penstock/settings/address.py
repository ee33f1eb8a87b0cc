"""The store's address: a SQLite file, or a database on a Postgres server."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit

from penstock.errors import ConfigError

SQLITE = "sqlite:"
POSTGRES = ("postgresql://", "postgres://")
_SECRET_OPTIONS = ("password", "sslpassword")


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


def name_of(store: str) -> str:
    """The address for people: which file, or which server and database, and nothing secret."""
    if not store.startswith(POSTGRES):
        return store.removeprefix(SQLITE)
    url = urlsplit(store)
    options = parse_qs(url.query)
    servers = url.netloc.rpartition("@")[2] or ",".join(options.get("host", ["localhost"]))
    database = url.path.lstrip("/") or "".join(options.get("dbname", []))
    return f"postgresql://{servers}/{database}"
