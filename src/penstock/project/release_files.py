"""The files of a release: penstock.yaml with its overlays, the code, and what the code needs. No secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from penstock.counting import count
from penstock.errors import ConfigError
from penstock.pipeline.imported_files import imported_files
from penstock.settings import Settings
from penstock.settings.document import Entry, display_name
from penstock.settings.dotenv import read_dotenv
from penstock.settings.environment import file_of, variables_in
from penstock.settings.load import environments_of, overlay_file
from penstock.settings.origins import literal_secrets
from penstock.settings.secret_sources import NoSecret, is_source, secret_of
from penstock.settings.secrets import MASK, SECRET_NAME, masker_for

MOST_FILES, MOST_BYTES = 5_000, 50_000_000
# Folders that no pattern means.
SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages"})
# A name that is a secret's, whatever its value looks like. Of others, such as `keyword`, the value decides.
SECRETS_NAME = re.compile(
    r"pass(word|wd|phrase)|pwd|secret|token|api_?key|access_?key|private_?key|credential|auth|bearer|jwt|cookie",
    re.IGNORECASE,
)
# Other values of variables, and keys that may be secret, are taken for secrets where they look like one.
LOOKS_RANDOM = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])\S{20,}", re.DOTALL)
_HEADER = re.compile(r"\.headers\.[^.]+$")
_PASSWORD = re.compile(r"(?<=://)[^/@\s:\"']*:(?P<password>[^/@\s\"']+)(?=@)")


@dataclass(slots=True)
class ReleaseFiles:
    """What the files hold, by their paths, and the keys whose values were left out."""

    contents: dict[str, bytes] = field(default_factory=dict)
    masked: dict[str, str] = field(default_factory=dict)


def files_of(settings: Settings, modules: Iterable[str], loaded: Iterable[Path]) -> ReleaseFiles:
    """The files of a release; refused where one holds a secret that can't be left out."""
    found = ReleaseFiles()
    for environment in (None, *environments_of(settings.file)):
        _add_configuration(found, settings.file, environment)
    code = {*imported_files(settings.root, modules), *_below(settings.root, loaded)}
    schemas = [each.file for each in settings.collections.values()]
    for file in sorted({*code, *schemas, *_included(settings)}):
        name = _name(file, settings.root)
        # One that is configuration is there already, without its secrets.
        if name not in found.contents:
            found.contents[name] = _read(file)
    _refuse_large(found.contents)
    _refuse_secrets(found.contents, known_secrets(settings))
    return found


def known_secrets(settings: Settings) -> dict[str, str]:
    """The values of variables that are secrets, with the name of the variable."""
    environ = {**read_dotenv(settings.root).values, **os.environ}
    names = {name for name in environ if SECRET_NAME.search(name)}
    named = set(_variables(settings))
    found = {}
    for name in named:
        source = name if is_source(name) else file_of(name, environ)
        if source:
            with suppress(NoSecret):
                found[secret_of(source)] = name
    for name in (names & read_dotenv(settings.root).values.keys()) | named:
        value = environ.get(name, "").strip()
        if _is_secret(name, value):
            found[value] = name
    return found


def _is_secret(name: str, value: str) -> bool:
    if len(value) < 4:  # nothing masks it either
        return False
    return (
        SECRETS_NAME.search(name) is not None
        or LOOKS_RANDOM.fullmatch(value) is not None
        or _PASSWORD.search(value) is not None
    )


def _variables(settings: Settings) -> Iterator[str]:
    for environment in (None, *environments_of(settings.file)):
        file = settings.file if environment is None else overlay_file(settings.file, environment)
        yield from variables_in(_read(file).decode("utf-8", "replace"))


