"""What the unit tests share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def pipelines(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The PIPELINES of a file of tests as the module MODULE, imported anew by each of its tests."""
    name: str = request.module.MODULE
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / f"{name}.py").write_text(request.module.PIPELINES)
    monkeypatch.syspath_prepend(folder)
    yield
    sys.modules.pop(name, None)
