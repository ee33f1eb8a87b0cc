"""Penstock as it is installed alone: what its extras bring is not there, in an environment of its own."""

from __future__ import annotations

import json
import re
import subprocess
import venv
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest

from penstock.settings.connector import BUILT_IN

# What each connector says when it is added without its extra; the others add their demo data.
NAMED = {
    "github": "the demo of github needs dulwich\n  pip install 'penstock[git]'",
    "headless": "the connector headless needs playwright\n  pip install 'penstock[headless]'",
    "imap": "the connector imap needs imapclient\n  pip install 'penstock[imap]'",
}
# Sources that need more than their connector does, and the extra that their failure names.
PARTS = {
    "parquet": ({"connector": "dump", "path": "rows.parquet"}, "data"),
    "zst": ({"connector": "dump", "path": "rows.csv.zst"}, "zstd"),
    "bucket": ({"connector": "dump", "path": "s3://bucket/rows.csv"}, "blob"),
    "pdf": ({"connector": "files", "folder": "papers"}, "documents"),
    "git": ({"connector": "github", "url": "https://git.example/repo.git"}, "git"),
}
FILES = {
    "rows.parquet": b"PAR1",
    "rows.csv.zst": b"\x28\xb5\x2f\xfd",
    "papers/paper.pdf": b"%PDF-1.4\n",
}
WALK = """
import contextlib, io, json, sys
from pathlib import Path
from penstock.cli import main
from penstock import Project

def said(*words):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = main([*words])
    return code, out.getvalue()

found = {}
for name in json.loads(sys.argv[1]):
    folder = Path("add", name)
    folder.mkdir(parents=True)
    found[name] = said("add", "--demo", name, "--yes", "--project", str(folder))
    found[name] += (sorted(path.name for path in folder.iterdir()),)
for name in json.loads(sys.argv[2]):
    found[name] = said("probe", name)
print(json.dumps(found))
"""


def core(name: str, met: dict[str, Distribution]) -> dict[str, Distribution]:
    """A distribution and all that it needs without any extra."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return met  # for another system, or another Python
    if name.lower() not in met:
        met[name.lower()] = found
        for line in found.requires or []:
            if "extra ==" not in line and (needed := re.match(r"[\w.-]+", line)):
                core(needed.group(), met)
    return met


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has Penstock and what it needs, by links."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    [site] = folder.glob("lib/*/site-packages")
    for found in core("penstock", {}).values():
        for top in {file.parts[0] for file in found.files or []} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(found.locate_file(top))))
    return folder / "bin" / "python"


def test_every_connector_works_without_extras_or_names_the_one_that_it_needs(
    bare: Path, tmp_path: Path
) -> None:
    for name, body in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(body)
    sources = {name: keys for name, (keys, _) in PARTS.items()}
    (tmp_path / "penstock.yaml").write_text(json.dumps({"sources": sources}))
    names = [json.dumps(list(each)) for each in (BUILT_IN, PARTS)]
    made = subprocess.run(
        [bare, "-c", WALK, *names], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert made.returncode == 0, made.stderr
    found = json.loads(made.stdout)
    assert len(BUILT_IN) == 10
    for name in BUILT_IN:
        code, said, left = found[name]
        if name in NAMED:
            assert (code, said.strip(), left) == (2, f"penstock: {NAMED[name]}", []), name
        else:
            assert code == 0, said
            assert "penstock.yaml" in left
    for name, (_, extra) in PARTS.items():
        code, said = found[name]
        assert code != 0, name
        assert f"pip install 'penstock[{extra}]'" in said, (name, said)
