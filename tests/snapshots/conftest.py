"""The homes that must keep the contract: each test runs on every one of them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.snapshots.homes import BucketHome, FolderHome, Home
from tests.snapshots.s3 import Wire, environment, s3_server

KINDS = ("folder", "file-url", "s3")


@pytest.fixture(scope="session")
def s3_port() -> Iterator[int]:
    with s3_server() as port:
        yield port


@pytest.fixture
def wire(s3_port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """The way to the S3 server; the environment leads there and nowhere else."""
    made = Wire(s3_port)
    made.mend()
    for name in os.environ:
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for name, value in environment(made.port).items():
        monkeypatch.setenv(name, value)
    yield made
    made.released.set()
    made.cut()


@pytest.fixture
def bucket(s3_port: int, wire: Wire) -> BucketHome:
    return BucketHome(s3_port, f"bucket-{uuid.uuid4().hex}")


@pytest.fixture(params=KINDS)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    if request.param == "s3":
        found: BucketHome = request.getfixturevalue("bucket")
        return found
    return FolderHome(tmp_path, as_url=request.param == "file-url")
