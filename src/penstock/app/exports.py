"""Exports: schedules for a scheduler that is not Penstock's, dashboards and rules.

Only `check_pg_cron` opens a database.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from penstock.app.noun import Noun
from penstock.app.views.exports import CronCheckView, ExportView, Target
from penstock.errors import ConfigError, UsageError, nearest
from penstock.exporters.starts import Inexpressible, Place, starts_of
from penstock.settings import Settings, SourceSettings, normalise_source, parse_timezone
from penstock.settings.units import parse_duration
from penstock.settings.variables import variables_by_path
from penstock.version import __version__

if TYPE_CHECKING:
    from penstock.exporters.github_actions import Workplace
    from penstock.exporters.pg_cron import Upkeep
    from penstock.exporters.starts import Export

# Of an identifier in Postgres.
LONGEST_NAME = 63
HASH = "--hash="
USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
# This very Penstock, wherever it is installed.
COMMAND = (sys.executable, "-P", "-m", "penstock")


class Exports(Noun):
    """The schedules of a project as files for GitHub Actions, cron, systemd, pg_cron or Supabase.

    Also dashboards for Grafana and Metabase, rules for Prometheus, and what a project is deployed with.

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

        def made(chosen: list[SourceSettings]) -> Export:
            place = self._hosted_place(user or getpass.getuser(), env_file)
            return systemd(starts_of(chosen), place, self._year())

        return self._exported("systemd", sources, made)

    def pg_cron(
        self,
        *,
        retries: str = "17 * * * *",
        attempts: int = 3,
        watchdog: str = "*/5 * * * *",
        patience: str = "5m",
        schema: str = "",
        database: str = "",
    ) -> ExportView:
        """SQL that has pg_cron enqueue, retry and watch inside the database of the project.

        `retries` and `watchdog` are cron expressions by UTC, or `off`. What failed is retried until it was
        tried `attempts` times; the watchdog fails when what was asked for has waited for `patience`. `schema`
        has the views (found by itself), `database` the project, where pg_cron is in another one.
        """
        from penstock.exporters.pg_cron import pg_cron

        settings = self._project.settings
        upkeep = _upkeep(retries, attempts, watchdog, patience)
        for name in filter(None, (schema, database)):
            _refuse_name(name)

        def made(chosen: list[SourceSettings]) -> Export:
            starts, year = starts_of(chosen), self._year()
            return pg_cron(starts, settings.project, upkeep, year, schema, database)

        found = self._exported("pg-cron", (), made)
        notes = [*_notes_on_timers(settings)]
        if not settings.is_on_postgres:
            notes.append("this project is on SQLite now: pg_cron needs store: postgresql://…")
        return msgspec.structs.replace(found, notes=notes)

    def check_pg_cron(
        self,
        *,
        retries: str = "17 * * * *",
        attempts: int = 3,
        watchdog: str = "*/5 * * * *",
        patience: str = "5m",
        schema: str = "",
        database: str = "",
        cron_database: str = "",
    ) -> CronCheckView:
        """Whether pg_cron has the jobs that `pg_cron` would make with the same options; changes nothing.

        `cron_database` is the one that has pg_cron (that of the project, or the server's usual one).
        """
        from penstock.app.cron_check import compared
        from penstock.exporters.pg_cron import cron_script

        settings = self._project.settings
        _refuse_secret_schedules(settings)
        for name in filter(None, (schema, database, cron_database)):
            _refuse_name(name)
        upkeep = _upkeep(retries, attempts, watchdog, patience)
        starts = starts_of(list(settings.sources.values()))
        script, _ = cron_script(starts, settings.project, upkeep, self._year(), schema, database)
        return compared(settings, script, cron_database)

    def supabase(
        self,
        *,
        retries: str = "*/10 * * * *",
        attempts: int = 20,
        watchdog: str = "*/15 * * * *",
        patience: str = "10m",
        edge_function: bool = False,
    ) -> ExportView:
        """SQL that has Supabase's pg_cron call the trigger of the project over HTTP, by pg_net.

        Address and token are in Supabase's vault. `retries` is when what was not accepted is sent again, at
        most `attempts` times. With `edge_function`, calls go by an Edge Function, which is another file.
        """
        from penstock.exporters.supabase import supabase

        settings = self._project.settings
        upkeep = _upkeep(retries, attempts, watchdog, patience)

        def made(chosen: list[SourceSettings]) -> Export:
            starts, year = starts_of(chosen), self._year()
            return supabase(starts, settings.project, upkeep, year, by_edge_function=edge_function)

        found = self._exported("supabase", (), made)
        return msgspec.structs.replace(found, notes=[*_notes_on_timers(settings)])

    def deploy(self, *, user: str = "", env_file: str | Path | None = None) -> ExportView:
        """A Dockerfile, a compose file (Postgres, two workers, web), and systemd units of `up` and `web`.

        The units are for this host and run as `user` (the account of this program); `env_file` sets the
        variables that penstock.yaml uses (penstock.env beside it).
        """
        import getpass

        from penstock.exporters.deploy import Image, deploy

        settings = self._project.settings
        _refuse_secret_schedules(settings)
        place = self._hosted_place(user or getpass.getuser(), env_file)
        file = settings.root / "requirements.txt"
        named = ["--requirement", file.name] if file.is_file() else []
        # The compose file has Postgres, whatever the project has now.
        extras = ",".join(sorted({*_extras(settings).strip("[]").split(","), "postgres"} - {""}))
        image = Image(
            _install(file, named, f"penstock[{extras}]=={__version__}"),
            f"{sys.version_info.major}.{sys.version_info.minor}",
            file.name if named else "",
            _variables_but_of_store(settings) if not settings.environment else place.secrets,
        )
        try:
            files = deploy(place, image)
        except Inexpressible as error:
            raise UsageError(f"systemd {error}", code="not_expressible") from None
        found = _files("deploy", files)
        if settings.environment:
            note = "compose.yaml brings a Postgres: store: postgresql://penstock@postgres/penstock uses it"
            return msgspec.structs.replace(found, notes=[note])
        return found

    def grafana(self, datasource: str = "prometheus") -> ExportView:
        """Dashboards for Grafana, on the metrics, or with `postgres` on the views of the SQL interface."""
        if datasource == "postgres":
            from penstock.exporters.grafana_sql import grafana_sql

            return _files("grafana", grafana_sql())
        from penstock.exporters.grafana import grafana

        return _files("grafana", grafana())

    def metabase(self) -> ExportView:
        """Questions for Metabase on the views of the SQL interface, as SQL, and how they make a dashboard."""
        from penstock.exporters.metabase import metabase

        return _files("metabase", metabase())

    def prometheus(self) -> ExportView:
        """Alert and recording rules for Prometheus, and an example of what scrapes the project."""
        from penstock.exporters.prometheus import prometheus

        return _files("prometheus", prometheus(self._project.settings.project))

    def _year(self) -> int:
        return datetime.fromtimestamp(self._project.clock.now(), UTC).year

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
            notes=[],
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
    return ExportView(
        target=target, files=files, left_out=[], otherwise=[], notes=[], has_schedules=True
    )


