"""Files: folders that schedules watch, by the host that leads.

Events are hints that something may have landed; a look at the folder decides, and is taken now and then
without any hint. Where there are no events (no watchfiles, or a folder that is not there yet), folders are
looked at all the time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from penstock.http.folder import scan
from penstock.project import Project
from penstock.schedules.landed_files import LandedFiles
from penstock.settings.pattern import Pattern, pattern_of
from penstock.settings.values import ScheduleSettings, WatchSettings
from penstock.store.store import Store

ACTOR = "watch"
# A look must not be more than so much of the time, however large a folder is.
SHARE = 20
# Events that come together are one hint.
GATHER_MS = 200


class Eye(Protocol):
    """Says that something may have changed in a folder."""

    def has_seen(self) -> bool:
        """Whether something may have changed since this was last asked."""
        ...

    @property
    def is_open(self) -> bool: ...

    def close(self) -> None: ...


class Blind:
    """Sees nothing, so something may always have changed."""

    is_open = False

    def has_seen(self) -> bool:
        return True

    def close(self) -> None:
        return None


class Watching:
    """Events of the operating system, by watchfiles, in a thread of their own."""

    def __init__(self, root: Path, is_deep: bool) -> None:
        from watchfiles import watch

        self._watch = watch
        self._root = root
        self._is_deep = is_deep
        self._hint = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watch", daemon=True)
        self._thread.start()

    def _look(self) -> None:
        with suppress(Exception):  # a hint less: its folder is looked at without, and watched anew
            for _ in self._watch(
                self._root,
                watch_filter=None,
                debounce=GATHER_MS,
                rust_timeout=500,
                yield_on_timeout=False,
                stop_event=self._stop,
                raise_interrupt=False,
                recursive=self._is_deep,
                ignore_permission_denied=True,
            ):
                self._hint.set()

    @property
    def is_open(self) -> bool:
        return self._thread.is_alive()

    def has_seen(self) -> bool:
        has_seen = self._hint.is_set()
        self._hint.clear()
        return has_seen

    def close(self) -> None:
        self._stop.set()


def open_eye(root: Path, is_deep: bool) -> Eye:
    try:
        return Watching(root, is_deep) if root.is_dir() else Blind()
    except (ImportError, OSError):
        return Blind()


class Files:
    """All folders that this project's schedules watch."""

    def __init__(
        self, project: Project, store: Store, eyes: Callable[[Path, bool], Eye] = open_eye
    ) -> None:
        self._project = project
        self._store = store
        self._eyes = eyes
        self._folders: list[_Folder] = []

    def plan(self) -> None:
        """Watch by this project's configuration, from what the store knows to have landed."""
        self.close()
        sources = self._project.settings.sources
        ids = self._store.sources.ensure(list(sources))
        for key, source in sources.items():
            for schedule in source.schedules:
                if schedule.watch is not None:
                    place = (ids[key], schedule)
                    self._folders.append(
                        _Folder(self._project, self._store, *place, schedule.watch, self._eyes)
                    )

    def look(self, may_go_on: Callable[[], bool] = lambda: True) -> list[int]:
        """Look where it is time to; answers with the signals of what has landed."""
        signals = []
        for folder in self._folders:
            if may_go_on():
                signal_id = folder.look()
                if signal_id is not None:
                    signals.append(signal_id)
        return signals

    @property
    def are_settling(self) -> bool:
        """Whether something is on its way that will start a run when it has landed."""
        return any(folder.is_settling for folder in self._folders)

    def close(self) -> None:
        for folder in self._folders:
            folder.close()
        self._folders = []


class _Folder:
    """One folder, watched for one schedule."""

    def __init__(
        self,
        project: Project,
        store: Store,
        source_id: int,
        schedule: ScheduleSettings,
        settings: WatchSettings,
        eyes: Callable[[Path, bool], Eye],
    ) -> None:
        self._clock = project.clock
        self._store = store
        self._place = (source_id, schedule.name)
        self._rescan_s = settings.rescan_s
        self._pattern = pattern_of(settings.pattern)
        self._root = folder_of(project, self._pattern)
        self._landing = LandedFiles(settings.debounce_s, store.files.landed(*self._place))
        self._eyes = eyes
        self._eye: Eye = Blind()
        self._look_at = float("-inf")
        self._rest_until = float("-inf")

    def look(self) -> int | None:
        now = self._clock.monotonic()
        has_seen = self._eye.has_seen()
        if has_seen:
            self._look_at = min(self._look_at, now)
        if now < self._rest_until or (now < self._look_at and not self._landing.is_waiting):
            return None
        if not self._eye.is_open:
            self._eye.close()
            self._eye = self._eyes(self._root, self._pattern.depth != 1)
        found = scan(self._root, self._pattern)
        took_s = self._clock.monotonic() - now
        self._rest_until = now + SHARE * took_s
        self._look_at = now + self._rescan_s
        return None if found is None else self._judge(found, now)

    def _judge(self, found: dict[str, str], now: float) -> int | None:
        landed = self._landing.look(found, now)
        signal_id = None
        if landed:
            signal_id = self._store.files.land(*self._place, landed, ACTOR)
            self._landing.has_landed(landed)
        gone = self._landing.gone(found)
        if gone:
            self._store.files.note_gone(*self._place, gone)
            self._landing.forget(gone)
        return signal_id

    @property
    def is_settling(self) -> bool:
        return self._landing.is_settling(self._clock.monotonic())

    def close(self) -> None:
        self._eye.close()


def folder_of(project: Project, pattern: Pattern) -> Path:
    """The folder that is looked through for what a pattern means."""
    return Path(os.path.normpath(project.settings.root / pattern.root))
