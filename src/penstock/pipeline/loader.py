"""The loader: a source's pipeline, imported from beside penstock.yaml and refused where it could not run.

A user's module may fail in any way while it is imported; each is said in one line.
"""

from __future__ import annotations

import importlib
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from penstock.errors import ConfigError, PipelineError, nearest
from penstock.jobs.retry import RetryClass
from penstock.pipeline.graph import Graph
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.registry import Registry
from penstock.schemas.models import check_of
from penstock.schemas.problems import SchemaError
from penstock.settings import Settings, WorkerSettings

# The name of a profile, or what a configuration says of one.
Choice: TypeAlias = str | dict[str, Any]


def load_graph(pipeline: str, root: Path, where: str, profile: Choice = "") -> Graph:
    """Import `module:name` from a project's folder, and check it."""
    found = load_pipeline(pipeline, root, where, profile)
    if found.reads:
        raise ConfigError(
            f"{where}: pipeline {found.name!r} reads by a connector, and the source has none",
            f"add connector: {found.reads[0]}, and where it begins",
        )
    try:
        return found.compile()
    except PipelineError as error:
        raise PipelineError(f"{where}: {error.message}", error.hint) from error


def load_pipeline(pipeline: str, root: Path, where: str, profile: Choice = "") -> Pipeline:
    """The same, not checked yet; of a registry, the pipeline of this profile."""
    found = load_object(pipeline, root, where)
    if not isinstance(found, (Pipeline, Registry)):
        raise ConfigError(
            f"{where}: {pipeline!r} is a {type(found).__name__}, not a Pipeline or a Registry"
        )
    try:
        return pipeline_of(found, profile)
    except PipelineError as error:
        raise PipelineError(f"{where}: {error.message}", error.hint) from error


def pipeline_of(found: Pipeline | Registry, profile: Choice) -> Pipeline:
    """The pipeline itself, or the one that a profile makes of a registry."""
    if isinstance(found, Registry):
        return Pipeline.from_registry(found, profile)
    if profile:
        raise PipelineError(
            f"{found!r} has no profiles, which are of a Registry", "leave out `profile`"
        )
    return found


def load_object(pipeline: str, root: Path, where: str) -> object:
    """What `module:name` is, whatever that may be."""
    module_name, _, name = pipeline.partition(":")
    module = import_beside(module_name, root, where)
    found = getattr(module, name, None)
    if found is None:
        known = (Pipeline, Registry)
        pipelines = [key for key, value in vars(module).items() if isinstance(value, known)]
        raise ConfigError(
            f"{where}: module {module_name!r} has no {name!r}", nearest(name, pipelines)
        )
    return found


def refuse_what_never_fits(graph: Graph, worker: WorkerSettings, where: str) -> None:
    """A step that needs more than a worker has would wait for ever."""
    for stage in graph.stages:
        for name, needs, has in (
            ("cpu", stage.cpu, worker.cpu),
            ("memory_mb", stage.memory_mb, worker.memory_mb),
        ):
            if needs > has:
                raise ConfigError(
                    f"{where}: step {stage.name!r} needs {name} {needs:g}, a worker has {has:g}",
                    f"raise worker.{name} in penstock.yaml, or ask for less in the step",
                )


def refuse_unknown_retries(graph: Graph, known: Mapping[str, RetryClass], where: str) -> None:
    """A retry class that a pipeline or a step names must be one of the project's."""
    for who, choice in (
        (f"pipeline {graph.name!r}", graph.retry),
        *((f"step {stage.name!r}", stage.retry) for stage in graph.stages),
    ):
        if choice is not None and choice.name is not None and choice.name not in known:
            raise PipelineError(
                f"{where}: {who}: unknown retry {choice.name!r}; {nearest(choice.name, known)}",
                "penstock.yaml can define more classes under retries:",
            )


def refuse_bad_schemas(settings: Settings) -> None:
    """The schemas of collections must be usable before anything is saved."""
    for name, collection in settings.collections.items():
        try:
            check_of(collection.schema)
        except SchemaError as error:
            where = f"{settings.file.name}: collections.{name}.schema"
            raise ConfigError(f"{where}: {collection.file.name}: {error}") from None


def put_on_path(root: Path) -> None:
    """Make the modules beside penstock.yaml importable, without hiding any of Python's own.

    Behind the standard library, before what is installed: a `random.py` in a project must not become
    everybody's `random`, and an installed `products` must not hide the project's.
    """
    folder = str(root)
    if folder not in sys.path:
        sys.path.insert(_first_installed(), folder)


def _first_installed() -> int:
    ours = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    last = max((at for at, path in enumerate(sys.path) if _is_of_python(path, ours)), default=-1)
    return last + 1


def _is_of_python(path: str, ours: set[str]) -> bool:
    return path in ours or Path(path).name == "lib-dynload"


def _refuse_name_of_python(module_name: str, root: Path, where: str) -> None:
    top = module_name.partition(".")[0]
    is_there = (root / f"{top}.py").is_file() or (root / top / "__init__.py").is_file()
    if is_there and top in {*sys.stdlib_module_names, "penstock"}:
        owner = "Penstock" if top == "penstock" else "Python's standard library"
        raise ConfigError(
            f"{where}: {top!r} is the name of a module of {owner}",
            f"rename {top!r} beside penstock.yaml, and its name in `pipeline:`",
        )


def import_beside(module_name: str, root: Path, where: str) -> object:
    """A module of the project; whatever is wrong with it is said in one line."""
    _refuse_name_of_python(module_name, root, where)
    put_on_path(root)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name == module_name.split(".", maxsplit=1)[0]:
            beside = [path.stem for path in root.glob("*.py")]
            raise ConfigError(
                f"{where}: there is no module {module_name!r} beside penstock.yaml",
                nearest(module_name, beside),
            ) from error
        raise ConfigError(f"{where}: module {module_name!r} needs {error.name!r}") from error
    except SyntaxError as error:
        raise ConfigError(
            f"{where}: {Path(error.filename or module_name).name}:{error.lineno}: {error.msg}"
        ) from error
    except PipelineError:
        raise
    except Exception as error:  # the user's module may raise anything while it is imported
        raise ConfigError(
            f"{where}: importing {module_name!r} failed: {type(error).__name__}: {error}"
        ) from error
