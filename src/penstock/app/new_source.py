"""Adding a source: look at what somebody points at, read a sample of it, and write it into penstock.yaml."""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from penstock.app.recognition import recognise, unreadable
from penstock.app.views.connectors import AddedView, ProbeView
from penstock.errors import ConfigError, Refused
from penstock.settings import FILE_NAME, load_settings, normalise_source
from penstock.settings.address import SQLITE
from penstock.settings.connector import find_connector
from penstock.settings.declaration import decode
from penstock.settings.document import read_value
from penstock.settings.dotenv import read_dotenv
from penstock.settings.fetch import USUAL, FetchKeys, FetchPolicy
from penstock.settings.insertion import is_the_same_but_for, with_source

if TYPE_CHECKING:
    from penstock.http.network import Network

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be added. Keys that are given replace those that were found."""

    target: str = ""
    name: str = ""
    connector: str = ""
    demo: str = ""
    keys: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a target was recognised as."""

    name: str
    connector: str
    keys: dict[str, Any]
    why: str


def propose(folder: Path, wish: Wish, network: Network | None = None) -> Proposal:
    """What the target is, and the source that would read it. A demo's data is written."""
    if wish.demo:
        found = _demo(folder, wish.demo)
    elif wish.connector and not wish.target:
        find_connector(wish.connector)
        found = Proposal(wish.connector, wish.connector, {}, "named")
    else:
        found = _recognised(folder, wish, network)
    find_connector(found.connector).require()
    name = normalise_source(wish.name or found.name)
    return Proposal(name, found.connector, _merged(found.keys, wish.keys), found.why)


def renamed(proposal: Proposal, name: str) -> Proposal:
    """The same under another name."""
    return replace(proposal, name=normalise_source(name))


def add(
    folder: Path, proposal: Proposal, *, dry_run: bool = False, network: Network | None = None
) -> AddedView:
    """Read a sample by the source, and write it into penstock.yaml, which is made if there is none.

    Nothing is written if the sample fails: a source that can't be read now is not worth having.
    """
    file = folder / FILE_NAME
    if file.exists() and load_settings(file).onboarding.required:
        raise Refused(
            "this project requires onboarding, and adding a source reads a sample of it",
            f"propose it as {proposal.name}, with the connector {proposal.connector}",
            code="onboarding_required",
        )
    before = file.read_text("utf-8") if file.exists() else f"project: {_project_name(folder)}\n"
    if file.exists() and proposal.name in load_settings(file).sources:
        raise Refused(
            f"there is a source {proposal.name} already", "give another name: --name NAME"
        )
    keys = {"connector": proposal.connector, **proposal.keys}
    text = with_source(before, proposal.name, keys)
    descriptor, beside = tempfile.mkstemp(".yaml", ".penstock-add-", folder)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as written:
            written.write(text)
        try:
            found = _probed(Path(beside), proposal.name, network)
        except ConfigError as error:
            raise _unfit(error, Path(beside), keys) from None
        if file.exists() and not is_the_same_but_for(file, Path(beside), proposal.name):
            raise Refused(f"{FILE_NAME} would not say the same as before; nothing was written")
        if not dry_run:
            if file.exists():
                os.chmod(beside, file.stat().st_mode & 0o777)
            os.replace(beside, file)
    finally:
        Path(beside).unlink(missing_ok=True)
    return AddedView(
        source=proposal.name,
        connector=proposal.connector,
        keys=keys,
        why=proposal.why,
        facts=found.facts,
        samples=found.samples,
        is_written=not dry_run,
    )


