"""A manifest: everything that a release is, each part named by the hash of its content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from penstock.errors import StoreError

FORMAT = 1
# How much of an id people are shown, and how little of one is understood.
SHOWN, SHORTEST = 12, 6

_encode = msgspec.json.Encoder(order="deterministic").encode


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a release is. Contents are kept beside it, each under its hash.

    `configuration` is the merged configuration of each environment, with variables by their names;
    `variables` are these names, and `masked` the keys whose values were left out because they are secrets.
    `files` are penstock.yaml, its overlays, the code and what the code needs, by their paths. `pipelines` are
    versions; `site_schemas` are records of that collection, by the domain.
    """

    format: int = FORMAT
    project: str
    penstock: str
    configuration: dict[str, str]
    variables: dict[str, list[str]] = {}
    masked: list[str] = []
    files: dict[str, str] = {}
    pipelines: dict[str, str] = {}
    collections: dict[str, str] = {}
    connectors: dict[str, str] = {}
    site_schemas: dict[str, str] = {}

    @property
    def encoded(self) -> bytes:
        return _encode(self)

    @property
    def id(self) -> str:
        return hash_of(self.encoded)

    @property
    def environments(self) -> Sequence[str]:
        """The environments that it can come into."""
        return list(self.configuration)

    @property
    def code(self) -> dict[str, str]:
        """The files without configuration, which is compared as it is merged."""
        return {path: each for path, each in self.files.items() if not is_configuration(path)}

    @property
    def contents(self) -> list[str]:
        """The hashes of everything that is kept beside it."""
        parts = (self.configuration, self.files, self.collections, self.site_schemas)
        return sorted({each for part in parts for each in part.values()})

    def runs(self, environment: str) -> str:
        """What a worker of this environment runs: equal for releases between which it sees no difference.

        Site schemas are records, which agents write while they work: they are part of a release, and not
        of what a worker has loaded.
        """
        return hash_of(_encode(list(self.parts(environment).items())))

    def parts(self, environment: str) -> dict[str, str]:
        """The same piece by piece, by what people call it."""
        return {
            "penstock": self.penstock,
            "configuration": self.configuration.get(environment, ""),
            **{f"file {path}": each for path, each in self.code.items()},
            **{f"pipeline {name}": each for name, each in self.pipelines.items()},
            **{f"collection {name}": each for name, each in self.collections.items()},
            **{f"connector {name}": each for name, each in self.connectors.items()},
        }


def hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def canonical(value: object) -> bytes:
    """The one way to write a value as JSON."""
    return _encode(value)


def is_configuration(path: str) -> bool:
    """Whether a file is penstock.yaml or an overlay of it."""
    return "/" not in path and path.startswith("penstock.") and path.endswith(".yaml")


def read_manifest(text: bytes, release: str) -> Manifest:
    """The manifest of this id; refused where it is not what the id was made of."""
    if hash_of(text) != release:
        raise changed(f"release {release[:SHOWN]} is not what it was made as")
    try:
        return msgspec.json.decode(text, type=Manifest)
    except msgspec.MsgspecError as error:
        raise changed(f"release {release[:SHOWN]} can't be read: {error}") from None


def refuse_changed(contents: Mapping[str, bytes], release: str) -> None:
    """Refuse contents that are not what their hashes say."""
    for name, content in contents.items():
        if hash_of(content) != name:
            raise changed(f"a file of release {release[:SHOWN]} is not what it was made as")


def changed(problem: str) -> StoreError:
    return StoreError(
        problem,
        "somebody has changed the database: make the release again, and verify the journal",
        code="release_changed",
    )
