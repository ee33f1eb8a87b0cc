"""What a bridge says when its engine is not there."""

from __future__ import annotations

from penstock.errors import UsageError

INSTALL = {
    "airflow": "pip install 'apache-airflow>=3.3'",
    "dagster": "pip install 'dagster>=1.13' 'watchdog<7'",
    "prefect": "pip install 'prefect>=3.8' 'fastapi<0.151'",
}


class EngineMissing(UsageError, ImportError):
    """The engine of a bridge is not installed beside Penstock."""

    code = "engine_missing"

    def __str__(self) -> str:
        """With what installs it: engines, editors and Python show an error of an import like this."""
        return f"{self.message}: {self.hint}"


def missing(engine: str, error: ImportError) -> ImportError:
    """What to raise where an engine can't be imported: one line, if it is not installed at all."""
    if (error.name or "").partition(".")[0] != engine:
        return error
    return EngineMissing(
        f"{engine.capitalize()} is not installed in this environment", INSTALL[engine]
    )
