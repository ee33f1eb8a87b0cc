"""The store's address: read with care, named without its password, never repeated in an error."""

from __future__ import annotations

import socket
import struct
import threading
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.settings import Settings, load_settings, redact
from penstock.settings.address import is_unprotected, without_schema

SOURCES = "sources:\n  acme.com:\n    pipeline: products:catalogue\n"
PASSWORD = "horse/battery@staple"
AS_WRITTEN = "horse%2fbattery%40staple"


def load(tmp_path: Path, store: str, **environ: str) -> Settings:
    (tmp_path / "penstock.yaml").write_text(f'store: "{store}"\n{SOURCES}', encoding="utf-8")
    return load_settings(tmp_path, None, environ)


@pytest.mark.parametrize(
    ("store", "name"),
    [
        ("postgresql://db.example.com/shop", "postgresql://db.example.com/shop"),
        ("postgres://kim@db:5433/shop", "postgresql://db:5433/shop"),
        (f"postgresql://kim:{AS_WRITTEN}@db/shop", "postgresql://db/shop"),
        (f"postgresql://db/shop?password={AS_WRITTEN}", "postgresql://db/shop"),
        ("postgresql://kim@one:1,two:2/shop", "postgresql://one:1,two:2/shop"),
        ("postgresql:///shop?host=/run/postgresql", "postgresql:///run/postgresql/shop"),
        ("postgresql://kim@[::1]:5432/shop", "postgresql://[::1]:5432/shop"),
        ("postgresql://db/all?schema=shop&sslmode=require", "postgresql://db/all?schema=shop"),
        ("postgresql:///all?sslmode=require&schema=penstock", "postgresql://localhost/all"),
    ],
)
def test_database_on_a_server_is_named_without_its_password(
    tmp_path: Path, store: str, name: str
) -> None:
    settings = load(tmp_path, store)
    assert settings.is_on_postgres
    assert (settings.store, settings.store_name) == (store, name)


def test_file_is_named_by_its_path(tmp_path: Path) -> None:
    settings = load(tmp_path, "sqlite:data/shop.db")
    assert not settings.is_on_postgres
    assert settings.store_name == str(settings.store_file) == str(tmp_path / "data/shop.db")


def test_database_on_a_server_has_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no file"):
        _ = load(tmp_path, "postgresql://db/shop").store_file


@pytest.mark.parametrize(
    "store",
    [
        f"postgresql://kim:{AS_WRITTEN}@db/shop",
        f"postgresql://db/shop?user=kim&password={AS_WRITTEN}",
        "postgresql://kim:${SECRET}@db/shop",
        "${URL}",
    ],
)
def test_password_is_masked_wherever_it_stands_and_however_it_is_spelled(
    tmp_path: Path, store: str
) -> None:
    url = f"postgresql://kim:{AS_WRITTEN}@db/shop"
    settings = load(tmp_path, store, SECRET=AS_WRITTEN, URL=url)
    assert AS_WRITTEN not in repr(settings)
    for text in (f"a {PASSWORD} b", f"a {AS_WRITTEN} b", f"a {url} b"):
        shown = redact(text, settings.secrets)
        assert "battery" not in shown


@pytest.mark.parametrize(
    ("store", "why"),
    [
        ("oracle://kim:hunter22@db/shop", "must be sqlite:FILE"),
        ("hunter22", "must be sqlite:FILE"),
        ("postgresql://kim:hunter22@[db/shop", "is not an address"),
        ("postgresql://kim:hunter22/x@db/shop", "write @ as %40"),
        ("postgresql://kim:hunter22#x@db/shop", "write @ as %40"),
        ("postgresql://kim:hunter22?x@db/shop", "write @ as %40"),
    ],
)
def test_what_is_no_address_is_refused_without_repeating_it(
    tmp_path: Path, store: str, why: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, store)
    assert why in caught.value.message
    assert "hunter22" not in caught.value.message + caught.value.hint


def test_number_of_workers_is_read(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text(f"worker: {{count: 4}}\n{SOURCES}")
    assert load_settings(tmp_path, None, {}).worker.count == 4


@pytest.mark.parametrize(
    "schema", ["", "Shop", "a-b", "1st", "x" * 49, "pg_shop", "information_schema", "a&schema=b"]
)
def test_schema_that_can_not_be_one_is_refused(tmp_path: Path, schema: str) -> None:
    with pytest.raises(ConfigError, match="schema"):
        load(tmp_path, f"postgresql://db/shop?schema={schema}")


@pytest.mark.parametrize(
    ("store", "plain"),
    [
        ("postgresql://db/all?schema=shop", "postgresql://db/all"),
        ("postgresql:///all?schema=shop&host=/run", "postgresql:///all?host=/run"),
        ("postgresql://db/all?sslmode=require&schema=shop", "postgresql://db/all?sslmode=require"),
        ("postgresql://db/all", "postgresql://db/all"),
    ],
)
def test_server_is_never_told_of_our_own_option(store: str, plain: str) -> None:
    assert without_schema(store) == plain


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("postgresql://u:p@db.example.com/shop", True),
        ("postgresql://u:p@10.0.0.5:5432/shop", True),
        ("postgresql://u@localhost,db.example.com/shop", True),
        ("postgresql://u@[2001:db8::1]:5432/shop", True),
        ("postgresql:///shop?host=db.example.com", True),
        ("postgresql://u@db.example.com/shop?sslmode=verify-full", False),
        ("postgresql://u@db.example.com/shop?sslmode=disable", False),
        ("postgresql://u@localhost/shop", False),
        ("postgresql://u@127.0.0.1:6432/shop", False),
        ("postgresql://u@[::1]/shop", False),
        ("postgresql:///shop?host=/run/postgresql", False),
        ("postgresql:///shop", False),
        ("sqlite:shop.db", False),
    ],
)
def test_a_server_elsewhere_is_warned_about_where_nothing_says_that_it_is_encrypted(
    tmp_path: Path, address: str, expected: bool
) -> None:
    assert is_unprotected(address, {}) is expected
    assert not is_unprotected(address, {"PGSSLMODE": "require"})
    (tmp_path / "penstock.yaml").write_text(f"store: {address}\n")
    told = load_settings(tmp_path, environ={}).warnings
    assert any("sslmode=verify-full" in each for each in told) is expected


def test_a_server_that_asks_for_the_password_as_it_is_does_not_get_it() -> None:
    psycopg = pytest.importorskip("psycopg")
    from penstock.store.postgres.connection import conninfo

    with socket.create_server(("127.0.0.1", 0)) as listening:
        heard: list[bytes] = []

        def serve() -> None:
            asker, _ = listening.accept()
            with asker:
                heard.append(asker.recv(8))  # may we encrypt?
                asker.sendall(b"N")
                heard.append(asker.recv(4096))
                asker.sendall(b"R" + struct.pack("!ii", 8, 3))  # the password, as it is
                heard.append(asker.recv(4096))

        server = threading.Thread(target=serve)
        server.start()
        info = conninfo("postgresql://shop:hunter2@db.example.com/shop")
        port = listening.getsockname()[1]
        with pytest.raises(psycopg.OperationalError, match="cleartext password"):
            psycopg.connect(info, hostaddr="127.0.0.1", port=port)
        server.join(10)
    assert len(heard) == 3
    assert b"hunter2" not in b"".join(heard)
    chosen = conninfo("postgresql://shop:hunter2@db.example.com/shop?sslmode=require")
    assert "require_auth" not in chosen
