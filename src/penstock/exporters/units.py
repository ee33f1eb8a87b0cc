"""systemd's units: what every service says, whatever it starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from penstock.exporters.starts import Inexpressible, Place, is_one_line

_TMP = ("/tmp/", "/var/tmp/")  # noqa: S108
_SERVICE = """\
[Unit]
Description={title}
Wants=network-online.target
After=network-online.target

[Service]
Type={kind}
User={user}
{environment}ExecStart=/usr/bin/env {command}
{restart}KillMode=mixed
TimeoutStopSec={grace_s}
UMask=0077
NoNewPrivileges=yes
PrivateTmp={private_tmp}
PrivateDevices=yes
ProtectSystem=strict
ProtectHome=read-only
ReadWritePaths={folders}
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
LockPersonality=yes
CapabilityBoundingSet=
"""


def service(
    place: Place,
    title: str,
    words: Sequence[str],
    grace_s: int,
    kind: Literal["oneshot", "exec"],
) -> str:
    """A service that runs these words on the project and may write there alone.

    A service of kind `exec` is started again when it ends.
    """
    folders = tuple(dict.fromkeys((place.folder, *place.writes)))
    for text in (*folders, place.env_file, *place.command):
        if not is_one_line(text) or text.endswith("\\"):
            raise Inexpressible(f"has no way to write {text!r}")
    return _SERVICE.format(
        title=described(title),
        kind=kind,
        user=place.user,
        environment=_environment(place),
        command=" ".join(_word(each).replace("$", "$$") for each in words),
        restart="Restart=always\nRestartSec=2\n" if kind == "exec" else "",
        grace_s=grace_s,
        folders=" ".join(_word(each) for each in folders),
        # Its own /tmp would hide a project that stands there.
        private_tmp="no" if any(each.startswith(_TMP) for each in folders) else "yes",
    )


def described(title: str) -> str:
    # A backslash at its end would join it to the line after it.
    return _value(title.replace("\\", "?"))


def _environment(place: Place) -> str:
    if not place.secrets:
        return ""
    return (
        f"# Must set, readable for its owner only: {' '.join(place.secrets)}\n"
        f"EnvironmentFile={_value(place.env_file)}\n"
    )


def _word(text: str) -> str:
    """One word of a list of them, whatever is in it."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_value(quoted)}"'


def _value(text: str) -> str:
    return text.replace("%", "%%")
