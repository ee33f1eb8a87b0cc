"""Exports: schedules for a scheduler that is not Penstock's, dashboards and rules. They open no database."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.app.noun import Noun
from penstock.app.views.exports import ExportView, Target
from penstock.errors import ConfigError, UsageError, nearest
from penstock.exporters.starts import Inexpressible, Place, starts_of
from penstock.settings import Settings, SourceSettings, normalise_source, parse_timezone
from penstock.settings.variables import variables_by_path
from penstock.version import __version__

if TYPE_CHECKING:
    from penstock.exporters.github_actions import Workplace
    from penstock.exporters.starts import Export

HASH = "--hash="
USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
# This very Penstock, wherever it is installed.
COMMAND = (sys.executable, "-P", "-m", "penstock")


class Exports(Noun):
    """The schedules of a project as files for GitHub Actions, cron or systemd: each start is a run.

    Also dashboards for Grafana, and rules for Prometheus, on the metrics of a project.

    No secret is written: variables of penstock.yaml are in the files by name only. Each verb for
    schedules takes the sources that are meant, all without any.
    """

    def github_actions(self, sources: Sequence[str] = ()) -> ExportView:
        """A workflow that runs the sources by schedule and by hand, one run at a time."""
        from penstock.exporters.github_actions import github_actions

        settings = self._project.settings

        def made(chosen: list[SourceSettings]) -> Export:
            place = self._place(folder="", command=("penstock",))
            keys = [source.key for source in chosen]
            return github_actions(starts_of(chosen), keys, place, _workplace(settings))

        return self._exported("github-actions", sources, made)

    def crontab(
        self,
        sources: Sequence[str] = (),
        *,
        timezone: str = "UTC",
        user: str = "",
        env_file: str | Path | None = None,
    ) -> ExportView:
        """A crontab with a line for each schedule; with a `user`, a table for /etc/cron.d.

        `timezone` is that of the host's clock. `env_file` sets the variables that penstock.yaml uses
        (penstock.env beside it).
        """
        from penstock.exporters.crontab import crontab

        zone = parse_timezone(timezone).key

        def made(chosen: list[SourceSettings]) -> Export:
            place = self._hosted_place(user, env_file)
            return crontab(starts_of(chosen), place, zone)

        return self._exported("crontab", sources, made)

    def systemd(
        self,
        sources: Sequence[str] = (),
        *,
        user: str = "",
        env_file: str | Path | None = None,
    ) -> ExportView:
        """A service and a timer for each schedule, to run as `user` (the account of this program).

        `env_file` sets the variables that penstock.yaml uses (penstock.env beside it).
        """
        import getpass

        from penstock.exporters.systemd import systemd

        year = datetime.fromtimestamp(self._project.clock.now(), UTC).year

        def made(chosen: list[SourceSettings]) -> Export:
            place = self._hosted_place(user or getpass.getuser(), env_file)
            return systemd(starts_of(chosen), place, year)

        return self._exported("systemd", sources, made)

    def grafana(self) -> ExportView:
        """Dashboards for Grafana: an overview, one of a source, and one of the engine."""
        from penstock.exporters.grafana import grafana

        return _files("grafana", grafana())

    def prometheus(self) -> ExportView:
        """Alert and recording rules for Prometheus, and an example of what scrapes the project."""
        from penstock.exporters.prometheus import prometheus

        return _files("prometheus", prometheus(self._project.settings.project))

    def _exported(
        self,
        target: Target,
        sources: Sequence[str],
        made: Callable[[list[SourceSettings]], Export],
    ) -> ExportView:
        settings = self._project.settings
        chosen = _chosen(settings, sources)
        _refuse_secret_schedules(settings)
        try:
            export = made(chosen)
        except Inexpressible as error:
            raise UsageError(f"{target} {error}", code="not_expressible") from None
        return ExportView(
            target=target,
            files=dict(export.files),
            left_out=list(export.left_out),
            otherwise=list(export.otherwise),
            has_schedules=any(source.schedules for source in chosen),
        )

    def _hosted_place(self, user: str, env_file: str | Path | None) -> Place:
        """On this host, as it is installed here."""
        _refuse_user(user)
        return self._place(str(self._project.settings.root), COMMAND, user, env_file)

    def _place(
        self,
        folder: str,
        command: tuple[str, ...],
        user: str = "",
        env_file: str | Path | None = None,
    ) -> Place:
        settings = self._project.settings
        used = variables_by_path(settings.file, settings.environment)
        variables = Path(env_file) if env_file else settings.root / "penstock.env"
        return Place(
            project=settings.project,
            folder=folder,
            command=command,
            variables=tuple(sorted({name for names in used.values() for name in names})),
            environment=settings.environment,
            env_file=str(variables.absolute()),
            user=user,
            writes=_writes(settings),
        )


def _files(target: Target, files: dict[str, str]) -> ExportView:
    """What is the same whatever the schedules are."""
    return ExportView(target=target, files=files, left_out=[], otherwise=[], has_schedules=True)


def _chosen(settings: Settings, names: Sequence[str]) -> list[SourceSettings]:
    if not names:
        return list(settings.sources.values())
    keys = dict.fromkeys(normalise_source(name) for name in names)
    for key in keys:
        if key not in settings.sources:
            raise UsageError(
                f"{settings.file.name} has no source {key!r}",
                nearest(key, settings.sources),
                code="no_source",
            )
    return [settings.sources[key] for key in keys]


def _refuse_secret_schedules(settings: Settings) -> None:
    """What is exported is written down: no part of it may be what the environment has given."""
    for path, names in variables_by_path(settings.file, settings.environment).items():
        is_schedule = path[0] == "sources" and path[2:3] == ("schedule",)
        is_file = path[0] == "store" and not settings.is_on_postgres
        if is_schedule or is_file or path[0] == "project":
            raise ConfigError(
                f"{settings.file.name}: {'.'.join(path)} takes ${{{names[0]}}} from the environment, "
                "and an export would write its value down",
                "write the value itself there, if it is no secret",
                code="secret_in_export",
            )


def _writes(settings: Settings) -> tuple[str, ...]:
    file = () if settings.is_on_postgres else (str(settings.store_file.parent),)
    raw = (str(settings.snapshots),) if isinstance(settings.snapshots, Path) else ()
    return (*file, *raw)


def _refuse_user(name: str) -> None:
    if name and not USER.fullmatch(name):
        raise UsageError(f"{name!r} can't be the name of a user", code="bad_user")


def _workplace(settings: Settings) -> Workplace:
    from penstock.exporters.github_actions import Workplace

    root = next(
        (each for each in (settings.root, *settings.root.parents) if (each / ".git").exists()),
        settings.root,
    )
    folder = settings.root.relative_to(root).as_posix()
    kept: tuple[str, ...] = ()
    if not settings.is_on_postgres:
        file = _within(settings.store_file, root)
        places = [file, f"{file}-wal"]
        if isinstance(settings.snapshots, Path):
            places.append(_within(settings.snapshots, root))
        kept = tuple(places)
    requirements = settings.root / "requirements.txt"
    named = ["--requirement", _within(requirements, root)] if requirements.is_file() else []
    return Workplace(
        folder="" if folder == "." else folder,
        kept=kept,
        install=_install(requirements, named, f"penstock{_extras(settings)}=={__version__}"),
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
    )


def _install(requirements: Path, named: list[str], penstock: str) -> tuple[str, ...]:
    """Where requirements.txt has hashes, what is installed is what they say, and Penstock is one of them."""
    if named and HASH in requirements.read_text(encoding="utf-8", errors="replace"):
        return ("--require-hashes", *named)
    return (*named, penstock)


def _within(path: Path, root: Path) -> str:
    try:
        return path.relative_to(root).as_posix()
    except ValueError:
        raise UsageError(
            f"{path} is outside of the repository {root}, and a workflow can't keep it",
            "use a path inside of it, or store: postgresql://…",
        ) from None


def _has_calendars(settings: Settings) -> bool:
    """Whether penstock.yaml is refused where no exchange is known."""
    schedules = (each for source in settings.sources.values() for each in source.schedules)
    return any(each.calendar is not None for each in schedules)


def _extras(settings: Settings) -> str:
    wanted = [
        *(["blob"] if not isinstance(settings.snapshots, Path) else []),
        *(["markets"] if _has_calendars(settings) else []),
        *(["postgres"] if settings.is_on_postgres else []),
    ]
    return f"[{','.join(wanted)}]" if wanted else ""
