"""Metrics: the text that Prometheus scrapes, made of sums, counters and small tables. Nothing here scans."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock.app.noun import Noun
from penstock.app.views.metrics import FamilyView, family_view
from penstock.errors import UsageError, nearest
from penstock.version import __version__


class Metrics(Noun):
    """The metric families of a project."""

    def text(self, format: str = "prometheus") -> str:  # noqa: A002  as the command line calls it
        """All of them as they are now, in the format of Prometheus or as `openmetrics`."""
        from penstock.metrics.exposition import FORMATS, text_of

        if format not in FORMATS:
            raise UsageError(
                f"metrics can't be written as {format!r}",
                nearest(format, FORMATS),
                code="no_format",
            )
        settings = self._project.settings
        about = {
            "version": __version__,
            "project": settings.project,
            "database": "postgresql" if settings.is_on_postgres else "sqlite",
        }
        facts = self._store.metric_facts.read()
        return text_of(facts, about, settings.metrics.max_sources, format)

    def write(self, file: Path | str, format: str = "prometheus") -> None:  # noqa: A002
        """Write the text to a file, for the textfile collector of the node exporter.

        The file is replaced at once: who reads it finds the old text or the new one, never a part.
        """
        from penstock.app.text_files import replace_text

        replace_text(Path(file), self.text(format))

    def families(self) -> Sequence[FamilyView]:
        """What there is: name, type, labels, meaning, and where it is derived from."""
        from penstock.metrics.registry import FAMILIES

        return [family_view(each) for each in FAMILIES.values()]
