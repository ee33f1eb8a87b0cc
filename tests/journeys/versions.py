"""Other versions of Penstock, as folders to put on PYTHONPATH."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import penstock
from penstock.store.schema import migrations

SOURCE = Path(penstock.__file__).parents[1]
ROOT = SOURCE.parent
STORES = {"sqlite": "", "postgres": "penstock."}
FIRST_ON_POSTGRES = "src/penstock/store/postgres/migrations"


def newest() -> int:
    return migrations("penstock.store.postgres")[-1].number


def previous_version(folder: Path) -> Path:
    """The newest release that can work on a server; before the first one, the code as it is."""
    tag = _newest_tag()
    if tag is None:
        return SOURCE
    folder.mkdir()
    packed = subprocess.run(
        ["git", "archive", tag, "src"], cwd=ROOT, capture_output=True, check=True
    )
    subprocess.run(["tar", "-x"], cwd=folder, input=packed.stdout, check=True)
    return folder / "src"


def _newest_tag() -> str | None:
    if not (ROOT / ".git").exists():
        return None
    listed = subprocess.run(
        ["git", "tag", "--sort=-creatordate"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for tag in listed.stdout.split():
        has_it = subprocess.run(
            ["git", "cat-file", "-e", f"{tag}:{FIRST_ON_POSTGRES}"], cwd=ROOT, capture_output=True
        )
        if has_it.returncode == 0:
            return tag
    return None


def later_version(folder: Path, *texts: str) -> Path:
    """The code as it is, with these migrations on top; {0} is what stands before a table's name."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE / "penstock", folder / "penstock", ignore=ignored)
    for number, text in enumerate(texts, newest() + 1):
        for store, prefix in STORES.items():
            file = folder / "penstock" / "store" / store / "migrations" / f"{number:04}_later.sql"
            file.write_text(text.format(prefix))
    return folder
