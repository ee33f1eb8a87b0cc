"""penstock.yaml, its pipelines and its variables. Of a variable only its name is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from penstock.app import config
from penstock.app.doctor.findings import Area
from penstock.app.views.config import MistakeView
from penstock.app.views.doctor import CheckupFindingView
from penstock.errors import PenstockError
from penstock.settings import Settings
from penstock.settings.unset import Unset

CONFIG = Area("config")
SECRETS = Area("secrets")
CHECK = "correct it; penstock config check lists every mistake"


def look(folder: Path, environment: str | None) -> Iterator[CheckupFindingView]:
    """Every mistake of the file and of the pipelines it names; what is not set belongs to the secrets."""
    found = config.check(folder, environment)
    for mistake in found.mistakes:
        yield _problem(mistake)
    for warning in found.warnings:
        if warning.kind != "variable":
            yield CONFIG.warning(warning.message, warning.hint or CHECK)
    if found.sound:
        sources, pipelines = (
            _counted(found.sources, "source"),
            _counted(found.pipelines, "pipeline"),
        )
        yield CONFIG.ok(f"{sources}; {pipelines} can be imported")


def broken(place: Path | str | None, environment: str | None) -> Iterator[CheckupFindingView]:
    """The same of a file that can't be read as a whole, or is not there."""
    try:
        found = config.check(place, environment)
    except PenstockError as error:
        without = "penstock init makes a project; --project DIR names one"
        remedy = without if error.code == "no_project" else error.hint
        yield CONFIG.problem(error.message, remedy or CHECK)
        return
    yield from map(_problem, found.mistakes)


def secrets(
    folder: Path, environment: str | None, settings: Settings
) -> Iterator[CheckupFindingView]:
    """Which variables penstock.yaml uses, and whether they are set."""
    used = {name for value in config.show(folder, environment).values for name in value.variables}
    needed = [*settings.unset, *(each for s in settings.sources.values() for each in s.unset)]
    unset = {each.name: each for each in needed}
    for name in sorted(unset):
        whose = unset[name].source or f"{unset[name].section}:"
        yield SECRETS.problem(*_lack(unset[name], whose))
    present = sorted(used - set(unset))
    if present:
        yield SECRETS.ok(f"set: {', '.join(present)}")
    elif not unset:
        yield SECRETS.ok("penstock.yaml uses no variables")


def _lack(unset: Unset, whose: str) -> tuple[str, str]:
    """What is not there, and what to do: a variable is set, a file or an entry is made."""
    name = unset.name
    if ":" in name:
        return (
            f"${{{name}}} has no secret, which {whose} needs: {unset.near}",
            "put the secret where it is looked for, readable for the user that runs Penstock",
        )
    return (
        f"{name} is not set, which {whose} needs",
        f"set {name} in the environment, or in a file .env beside penstock.yaml",
    )


def _problem(mistake: MistakeView) -> CheckupFindingView:
    return CONFIG.problem(mistake.message, mistake.hint or CHECK)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
