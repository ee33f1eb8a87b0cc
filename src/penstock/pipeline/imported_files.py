"""The files of a project that its pipelines import, also within functions; found without running them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path


def imported_files(root: Path, modules: Iterable[str]) -> set[Path]:
    """The files below this folder of these modules, and of what they import, and so on."""
    waiting, seen, files = [*modules], set[str](), set[Path]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for module, file in _files_of(root, name):
            if file not in files:
                files.add(file)
                waiting += _imported_by(file, module)
    return files


def module_of(file: Path, root: Path) -> str:
    """What a file below a folder is imported as."""
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _files_of(root: Path, name: str) -> Iterator[tuple[str, Path]]:
    """The file of a module and those of the packages that it is in."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        if not all(part.isidentifier() for part in parts[:end]):
            return
        place = root.joinpath(*parts[:end])
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                yield ".".join(parts[:end]), file


def _imported_by(file: Path, module: str) -> Iterator[str]:
    """What a file imports, by absolute names; a name in `from a import b` may be a module of `a`."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return  # it can't be imported either
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from _from(node, package)


def _from(node: ast.ImportFrom, package: str) -> Iterator[str]:
    parts = package.split(".") if package else []
    if node.level > len(parts) + 1:
        return
    above = parts[: len(parts) - node.level + 1] if node.level else []
    base = ".".join([*above, *([node.module] if node.module else [])])
    if base:
        yield base
    yield from (f"{base}.{each.name}" if base else each.name for each in node.names)
