"""The store's address: read with care, named without its password, never repeated in an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.settings import Settings, load_settings, redact
from penstock.settings.address import without_schema

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
