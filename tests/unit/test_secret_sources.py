"""Secrets of files, commands and keyrings: used, masked, and told in one line where they are not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.settings import load_settings, secret_sources
from penstock.settings.secrets import redact

SECRET = "hunter2-of-a-file"


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    secret_sources._known.clear()
    yield
    secret_sources._known.clear()


def write(folder: Path, token: str, key: str = "params: {token: ") -> Path:
    tail = "}" if "{" in key else ""
    text = f'project: shop\nsources:\n  acme.com:\n    pipeline: a:b\n    {key}"{token}"{tail}\n'
    (folder / "penstock.yaml").write_text(text)
    return folder


@pytest.mark.parametrize("kind", ["file", "command"])
def test_a_secret_comes_from_a_file_or_a_command_and_is_masked(tmp_path: Path, kind: str) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n")
    place = f"{'cat ' if kind == 'command' else ''}{tmp_path / 'token'}"

    settings = load_settings(write(tmp_path, f"${{{kind}:{place}}}"))

    assert settings.sources["acme.com"].params == {"token": SECRET}
    assert SECRET in settings.secrets
    assert SECRET not in redact(f"it is {SECRET}", settings.secrets)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("file:/nowhere/token", "there is no such file"),
        ("file:token", "the path must begin with /"),
        ("command:false", "it ended with 1"),
        ("command:/nowhere/op", "it can't be run"),
        ("command:echo 'x", "a quote has no end"),
        ("keyring:shop", "write it as service/name"),
    ],
)
def test_what_is_not_there_keeps_its_source_from_running_in_one_line(
    tmp_path: Path, source: str, said: str
) -> None:
    settings = load_settings(write(tmp_path, f"${{{source}}}"))

    [unset] = settings.sources["acme.com"].unset
    assert said in unset.words
    assert "\n" not in unset.words


def test_a_name_that_is_neither_a_variable_nor_a_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not name an environment variable"):
        load_settings(write(tmp_path, "${vault:x}"))
