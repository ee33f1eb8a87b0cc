"""One checkup: every area in order, each as far as the ones before it allow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from penstock.app import config
from penstock.app.doctor import (
    clocks,
    configuration,
    disk,
    network,
    permissions,
    release,
    store,
    versions,
)
from penstock.app.doctor.findings import Area
from penstock.app.project import Project
from penstock.app.views.doctor import CheckupFindingView, CheckupView, checkup_view
from penstock.errors import PenstockError

AREAS = (
    "config", "secrets", "permissions", "disk", "store", "release", "clock", "time zones", "network",
    "versions",
)  # fmt: skip
Findings = Iterator[CheckupFindingView]


def check_up(
    place: Path | str | None = None,
    environment: str | None = None,
    *,
    is_quick: bool = False,
    is_offline: bool = False,
    on_area: Callable[[str], None] = lambda _: None,
) -> CheckupView:
    """Look at everything that the project needs of this machine; nothing is changed.

    `is_quick` does not read the whole database, `is_offline` looks up no host. `on_area` is called before
    each area.
    """
    began = (time.time(), time.monotonic())
    findings: list[CheckupFindingView] = []

    def look(area: str, found: Findings) -> None:
        on_area(area)
        findings.extend(found)

    try:
        folder = config.find(place)
        project = Project.open(folder, environment)
    except PenstockError:
        look("config", configuration.broken(place, environment))
        unread = ("secrets", "permissions", "store", "release", "time zones")
        findings += [Area(area).skipped("penstock.yaml can't be read") for area in unread]
        look("disk", disk.look([Path.cwd()]))
        look("clock", clocks.look(None, began))
        look("network", network.look(None, is_offline))
        look("versions", versions.look(None))
        return checkup_view(findings)

    settings = project.settings
    with project:
        look("config", configuration.look(folder, environment))
        look("secrets", configuration.secrets(folder, environment, settings))
        # Before the store: opening its file closes what everybody could read.
        look("permissions", permissions.look(settings))
        look("disk", disk.look(disk.folders_of(settings)))
        look("store", store.look(project, is_quick))
        look("release", release.look(project))
        look("clock", clocks.look(project, began))
        look("time zones", clocks.zones(settings))
        look("network", network.look(settings, is_offline))
        look("versions", versions.look(settings))
    return checkup_view(findings, settings.secrets)
