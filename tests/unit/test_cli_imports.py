"""Commands that look start at once: they import nothing of what works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import penstock

HEAVY = (
    *("aiohttp", "asyncio", "importlib.metadata", "lxml", "penstock.engine"),
    *("protego", "rich", "selectolax"),
)
STATUS = """
import sys
from penstock.cli import main
code = main(["status", "--project", sys.argv[1]])
print(code, *sorted(sys.modules), file=sys.stderr)
"""
PUBLIC = """
import sys
import penstock
print(*sorted(sys.modules), file=sys.stderr)
"""


def modules(script: str, folder: Path) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        env={"PYTHONPATH": str(Path(penstock.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


@pytest.mark.parametrize("script", [STATUS, PUBLIC])
def test_looking_imports_nothing_that_works_or_draws(script: str, tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text("project: empty\n")
    assert modules(script, tmp_path).isdisjoint(HEAVY)


def test_the_public_names_are_there_and_no_others() -> None:
    for name in penstock.__all__:
        assert getattr(penstock, name) is not None
    assert set(penstock.__all__) == {
        *("AuthFailed", "BadData", "Permanent", "Transient"),
        *(
            "Context",
            "FetchError",
            "Pipeline",
            "Project",
            "Registry",
            "Reject",
            "Response",
            "Skip",
            "Snooze",
        ),
        "__version__",
    }
    assert dir(penstock) == sorted(penstock.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Pipelin'"):
        penstock.Pipelin  # noqa: B018


def test_help_imports_no_command(tmp_path: Path) -> None:
    script = STATUS.replace('["status", "--project", sys.argv[1]]', '["--help"]')
    assert not [
        each for each in modules(script, tmp_path) if each.startswith("penstock.cli.commands.")
    ]
