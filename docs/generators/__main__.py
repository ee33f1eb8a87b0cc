"""Write every page that is made from code: python -m docs.generators (`make reference`)"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from docs.generators import alerts, errors, metrics, pipelines, project, runbooks, views
from penstock.journal import reference as events

DOCS = Path(__file__).parents[1]
PAGES: dict[str, Callable[[], str]] = {
    "alerts.md": alerts.page,
    "events.md": events.page,
    "metrics.md": metrics.page,
    "python-reference.md": project.page,
    "python-views.md": views.page,
    "python-errors.md": errors.page,
    "python-pipelines.md": pipelines.page,
    **runbooks.pages(),
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
