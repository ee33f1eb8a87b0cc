"""Which bridges are tested on their engines here, and what each says without its engine."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from pathlib import Path

import pytest

from penstock.bridges.engines import INSTALL, EngineMissing
from penstock.errors import PenstockError
from tests.bridges.conftest import ENGINES


@pytest.mark.parametrize("engine", ENGINES)
def test_bridge_is_tested_on_its_engine(engine: str) -> None:
    if find_spec(engine) is None:
        pytest.skip(f"{engine} is not installed here; `make test-bridges` tests its bridge")
    assert list((Path(__file__).parent / engine).glob("test_*.py"))


@pytest.mark.parametrize("engine", ENGINES)
def test_bridge_without_its_engine_says_how_to_install_it(engine: str) -> None:
    if find_spec(engine) is not None:
        pytest.skip(f"{engine} is installed here")
    with pytest.raises(EngineMissing) as raised:
        importlib.import_module(f"penstock.bridges.{engine}")
    assert isinstance(raised.value, PenstockError)
    assert isinstance(raised.value, ImportError)
    assert "is not installed" in raised.value.message
    assert raised.value.hint == INSTALL[engine]
    assert str(raised.value).endswith(f"is not installed in this environment: {INSTALL[engine]}")
