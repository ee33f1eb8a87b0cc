"""Code that changes while workers run: it is noticed, checked in a process of its own, and loaded afresh.

A Python process can't unload what it has imported. To reload, the workers are drained and the command
starts itself again: what runs is finished with the code that it began with, and the rest with the new.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

from penstock.engine.supervisor.shutdown import Shutdown
from penstock.errors import PenstockError
from penstock.gates.loaded import hash_of
from penstock.project import Project
from penstock.project.stale_code import named
from penstock.settings import Settings

CHECK_S = 60.0
Found = tuple[tuple[str, str], ...]


class CodeChanged(Exception):
    """The workers were drained because there is new code: the command is to start again."""


class CodeWatch:
    """The files of a project as they were loaded, and which of them are different now."""

    def __init__(self, project: Project) -> None:
        self._root = project.settings.root
        self._loaded = project.files()
        self._stats: dict[str, tuple[int, int]] = {}
        self._now: dict[str, str] = {}
        self._seen: Found = ()

    def news(self) -> list[str]:
        """The changed files, each time that something has changed since the last look."""
        found = tuple(
            (name, now) for name in self._loaded if (now := self._hash(name)) != self._loaded[name]
        )
        is_new, self._seen = found != self._seen, found
        return [name for name, _ in found] if is_new else []

    def _hash(self, name: str) -> str:
        """Files are read only when they were written to."""
        file = self._root / name
        try:
            stat = file.stat()
            if self._stats.get(name) != (stat.st_mtime_ns, stat.st_size):
                self._now[name] = hash_of(file.read_bytes())
                self._stats[name] = (stat.st_mtime_ns, stat.st_size)
        except OSError:
            self._stats.pop(name, None)
            return ""
        return self._now[name]


class CodeReload:
    """Says that files have changed since they were loaded, or makes way for the new code once it is sound."""

    def __init__(
        self,
        project: Project,
        shutdown: Shutdown,
        make_way: Callable[[], None],
        tell: Callable[[str], None],
        *,
        reloads: bool,
    ) -> None:
        self._project = project
        self._shutdown = shutdown
        self._make_way = make_way
        self._tell = tell
        self._reloads = reloads
        self._watch: CodeWatch | None = None
        self._checking: asyncio.Task[None] | None = None
        # Whether the workers were drained for it: the command is to start again.
        self.is_due = False

    async def look(self) -> None:
        if self._checking is not None and not self._checking.done():
            return
        if self._watch is None:
            self._watch = CodeWatch(self._project)
        files = self._watch.news()
        if not files:
            return
        what = named(files)
        if self._reloads:
            # Beside the loop: leases are renewed meanwhile.
            self._checking = asyncio.create_task(self._reload(what))
        else:
            self._tell(f"{what} changed: workers keep using the old code; restart, or use --reload")

    def cancel(self) -> None:
        if self._checking is not None:
            self._checking.cancel()

    async def _reload(self, what: str) -> None:
        trouble = await trouble_with(self._project.settings)
        if self._shutdown.is_leaving:
            return
        if trouble:
            self._tell(
                f"{what} changed, but can't be loaded; workers keep using the old code: {trouble}"
            )
            return
        self._tell(f"{what} changed: finishing running work, then loading the new code")
        self.is_due = True
        self._make_way()


async def trouble_with(settings: Settings) -> str:
    """Why the project as it is now can't be loaded; empty if it can."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "penstock.engine.supervisor.code_reload",
        "--project",
        str(settings.root),
    ]
    if settings.environment is not None:
        command += ["--env", settings.environment]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=pipe
    )
    try:
        _, errors = await asyncio.wait_for(process.communicate(), CHECK_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"loading it takes longer than {CHECK_S:g} s"
    if process.returncode == 0:
        return ""
    return errors.decode(errors="replace").strip() or f"loading it ended with {process.returncode}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="penstock.engine.supervisor.code_reload")
    parser.add_argument("--project", type=Path, required=True)
    parser.add_argument("--env")
    args = parser.parse_args()
    try:
        Project.load(args.project, args.env)
    except PenstockError as error:
        print(f"{error.message}\n  {error.hint}".rstrip(), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
