"""The nouns of a project, each imported when it is first used: a command that only looks starts at once."""

from __future__ import annotations


class Nouns:
    """What a project has, by name."""