def _upkeep(retries: str, attempts: int, watchdog: str, patience: str) -> Upkeep:
    from penstock.exporters.pg_cron import Upkeep

    if attempts < 1:
        raise UsageError(f"at least one attempt is needed, not {attempts}", "for none: retries off")
    return Upkeep(
        retries=_cron_of("retries", retries),
        attempts=attempts,
        watchdog=_cron_of("watchdog", watchdog),
        patience_s=parse_duration(patience),
    )


def _cron_of(option: str, text: str) -> str:
    """As pg_cron reads it; nothing where it is off."""
    from penstock.exporters.fields import cron_text, fields_of

    if text == "off":
        return ""
    try:
        cron_text(fields_of(text))
        return text
    except (ValueError, Inexpressible) as error:
        raise UsageError(
            f"--{option} {text!r:.60} is not a schedule of pg_cron ({error})",
            "five fields, such as '17 * * * *', or off",
        ) from None


def _refuse_name(name: str) -> None:
    if not name.isprintable() or len(name.encode()) > LONGEST_NAME:
        raise UsageError(f"{name!r:.70} can't be the name of a schema or database")


def _variables_but_of_store(settings: Settings) -> tuple[str, ...]:
    from penstock.exporters.starts import AMBIENT

    used = variables_by_path(settings.file, settings.environment).items()
    names = {name for path, found in used if path[0] != "store" for name in found}
    return tuple(sorted(names - AMBIENT))


def _notes_on_timers(settings: Settings) -> Iterator[str]:
    if settings.timers != "external" and any(each.schedules for each in settings.sources.values()):
        yield "Penstock starts these schedules, too, until penstock.yaml says `timers: external`"


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