def _add_configuration(found: ReleaseFiles, file: Path, environment: str | None) -> None:
    """penstock.yaml or an overlay, with secrets that stand in it masked where they stand."""
    own = file if environment is None else overlay_file(file, environment)
    lines = _read(own).decode("utf-8-sig").splitlines(keepends=True)
    name = display_name(own)
    for path, entry in literal_secrets(file, environment):
        if entry.file == name and _must_be_masked(path, entry):
            found.masked[f"{own.name}: {path}"] = str(entry.value)
            _mask(lines, entry, path)
    text = _PASSWORD.sub(
        lambda each: _without_password(each, found.masked, own.name), "".join(lines)
    )
    found.contents[own.name] = text.encode()


def _must_be_masked(path: str, entry: Entry) -> bool:
    value = str(entry.value)
    name = path.rpartition(".")[2]
    if _HEADER.search(path) or ".params." in path:
        return SECRETS_NAME.search(name) is not None or LOOKS_RANDOM.fullmatch(value) is not None
    return urlsplit(value).scheme != "command"


def _mask(lines: list[str], entry: Entry, path: str) -> None:
    line, value = entry.line - 1, str(entry.value)
    if not 0 <= line < len(lines) or value not in lines[line]:
        raise entry.error(path, "a release holds no secrets: write ${NAME}, and set the variable")
    before, _, after = lines[line].rpartition(value)
    # Without quotes, an asterisk begins an alias of YAML.
    masked = MASK if before.endswith(("'", '"')) else f'"{MASK}"'
    lines[line] = f"{before}{masked}{after}"


def _without_password(found: re.Match[str], masked: dict[str, str], name: str) -> str:
    password = found["password"]
    if variables_in(password) or password == MASK:
        return found[0]
    masked[f"{name}: the password in an address"] = password
    return found[0][: -len(password)] + MASK


def _below(root: Path, files: Iterable[Path]) -> Iterator[Path]:
    real = root.resolve()
    return (root / file.relative_to(real) for file in files if file.is_relative_to(real))


def _included(settings: Settings) -> Iterator[Path]:
    for pattern in settings.release.include:
        matches = [
            file
            for file in settings.root.glob(pattern)
            if file.is_file() and _is_meant(file, settings.root)
        ]
        if not matches:
            raise ConfigError(f"{settings.file.name}: release.include: no file matches {pattern!r}")
        yield from matches


def _is_meant(file: Path, root: Path) -> bool:
    parts = file.relative_to(root).parts
    return SKIPPED.isdisjoint(parts) and not any(part.startswith(".") for part in parts)


def _name(file: Path, root: Path) -> str:
    if not file.is_relative_to(root) or not file.resolve().is_relative_to(root.resolve()):
        raise ConfigError(
            f"{display_name(file)} is not below {root}, so it can't be part of a release",
            "move it beside penstock.yaml",
        )
    return file.relative_to(root).as_posix()


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{display_name(file)}: can't be read ({error.strerror})") from None


def _refuse_large(contents: Mapping[str, bytes]) -> None:
    size = sum(map(len, contents.values()))
    if len(contents) > MOST_FILES or size > MOST_BYTES:
        raise ConfigError(
            f"a release would have {count(len(contents), 'file')} with {size // 1_000_000} MB; the most are "
            f"{MOST_FILES} with {MOST_BYTES // 1_000_000} MB",
            "narrow release.include in penstock.yaml",
        )


def _refuse_secrets(contents: Mapping[str, bytes], secrets: Mapping[str, str]) -> None:
    """Whatever spelling a secret has in a file, the file is no part of a release."""
    masker = masker_for(frozenset(secrets))
    for name, content in contents.items():
        text = content.decode("utf-8", "replace")
        if masker.mask(text) == text:
            continue
        which = next((known for value, known in secrets.items() if value in text), None)
        whose = f"the value of ${{{which}}}" if which else "a secret"
        raise ConfigError(
            f"{name} holds {whose}; a release holds no secrets",
            "take it from ctx.params, or from the environment, instead of writing it into the file",
            code="secret_in_release",
        )