def write_source(file: Path, name: str, keys: dict[str, Any]) -> None:
    """Write a source into penstock.yaml as it is now; no other line is touched.

    Others who do so at the same time wait. Refused with the lines to write where the file can't be written.
    """
    descriptor = os.open(file.parent, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if name not in load_settings(file).sources:
            _write_source(file, name, keys)
    finally:
        os.close(descriptor)


def _write_source(file: Path, name: str, keys: dict[str, Any]) -> None:
    text = with_source(file.read_text("utf-8"), name, keys)
    try:
        written, beside = tempfile.mkstemp(".yaml", ".penstock-add-", file.parent)
    except OSError as error:
        lines = yaml.safe_dump({name: keys}, sort_keys=False, allow_unicode=True)
        hint = f"add this to its sources, then approve again:\n{lines}"
        raise Refused(f"{file.name} can't be written ({error.strerror})", hint) from None
    try:
        with os.fdopen(written, "w", encoding="utf-8") as new:
            new.write(text)
            new.flush()
            os.fsync(new.fileno())
        if not is_the_same_but_for(file, Path(beside), name):
            raise Refused(f"{file.name} would not say the same as before; nothing was written")
        os.chmod(beside, file.stat().st_mode & 0o777)
        os.replace(beside, file)
    finally:
        Path(beside).unlink(missing_ok=True)


def _probed(file: Path, name: str, network: Network | None) -> ProbeView:
    """What would come; refused if that is nothing."""
    from penstock.app.project import Project
    from penstock.app.source_probe import probe

    settings = load_settings(file)
    with tempfile.TemporaryDirectory(prefix="penstock-add-") as folder:
        if not settings.is_on_postgres and not settings.store_file.exists():
            # A project that comes to nothing leaves no database behind.
            settings = replace(settings, store=f"{SQLITE}{folder}/probe.db")
        with Project(settings) as project:
            found = probe(project, name, include_private=True, network=network)
    if name in settings.private_sources:
        found = msgspec.structs.replace(found, notes=[], samples=[], is_hidden=True)
    if found.verdict == "failed":
        kind = f" ({found.kind})" if found.kind else ""
        raise unreadable(f"it can't be read{kind}: {found.reason}")
    if found.verdict == "empty":
        raise Refused("nothing is there that can be read", "nothing was written")
    return found


def _unfit(error: ConfigError, beside: Path, keys: Mapping[str, Any]) -> Refused:
    """What is wrong with the keys; the file that has them is not there any more."""
    place = re.compile(rf"\S{{0,4096}}{re.escape(beside.name)}(:\d{{1,9}})?: ")
    names = sorted(set(_VARIABLE.findall(str(keys))))
    known = {**read_dotenv(beside.parent).values, **os.environ}
    unset = [name for name in names if not known.get(name)]
    wanted = f"set {', '.join(unset)} in the environment or in .env, then add it again"
    return Refused(place.sub("", error.message), wanted if unset else error.hint)


def _project_name(folder: Path) -> str:
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", folder.resolve().name).strip("-.")
    return name if name and not name[0].isdigit() else "my-project"


def _demo(folder: Path, name: str) -> Proposal:
    connector = find_connector(name)
    connector.require()
    sample = connector.sample(folder / f"demo-{name}")
    if sample is None:
        raise Refused(f"the connector {name} has no demo data")
    return Proposal(sample.name, name, sample.keys, "demo data")


def _merged(found: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Keys with those that are given; of a section in both, only the keys that are given change."""
    merged = {**found, **given}
    for name in found.keys() & given.keys():
        if isinstance(found[name], Mapping) and isinstance(given[name], Mapping):
            merged[name] = _merged(found[name], given[name])
    return merged


def _policy(fetch: Any) -> FetchPolicy:
    """How a target is looked at: as the source is to be. What it carries there comes later, by its sample."""
    if fetch is None:
        return USUAL
    keys: FetchKeys = decode(FetchKeys, read_value(yaml.safe_dump(fetch), "--set"), "fetch")
    return replace(
        USUAL,
        allow_private=keys.allow_private,
        robots=keys.robots,
        user_agent=keys.user_agent,
        timeout_s=keys.timeout,
        max_bytes=keys.max_bytes,
    )


def _recognised(folder: Path, wish: Wish, network: Network | None) -> Proposal:
    """As the connector that fits best says, or the one that is named."""
    policy = _policy(wish.keys.get("fetch"))
    connector, found = recognise(folder, wish.target, wish.connector, network, policy)[0]
    return Proposal(found.name or connector, connector, found.keys, found.why)
