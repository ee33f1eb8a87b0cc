"""The text of all the code that a step is made of, as far as it is the project's own."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from penstock.gates.loaded import Loaded, hash_of

# Ours has a version of its own, and what is installed is not the project's.
_OURS = "penstock"
_INSTALLED = frozenset({"site-packages", "dist-packages"})


def code_texts(function: Callable[..., Any]) -> set[bytes]:
    """The text of the module that holds a step, and of those beside it that it uses, and so on."""
    files = code_files(function)
    return set(files.values()) or {_code_bytes(getattr(inspect.unwrap(function), "__code__", None))}


def code_files(function: Callable[..., Any]) -> dict[Path, bytes]:
    """The same by file; nothing for code that is in no file."""
    function = inspect.unwrap(function)
    try:
        own = Path(inspect.getsourcefile(function) or "").resolve()
        files = {own: own.read_bytes()}
    except (OSError, TypeError):
        return {}
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    if module is None or _file_of(module) != own:
        return files
    # A module of a package is that much deeper in the folder that the package lies in.
    root = own.parents[module.__name__.count(".")]
    for file in sorted(_files_beside(module, root)):
        try:
            files[file] = file.read_bytes()
        except OSError:
            continue
    return files


def is_ours(function: Callable[..., Any]) -> bool:
    """Whether a step is Penstock's own."""
    return str(getattr(function, "__module__", "")).partition(".")[0] == _OURS


def changed_files(loaded: Loaded, root: Path) -> list[str]:
    """Files that are not what they were when they were loaded; none if that was from another folder."""
    if loaded.root != str(root):
        return []
    return [name for name, known in loaded.files.items() if _hash_now(root / name) != known]


def _hash_now(file: Path) -> str:
    try:
        return hash_of(file.read_bytes())
    except OSError:
        return ""


def _files_beside(module: ModuleType, root: Path) -> set[Path]:
    """The files of all modules in this folder that can be reached by what modules have in their names."""
    waiting, files, seen = [module], set(), {module.__name__}
    while waiting:
        for used in _used_by(waiting.pop()):
            if used.__name__ in seen:
                continue
            seen.add(used.__name__)
            file = _file_of(used)
            if file is not None and file.is_relative_to(root) and _is_own(used, file):
                files.add(file)
                waiting.append(used)
    return files


def _used_by(module: ModuleType) -> Iterator[ModuleType]:
    for value in list(vars(module).values()):
        if isinstance(value, ModuleType):
            yield value
            continue
        try:
            name = getattr(value, "__module__", None)
        except Exception:  # noqa: S112  anything may stand in a module, and answer in any way
            continue
        found = sys.modules.get(name) if isinstance(name, str) else None
        if found is not None:
            yield found


def _is_own(module: ModuleType, file: Path) -> bool:
    return module.__name__.partition(".")[0] != _OURS and _INSTALLED.isdisjoint(file.parts)


def _file_of(module: ModuleType) -> Path | None:
    name = getattr(module, "__file__", None)
    return Path(name).resolve() if isinstance(name, str) and name.endswith(".py") else None


def _code_bytes(code: CodeType | None) -> bytes:
    if code is None:
        return b""
    inner = [_code_bytes(each) for each in code.co_consts if isinstance(each, CodeType)]
    constants = [repr(each) for each in code.co_consts if not isinstance(each, CodeType)]
    return b"|".join([code.co_code, repr((code.co_names, constants)).encode(), *inner])
