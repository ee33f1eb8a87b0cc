"""The configuration in force: of one source or of all, and where each value comes from."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.app import config
from penstock.web.dashboard.page import Visit

if TYPE_CHECKING:
    from penstock.app.views.config import ConfigView, ValueView

# More values than this are cut; a source has fewer.
SHOWN = 500


def read(visit: Visit) -> dict[str, Any]:
    settings, source = visit.project.settings, visit.text("source")
    found = _shown(settings.root, settings.environment, _stamps(settings.root))
    values = [each for each in found.values if _is_of(each, source)]
    return {
        "source": source,
        "file": found.file,
        "values": values[:SHOWN],
        "is_cut": len(values) > SHOWN,
    }


def _is_of(value: ValueView, source: str | None) -> bool:
    """With a source its own values, otherwise those of the project."""
    if source is None:
        return not value.key.startswith("sources.")
    return value.key.startswith((f"sources.{source}.", f"sources.{source}["))


def _stamps(root: Path) -> tuple[tuple[str, int], ...]:
    """When the files of the configuration were written last."""
    files = sorted(root.glob("penstock*.yaml"))
    return tuple((file.name, file.stat().st_mtime_ns) for file in files)


@lru_cache(maxsize=2)
def _shown(root: Path, environment: str | None, stamps: tuple[tuple[str, int], ...]) -> ConfigView:
    """Read once for each state of the files: with a thousand sources that takes seconds."""
    return config.show(root, environment)
