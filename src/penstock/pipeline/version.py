"""The version of what a source is processed with: its pipeline's code and its own configuration."""

from __future__ import annotations

import hashlib

import msgspec

from penstock.pipeline.graph import Graph
from penstock.settings import SourceSettings

# What an environment gives may be no JSON, and still is a configuration.
_encode = msgspec.json.Encoder(order="deterministic", enc_hook=repr).encode


def version_of(graph: Graph, source: SourceSettings) -> str:
    """Equal for equal code and configuration; what only says when, how fast or how often does not count."""
    matters = {"params": source.params, "threshold": source.threshold}
    if not source.params and source.threshold is None:
        return graph.version
    text = _encode(matters)
    digest = hashlib.blake2b(graph.version.encode() + text, digest_size=8)
    return digest.hexdigest()
