"""Demo data: a small git repository."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from penstock.connectors.contract import Sample
from penstock.errors import ConfigError

_WHEN = 1_788_220_800
_WHO = b"Mill <mill@example.com>"
_FILES = {
    "README.md": "# The mill\n\nHow the mill works. See [the wheel](docs/wheel.md).\n",
    "docs/wheel.md": "# The wheel\n\nIt turns when the gate is open.\n",
    "docs/prices.csv": "flour,price\nrye,1.80\nspelt,2.60\n",
    "src/gate.py": "def open_gate(width: int) -> str:\n    return f'open by {width} cm'\n",
}


def write_demo(folder: Path) -> Sample:
    """A bare repository with one commit, the same each time."""
    if find_spec("dulwich") is None:
        raise ConfigError("the demo of github needs dulwich", "pip install 'penstock[git]'")
    from dulwich.repo import Repo

    path = folder / "repo.git"
    if not path.exists():
        path.mkdir(parents=True)
        repository = Repo.init_bare(str(path))
        try:
            commit_files(repository, {name: text.encode() for name, text in _FILES.items()})
        finally:
            repository.close()
    return Sample("demo-github", {"url": f"./{folder.name}/repo.git"})


def commit_files(
    repository: Any, files: Mapping[str, bytes], others: Sequence[tuple[bytes, bytes, int]] = ()
) -> None:
    """What `main` is from now on. Other entries of its trees are paths, names of objects, and modes."""
    from dulwich.index import commit_tree
    from dulwich.objects import Blob, Commit

    entries = list(others)
    for name, body in files.items():
        blob = Blob.from_string(body)
        repository.object_store.add_object(blob)
        entries.append((os.fsencode(name), blob.id, 0o100644))
    commit = Commit()
    commit.tree = commit_tree(repository.object_store, cast(Any, entries))
    commit.author = commit.committer = _WHO
    commit.author_time = commit.commit_time = _WHEN
    commit.author_timezone = commit.commit_timezone = 0
    commit.message = b"Describe the mill\n"
    repository.object_store.add_object(commit)
    repository.refs[b"refs/heads/main"] = commit.id
    repository.refs.set_symbolic_ref(b"HEAD", b"refs/heads/main")
