"""Whether a project that was found, and not named, is one that we may obey.

Its code runs with our rights and its `${NAME}` reads our environment, so walking upward must not end at a
file that somebody else has put there.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

from penstock.errors import ConfigError

ROOT = 0


def refuse_foreign(file: Path) -> None:
    """Refuse a project whose file or folder others own or can write; whoever trusts it names it."""
    for path in (file, file.parent):
        problem = _problem(os.stat(path))
        if problem:
            raise ConfigError(
                f"{path} {problem}, so it is not used unless it is named",
                f"if you trust it: --project {file.parent}",
            )


def _problem(found: os.stat_result) -> str:
    if found.st_uid not in (os.geteuid(), ROOT):
        return f"belongs to {_user(found.st_uid)}"
    if found.st_mode & stat.S_IWOTH:
        return "can be written by everybody"
    if found.st_mode & stat.S_IWGRP and not _is_private(found.st_gid):
        return f"can be written by the group {_group(found.st_gid)}"
    return ""


def _is_private(gid: int) -> bool:
    """Whether a group has nobody in it but us (and root): many systems make one for each user."""
    if gid == ROOT:
        return True
    try:
        us, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return (
        group.gr_gid == us.pw_gid
        and group.gr_name == us.pw_name
        and not (set(group.gr_mem) - {us.pw_name})
    )


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
