"""Secrets of files, commands and keyrings: used, masked, and told in one line where they are not there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.errors import ConfigError
from penstock.settings import load_settings, secret_sources
from penstock.settings.secrets import redact

SECRET = "hunter2-of-a-file"
STEPS = """
from penstock import Pipeline

things = Pipeline("things")


@things.step(unit="run")
def begin(ctx):
    ctx.save("thing", key="a", data={})
"""
KEYRING = f"""
def get_password(service, name):
    if service == "locked":
        raise RuntimeError("the keyring is locked, and its password is {SECRET}")
    return {SECRET!r} if (service, name) == ("shop", "token") else None
"""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    secret_sources._known.clear()
    yield
    secret_sources._known.clear()
    sys.modules.pop("keyring", None)


def write(folder: Path, token: str, key: str = "params: {token: ") -> Path:
    tail = "}" if "{" in key else ""
    text = f'project: shop\nsources:\n  acme.com:\n    pipeline: a:b\n    {key}"{token}"{tail}\n'
    (folder / "penstock.yaml").write_text(text)
    return folder


@pytest.mark.parametrize("kind", ["file", "command", "keyring", "variable"])
def test_a_secret_comes_from_where_it_is_kept_and_is_masked(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n")
    # What the package of this name does; a keyring of an operating system is not everywhere.
    (tmp_path / "keyring.py").write_text(KEYRING)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("SHOP_TOKEN_FILE", str(tmp_path / "token"))
    written = {
        "file": f"${{file:{tmp_path / 'token'}}}",
        "command": f"${{command:cat {tmp_path / 'token'}}}",
        "keyring": "${keyring:shop/token}",
        "variable": "${SHOP_TOKEN}",
    }

    settings = load_settings(write(tmp_path, written[kind]))

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
        ("keyring:shop/other", "the keyring has no such entry"),
        ("keyring:locked/token", "the keyring has failed (RuntimeError)"),
        ("LOST", "LOST_FILE names '/nowhere/token': there is no such file"),
    ],
)
def test_what_is_not_there_keeps_its_source_from_running_in_one_line(
    tmp_path: Path, source: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keyring.py").write_text(KEYRING)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("LOST_FILE", "/nowhere/token")
    settings = load_settings(write(tmp_path, f"${{{source}}}"))

    [unset] = settings.sources["acme.com"].unset
    assert said in unset.words
    assert "\n" not in unset.words


def test_a_name_that_is_neither_a_variable_nor_a_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not name an environment variable"):
        load_settings(write(tmp_path, "${vault:x}"))


def test_a_variable_that_is_set_goes_before_the_file_that_another_one_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "of-the-variable")
    monkeypatch.setenv("SHOP_TOKEN_FILE", "/nowhere/token")
    settings = load_settings(write(tmp_path, "${SHOP_TOKEN}"))
    assert settings.sources["acme.com"].params == {"token": "of-the-variable"}


@pytest.mark.parametrize("command", [["config", "show"], ["doctor", "--offline"], ["status"]])
def test_secrets_of_files_are_in_no_output_and_in_no_release(
    tmp_path: Path,
    command: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    secret = tmp_path.with_name(f"{tmp_path.name}-token")
    secret.write_text(SECRET)
    (tmp_path / "penstock.yaml").write_text(
        f"""project: shop
store: sqlite:shop.db
sources:
  acme.com:
    pipeline: kept_steps:things
    params: {{token: "${{file:{secret}}}", lost: "${{file:{secret}.not}}"}}
"""
    )
    (tmp_path / "kept_steps.py").write_text(STEPS)
    main(["release", "create", "--reason", "new"])
    main(command)
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err
    assert "Traceback" not in said.err
    if command[0] == "doctor":
        assert f"${{file:{secret}.not}} has no secret, which acme.com needs" in said.out
    for file in tmp_path.glob("shop.db*"):
        assert SECRET.encode() not in file.read_bytes()
    sys.modules.pop("kept_steps", None)
