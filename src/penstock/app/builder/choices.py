"""What the command line says over a job, and the profile and budgets that come of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.builder.job_file import Budgets, JobFile
from penstock.builder.registry import builder
from penstock.errors import ConfigError, UsageError
from penstock.pipeline.selection import Selection, overlaid, select
from penstock.settings.document import read_value
from penstock.settings.section import plain


@dataclass(frozen=True, slots=True)
class Choices:
    """Options over a job: job file < profile < these. None is what the job says."""

    profile: str | None = None
    features: Mapping[str, bool] = field(default_factory=dict)
    # As `crawl.max_pages=5`.
    changes: tuple[str, ...] = ()
    max_http_requests: int | None = None
    max_http_bytes: int | None = None
    time_budget_min: float | None = None
    ram_mb: int | None = None
    concurrency: int | None = None
    sample: int | None = None

    def budgets(self, keys: JobFile) -> Budgets:
        """The job's budgets, with those of the command line over them."""
        said = {name: getattr(self, name) for name in Budgets.__struct_fields__}
        over = {name: value for name, value in said.items() if value is not None}
        return Budgets(**{name: over.get(name, getattr(keys.budgets, name)) for name in said})

    def profile_of(self, keys: JobFile) -> dict[str, Any]:
        """The profile as a source of penstock.yaml has it."""
        wanted: str | Mapping[str, Any] = self.profile or keys.profile
        name = wanted if isinstance(wanted, str) else ""
        made = dict(_own(keys, name) if name in keys.profiles else _named(wanted))
        made["features"] = {**made.get("features", {}), **keys.features, **self.features}
        made["config"] = overlaid(made.get("config", {}), _config(self.changes))
        return {key: value for key, value in made.items() if value}

    def profile_name(self, keys: JobFile) -> str:
        wanted = self.profile or keys.profile
        return wanted if isinstance(wanted, str) else "own"

    def selection(self, keys: JobFile) -> Selection:
        """The steps of the profile, in order; or why it has none."""
        found = builder.profile_of(self.profile_of(keys))
        return select(builder, replace(found, name=self.profile_name(keys)))


def _named(wanted: str | Mapping[str, Any]) -> Mapping[str, Any]:
    return {"extends": wanted} if isinstance(wanted, str) else wanted


def _own(keys: JobFile, name: str) -> dict[str, Any]:
    """A profile of the job, with what it has from other profiles of the job."""
    made: dict[str, Any] = {}
    seen: list[str] = []
    while name in keys.profiles:
        if name in seen:
            raise ConfigError(f"profiles extend each other: {' → '.join([*seen, name])}")
        seen.append(name)
        made = _over(keys.profiles[name], made)
        name = str(keys.profiles[name].get("extends") or builder.default)
    return {**made, "extends": name}


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """What a profile says, over what the profile says that it extends."""
    made = {**below, **above}
    for name in ("features", "config"):
        made[name] = overlaid(below.get(name) or {}, above.get(name) or {})
    for name in ("steps", "without"):
        lists = [each.get(name) or () for each in (below, above)]
        made[name] = [each for found in lists for each in _listed(found)]
    return made


def _listed(found: Any) -> list[str]:
    return [found] if isinstance(found, str) else list(found)


def _config(changes: tuple[str, ...]) -> dict[str, Any]:
    """`crawl.max_pages=5` as the mapping that it stands for; values are read as YAML."""
    made: dict[str, Any] = {}
    for change in changes:
        path, equals, text = change.partition("=")
        if not equals or not all(path.split(".")):
            raise UsageError(f"--set {change!r:.60}: write it as crawl.max_pages=5")
        value: Any = plain(read_value(text, "--set"))
        for name in reversed(path.split(".")):
            value = {name: value}
        made = overlaid(made, value)
    return made
