"""`penstock export`: the schedules for a scheduler that is not Penstock's."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.output import Output
from penstock.cli.parser import Commands, add_command
from penstock.errors import ConfigError, UsageError, nearest
from penstock.version import __version__

if TYPE_CHECKING:
    from penstock.exporters.github_actions import Workplace
    from penstock.exporters.starts import Export, Place, Start
    from penstock.settings import Settings, SourceSettings

DESCRIPTION = """\
Write the schedules of penstock.yaml for GitHub Actions, cron or systemd: each start is a `penstock run`. What
the target can't express (sessions, files, signals, hours, ...) is left out and named in a comment and on
stderr, and the exit code is 3. Secrets are written by name only."""
EXAMPLES = """\
  penstock export github-actions --output .github/workflows/penstock.yml
  penstock export crontab | crontab -
  penstock export systemd --dir /etc/systemd/system"""
GITHUB = """\
A workflow that runs the sources by schedule and by hand, one run at a time, with the least permissions
and with every action pinned."""
CRONTAB = """\
A line for each schedule, for a host without systemd. Its times are by one clock, the host's:
--timezone says which that is. With --user it is a table for /etc/cron.d."""
SYSTEMD = """\
A service and a timer for each schedule. A timer missed while the host was off
fires once. Without --dir they are all printed."""
HASH = "--hash="
USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")


def register(commands: Commands) -> None:
    parser = add_command(
        commands, "export", "schedules for cron, systemd, GitHub", DESCRIPTION, EXAMPLES
    )
    targets = parser.add_subparsers(dest="target", metavar="TARGET", title="targets", required=True)
    github = add_command(
        targets,
        "github-actions",
        "a workflow",
        GITHUB,
        "  penstock export github-actions --output .github/workflows/penstock.yml",
    )
    github.add_argument("--output", type=Path, metavar="FILE", help="write it there (stdout)")
    github.set_defaults(run=_github)
    cron = add_command(
        targets, "crontab", "a crontab", CRONTAB, "  penstock export crontab | crontab -"
    )
    cron.add_argument("--output", type=Path, metavar="FILE", help="write it there (stdout)")
    cron.add_argument(
        "--timezone", default="UTC", metavar="ZONE", help="the zone of the host's clock (UTC)"
    )
    cron.set_defaults(run=_crontab)
    units = add_command(
        targets,
        "systemd",
        "services and timers",
        SYSTEMD,
        "  penstock export systemd --dir /etc/systemd/system",
    )
    units.add_argument("--dir", type=Path, metavar="DIR", help="write them there (stdout)")
    units.set_defaults(run=_systemd)
    cron.add_argument("--user", default="", help="the user it runs as: a table for /etc/cron.d")
    units.add_argument("--user", default="", help="the user it runs as (you)")
    for each in (cron, units):
        each.add_argument(
            "--env-file",
            type=Path,
            metavar="FILE",
            help="sets the variables that penstock.yaml uses (penstock.env beside it)",
        )
    for each in (github, cron, units):
        each.add_argument(
            "--source", action="append", metavar="SOURCE", help="only this source; repeatable"
        )


def _github(args: argparse.Namespace) -> int:
    from penstock.exporters.github_actions import github_actions

    def made(settings: Settings, chosen: list[SourceSettings]) -> Export:
        place = _place(settings, args, folder="", command=("penstock",))
        keys = [source.key for source in chosen]
        return github_actions(_starts(chosen), keys, place, _workplace(settings))

    return _exported(args, made, args.output)


def _crontab(args: argparse.Namespace) -> int:
    from penstock.exporters.crontab import crontab
    from penstock.settings import parse_timezone

    zone = parse_timezone(args.timezone).key

    def made(settings: Settings, chosen: list[SourceSettings]) -> Export:
        place = _place(settings, args, str(settings.root), _command(), _user(args.user))
        return crontab(_starts(chosen), place, zone)

    return _exported(args, made, args.output)


def _systemd(args: argparse.Namespace) -> int:
    import getpass
    from datetime import UTC, datetime

    from penstock.clock import SystemClock
    from penstock.exporters.systemd import systemd

    year = datetime.fromtimestamp(SystemClock().now(), UTC).year

    def made(settings: Settings, chosen: list[SourceSettings]) -> Export:
        user = _user(args.user or getpass.getuser())
        place = _place(settings, args, str(settings.root), _command(), user)
        return systemd(_starts(chosen), place, year)

    return _exported(args, made, None, args.dir)


def _exported(
    args: argparse.Namespace,
    made: Callable[[Settings, list[SourceSettings]], Export],
    file: Path | None = None,
    folder: Path | None = None,
) -> int:
    from penstock.exporters.starts import Inexpressible
    from penstock.settings import find_project, load_settings

    out: Output = args.out
    settings = load_settings(args.project or find_project(Path.cwd()), args.env)
    out.secrets = settings.secrets
    chosen = _chosen(settings, args.source)
    _refuse_secret_schedules(settings)
    try:
        export = made(settings, chosen)
    except Inexpressible as error:
        raise UsageError(f"`penstock export {args.target}` {error}") from None
    if not any(source.schedules for source in chosen):
        out.note("no schedules: every source runs manually")
    if file is not None:
        _write(file, "".join(export.files.values()), out)
    elif folder is not None:
        for name, text in export.files.items():
            _write(folder / name, text, out)
    else:
        _print(export, out)
    for each in export.left_out:
        out.note(f"left out: {each}")
    for each in export.otherwise:
        out.note(f"not the same: {each}")
    return exits.DONE if export.is_whole else exits.PARTIAL


def _print(export: Export, out: Output) -> None:
    for name, text in export.files.items():
        if len(export.files) > 1:
            out.line(f"# ---- {name}")
        for line in text.splitlines():
            out.line(line)


def _write(file: Path, text: str, out: Output) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file} can't be written ({error.strerror})") from None
    out.note(f"wrote {file}")


def _chosen(settings: Settings, names: Sequence[str] | None) -> list[SourceSettings]:
    from penstock.settings import normalise_source

    if not names:
        return list(settings.sources.values())
    keys = dict.fromkeys(normalise_source(name) for name in names)
    for key in keys:
        if key not in settings.sources:
            raise UsageError(
                f"{settings.file.name} has no source {key!r}", nearest(key, settings.sources)
            )
    return [settings.sources[key] for key in keys]


def _refuse_secret_schedules(settings: Settings) -> None:
    """What is exported is written down: no part of it may be what the environment has given."""
    from penstock.settings.variables import variables_by_path

    for path, names in variables_by_path(settings.file, settings.environment).items():
        is_schedule = path[0] == "sources" and path[2:3] == ("schedule",)
        is_file = path[0] == "store" and not settings.is_on_postgres
        if is_schedule or is_file or path[0] == "project":
            raise ConfigError(
                f"{settings.file.name}: {'.'.join(path)} takes ${{{names[0]}}} from the environment, "
                "and an export would write its value down",
                "write the value itself there, if it is no secret",
            )


def _starts(chosen: list[SourceSettings]) -> list[Start]:
    from penstock.exporters.starts import starts_of

    return starts_of(chosen)


def _place(
    settings: Settings,
    args: argparse.Namespace,
    folder: str,
    command: tuple[str, ...],
    user: str = "",
) -> Place:
    from penstock.exporters.starts import Place
    from penstock.settings.variables import variables_by_path

    used = variables_by_path(settings.file, settings.environment)
    env_file = getattr(args, "env_file", None) or settings.root / "penstock.env"
    return Place(
        project=settings.project,
        folder=folder,
        command=command,
        variables=tuple(sorted({name for names in used.values() for name in names})),
        environment=settings.environment,
        env_file=str(env_file.absolute()),
        user=user,
        writes=_writes(settings),
    )


def _writes(settings: Settings) -> tuple[str, ...]:
    file = () if settings.is_on_postgres else (str(settings.store_file.parent),)
    raw = (str(settings.snapshots),) if isinstance(settings.snapshots, Path) else ()
    return (*file, *raw)


def _command() -> tuple[str, ...]:
    """This very Penstock, wherever it is installed."""
    return (sys.executable, "-P", "-m", "penstock")


def _user(name: str) -> str:
    if name and not USER.fullmatch(name):
        raise UsageError(f"{name!r} can't be the name of a user")
    return name


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
