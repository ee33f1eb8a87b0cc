"""Connectors by name: those that come with Penstock, and those that installed packages add."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

from penstock.errors import ConfigError, nearest
from penstock.settings.declaration import Keys, Usual, about, names_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "penstock.connectors"
# Named by text: the settings know that there are connectors, and nothing of what they do.
BUILT_IN: dict[str, str] = {
    "files": "penstock.connectors.files:Files",
    "feed": "penstock.connectors.feed:Feed",
    "web": "penstock.connectors.web:Web",
    "obsidian": "penstock.connectors.obsidian:Obsidian",
    "api": "penstock.connectors.api:Api",
    "github": "penstock.connectors.github:GitHub",
    "dump": "penstock.connectors.dump:Dump",
    "market": "penstock.connectors.market:Market",
    "headless": "penstock.connectors.headless:Headless",
    "imap": "penstock.connectors.imap:Imap",
}


class ConnectorKeys(Keys, frozen=True):
    """Keys that every connector has."""

    collection: Annotated[
        str | None,
        about("collection that the documents are saved in"),
        Usual("the name of the source"),
    ] = None

    def headers_for(self) -> dict[str, dict[str, str]]:
        """Headers of its requests, credentials too, by the origin that alone gets them."""
        return {}


def connector_names() -> list[str]:
    """Every connector that can be named, those of Penstock first."""
    return [*BUILT_IN, *sorted(_installed().keys() - BUILT_IN.keys())]


@cache
def find_connector(name: str) -> Any:
    """The class of a connector; a ConfigError in one line if there is none or it can't be used."""
    place = BUILT_IN.get(name) or _place_of(name)
    try:
        module, _, attribute = place.partition(":")
        found = getattr(import_module(module), attribute)
        keys = keys_of_connector(found)
    except Exception as error:  # an installed package may fail in any way
        raise ConfigError(
            f"the connector {name!r} ({place}) can't be loaded: {type(error).__name__}: {error}"
        ) from error
    taken = set(names_of(keys)) & _keys_of_sources()
    if taken:
        raise ConfigError(f"the connector {name!r} has keys of every source: {', '.join(taken)}")
    return found


def keys_of_connector(connector: Any) -> type[ConnectorKeys]:
    """The Struct of a connector's keys."""
    keys = getattr(connector, "Settings", None)
    if not isinstance(keys, type) or not issubclass(keys, ConnectorKeys):
        raise TypeError("its Settings must be a subclass of penstock.connectors.ConnectorKeys")
    return keys


def _keys_of_sources() -> set[str]:
    from penstock.settings.source import SOURCE_KEYS

    return set(SOURCE_KEYS)


def _place_of(name: str) -> str:
    """Module and class of a connector that an installed package adds."""
    entry = _installed().get(name)
    if entry is None:
        raise ConfigError(f"there is no connector {name!r}, {nearest(name, connector_names())}")
    return f"{entry.module}:{entry.attr}"


@cache
def _installed() -> dict[str, EntryPoint]:
    # Reading what is installed takes longer to import than any room of Penstock: only who asks for it pays.
    from importlib.metadata import entry_points

    return {each.name: each for each in entry_points(group=GROUP)}
