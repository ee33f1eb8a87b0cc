"""Addresses and keys of what a repository has: each has one, and no two the same."""

from __future__ import annotations

import hashlib

import msgspec

from penstock.connectors.contract import Item
from penstock.connectors.files import paths
from penstock.connectors.github.rows import Row

_encode = msgspec.json.Encoder(order="deterministic").encode


class Part(msgspec.Struct, frozen=True):
    """A part of a repository: `octocat/hello-world/issues`."""

    source: str
    name: str

    @property
    def address(self) -> str:
        """What the addresses of all that is in it begin with."""
        return prefix_of(self.source) + (f"{self.name}/" if self.name else "")

    def item(self, kind: str, name: object, row: Row) -> Item:
        """A row of a listing. It is recognised as changed by all that is taken of it."""
        key = f"{self.name}/{name}" if name else self.name
        plain = msgspec.to_builtins(row)
        about = {"kind": kind, "row": plain}
        return Item(key, prefix_of(self.source) + key, fingerprint_of(_encode(plain)), about)

    def reviews(self, repository: str, number: int, updated_at: str) -> Item:
        """All reviews of a pull request, which are asked for again when it was updated."""
        key = f"{self.name}/{number}"
        about = {"kind": "reviews", "repository": repository, "number": number}
        mark = fingerprint_of(updated_at.encode())
        return Item(key, prefix_of(self.source) + key, mark, about)

    def file(self, path: str, blob: str, repository: str) -> Item:
        """A file of a tree: with the same blob it has the same content, under whatever name."""
        key = f"{self.name}/{paths.key_of(path)}" if self.name else paths.key_of(path)
        about = {"kind": "file", "blob": blob, "repository": repository}
        return Item(key, prefix_of(self.source) + key, blob, about)


def prefix_of(source: str) -> str:
    """What the addresses of a source begin with."""
    return f"github://{source}/"


def fingerprint_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
