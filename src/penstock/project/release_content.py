"""What a release of a project as it is now would be: its manifest, and the contents that it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import Refused, UsageError
from penstock.gates.loaded import hash_of as loaded_hash
from penstock.pipeline.imported_files import module_of
from penstock.project.release_files import ReleaseFiles, files_of
from penstock.releases.manifest import Manifest, canonical, hash_of
from penstock.settings.connector import BUILT_IN, find_connector
from penstock.settings.environment import variables_in
from penstock.settings.load import environments_of, read_layers
from penstock.settings.release import LOCAL
from penstock.settings.secrets import MASK, masker_for
from penstock.settings.section import plain
from penstock.version import __version__

if TYPE_CHECKING:
    from penstock.pipeline.graph import Graph
    from penstock.project.opened import Opened
    from penstock.settings import Settings


@dataclass(frozen=True, slots=True)
class ReleaseContent:
    """A manifest with everything that it names, by hash."""

    manifest: Manifest
    contents: dict[str, bytes]


def content_of(project: Opened, site_schemas: Mapping[str, bytes]) -> ReleaseContent:
    """The release that this folder is now, with these site schemas.

    Every pipeline is loaded, also of sources whose variables are not set here.
    """
    return _Gathering(project.settings, _graphs(project)).content(site_schemas)


class _Gathering:
    def __init__(self, settings: Settings, graphs: Mapping[str, Graph]) -> None:
        self._settings = settings
        self._graphs = graphs
        self._contents: dict[str, bytes] = {}

    def content(self, site_schemas: Mapping[str, bytes]) -> ReleaseContent:
        settings, files = self._settings, self._files
        documents = _configurations(settings.file, files)
        manifest = Manifest(
            project=settings.project,
            penstock=__version__,
            configuration={name: self._keep(canonical(each)) for name, each in documents.items()},
            variables={name: _variables(each) for name, each in documents.items()},
            masked=sorted(files.masked),
            files={name: self._keep(each) for name, each in sorted(files.contents.items())},
            pipelines={code: graph.version for code, graph in sorted(self._graphs.items())},
            collections={
                name: self._keep(canonical(each.schema))
                for name, each in sorted(settings.collections.items())
            },
            connectors=_connectors(settings),
            site_schemas={name: self._keep(each) for name, each in sorted(site_schemas.items())},
        )
        return ReleaseContent(manifest, self._contents)

    @cached_property
    def _files(self) -> ReleaseFiles:
        loaded = {file for graph in self._graphs.values() for file in graph.files}
        modules = {each.pipeline.partition(":")[0] for each in self._settings.sources.values()}
        root = self._settings.root.resolve()
        modules |= {
            module_of(file, root)
            for file in loaded
            if file.is_relative_to(root) and file.suffix == ".py"
        }
        return files_of(self._settings, sorted(modules - {""}), loaded)

    def _keep(self, content: bytes) -> str:
        name = hash_of(content)
        self._contents[name] = content
        return name


def _graphs(project: Opened) -> dict[str, Graph]:
    """The pipelines of all sources, by what loads them; the first that can't be loaded is raised."""
    settings = project.settings
    # Their code can be looked at without the variables that running them needs.
    looking = type(project)(replace(settings, unset=())) if settings.unset else project
    found: dict[str, Graph] = {}
    for source in settings.sources.values():
        if source.code in found:
            continue
        if not source.code or "${" in source.code:
            raise UsageError(f"sources.{source.key}.pipeline needs a variable that is not set here")
        found[source.code] = looking.graph(replace(source, unset=()))
        _refuse_stale(found[source.code])
    return found


def _refuse_stale(graph: Graph) -> None:
    """A server that has loaded its code long ago must not take today's files for it."""
    for file, known in graph.files.items():
        if not file.is_file() or loaded_hash(file.read_bytes()) != known:
            raise Refused(
                f"{file.name} has changed since this process loaded it",
                "restart it, or make the release on the command line",
                code="code_changed",
            )


def _configurations(file: Path, files: ReleaseFiles) -> dict[str, Any]:
    """The merged configuration of each environment, with variables by their names."""
    masker = masker_for(frozenset(files.masked.values()))
    overlays = environments_of(file)
    names = {LOCAL: None, **{name: name for name in overlays}}
    return {
        name: _masked(plain(read_layers(file, environment)), masker, files)
        for name, environment in sorted(names.items())
    }


def _masked(value: Any, masker: Any, files: ReleaseFiles) -> Any:
    if isinstance(value, dict):
        return {name: _masked(each, masker, files) for name, each in value.items()}
    if isinstance(value, list):
        return [_masked(each, masker, files) for each in value]
    if str(value) in files.masked.values():
        return MASK
    return masker.mask(value) if isinstance(value, str) else value


def _variables(document: Any) -> list[str]:
    return sorted(set(_named(document)))


def _named(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [name for each in value.values() for name in _named(each)]
    if isinstance(value, list):
        return [name for each in value for name in _named(each)]
    return [*variables_in(value)] if isinstance(value, str) else []


def _connectors(settings: Settings) -> dict[str, str]:
    """The connectors that sources use, with the version of what brings each and its own."""
    names = sorted({each.connector for each in settings.sources.values() if each.connector})
    return {name: _version_of(name) for name in names}


def _version_of(name: str) -> str:
    connector = find_connector(name)
    if name in BUILT_IN:
        return f"penstock {__version__}, {connector.version}"
    package = connector.distribution
    try:
        return f"{package} {version(package)}, {connector.version}"
    except PackageNotFoundError:
        return f"{package}, {connector.version}"
