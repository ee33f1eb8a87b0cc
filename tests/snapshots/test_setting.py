"""Where snapshots go is one word in penstock.yaml: a folder or a URL, and nothing else by mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.settings import Settings, load_settings
from penstock.settings.snapshot_address import parse_snapshots

SECRET = "hush/hush+hush"
PROJECT = "project: shop\nsnapshots: {}\n"


def load(folder: Path, snapshots: str, **environ: str) -> Settings:
    (folder / "penstock.yaml").write_text(PROJECT.format(snapshots))
    return load_settings(folder, environ=environ)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("snapshots", Path("/project/snapshots")),
        ("./a:b", Path("/project/a:b")),
        ("/var/snapshots", Path("/var/snapshots")),
        ("file:///var/my%20snapshots", Path("/var/my snapshots")),
        ("file://localhost/var/snapshots", Path("/var/snapshots")),
        ("FILE:///var/snapshots", Path("/var/snapshots")),
        ("s3://bucket", "s3://bucket"),
        ("S3://bucket/", "s3://bucket"),
        ("s3://my.bucket/a/b=c/", "s3://my.bucket/a/b=c"),
        ("gs://bucket/prefix", "gs://bucket/prefix"),
        ("az://container/prefix", "az://container/prefix"),
    ],
)
def test_a_place_is_a_folder_or_a_bucket(text: str, where: Path | str) -> None:
    assert parse_snapshots(text, Path("/project")) == where


@pytest.mark.parametrize(
    "text",
    [
        "http://bucket/prefix",
        "s4://bucket/prefix",
        "s3:bucket/prefix",
        "s3:/bucket",
        "s3://",
        "s3:///prefix",
        "s3://bucket/../other",
        "s3://bucket/a//b",
        "s3://bucket/a?region=x",
        f"s3://key:{SECRET}@bucket/prefix",
        "s3://bucket:9000/prefix",
        "s3://bucket/a b",
        "s3://bucket/a%2e%2e",
        "file:relative",
        "file://host/share",
        "file:///a%00b",
        "file:///a?b",
        "memory://",
        "c:\\snapshots",
    ],
)
def test_any_other_place_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_snapshots(text, Path("/project"))
    assert text not in caught.value.message
    assert SECRET not in caught.value.message


def test_the_setting_is_read_from_the_file(tmp_path: Path) -> None:
    assert load(tmp_path, "raw").snapshots == tmp_path / "raw"
    assert load(tmp_path, "s3://bucket/prefix/").snapshots == "s3://bucket/prefix"
    found = load(tmp_path, "${WHERE}", WHERE="gs://bucket/prefix")
    assert found.snapshots == "gs://bucket/prefix"
    assert "bucket" not in repr(found)


def test_what_is_not_allowed_is_said_with_its_line_and_what_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, "ftp://host/folder")
    assert caught.value.message.endswith(
        "penstock.yaml:2: snapshots: must be a folder, file:///FOLDER, "
        "s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX"
    )


def test_credentials_in_the_setting_are_refused_and_never_shown(tmp_path: Path) -> None:
    for place in (f"s3://key:{SECRET}@bucket/prefix", "${WHERE}"):
        with pytest.raises(ConfigError, match="no credentials") as caught:
            load(tmp_path, place, WHERE=f"s3://key:{SECRET}@bucket/prefix")
        assert SECRET not in f"{caught.value.message}{caught.value.hint}"
