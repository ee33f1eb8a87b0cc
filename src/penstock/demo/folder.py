"""The demo's project folder: made once, recognised again, never made of somebody else's files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

from penstock.errors import Refused, UsageError

# Holds the ports the site was served from, so that it is found at the same addresses next time.
MARKER = ".penstock-demo"
CONFIG = "penstock.yaml"


def known_ports(folder: Path) -> dict[str, int] | None:
    """The ports of an earlier demo in this folder; None if there was none and there may be one."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file, not a folder", "choose another with --dir")
    marker = folder / MARKER
    if marker.exists():
        return _read_ports(marker)
    if folder.exists() and any(folder.iterdir()):
        raise Refused(
            f"{folder} is not empty and is not a folder of the demo",
            "choose another with --dir; nothing in it was changed",
        )
    return None


def lay_out(folder: Path, ports: Mapping[str, int]) -> None:
    """Write what the folder lacks of the demo project, with the site's addresses filled in.

    Files that are there are kept as they are, because people edit them; only the site's addresses
    are brought up to date if its ports had to change.
    """
    former = known_ports(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # Before the files: a folder left half written must be recognised as ours.
    (folder / MARKER).write_text(json.dumps(dict(ports)) + "\n", encoding="utf-8")
    for name, text in template("project"):
        path = folder / name
        if not path.exists():
            path.write_text(_address(text, ports), encoding="utf-8")
        elif name == CONFIG and former is not None and former != dict(ports):
            path.write_text(_readdress(path.read_text("utf-8"), former, ports), encoding="utf-8")


def template(name: str) -> Iterator[tuple[str, str]]:
    """The files of a bundled starting point (`project`, `first` or `site_agents`), by name."""
    for entry in sorted(
        files("penstock.demo").joinpath(name).iterdir(), key=lambda each: each.name
    ):
        if entry.is_file():
            yield entry.name, entry.read_text("utf-8")


def origin(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def _address(text: str, ports: Mapping[str, int]) -> str:
    for host, port in ports.items():
        text = text.replace(f"http://{host}.invalid", origin(port))
    return text


def _readdress(text: str, former: Mapping[str, int], ports: Mapping[str, int]) -> str:
    # By way of the template's names: two hosts may have exchanged their ports.
    for host, port in former.items():
        text = text.replace(f"{origin(port)}/", f"http://{host}.invalid/")
    return _address(text, ports)


def _read_ports(marker: Path) -> dict[str, int]:
    try:
        found = json.loads(marker.read_text("utf-8"))
        return {str(host): int(port) for host, port in found.items()}
    except (ValueError, AttributeError, TypeError) as error:
        hint = "remove the folder; the demo makes a new one"
        raise Refused(f"{marker} is damaged: it should hold the demo's ports", hint) from error
