"""Programs for tests: found, or fetched out of Debian's packages, or missing with how to get them."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import debian, get_programs
from tests.programs import PROGRAMS, find

CONTROL = """\
Package: {name}
Version: 1.0
Architecture: all
Maintainer: Nobody <nobody@example.com>
Depends: {needs}
Description: a package of a test
"""
# It says where its library is looked for.
SAYS = '#!/bin/sh\necho "$1 with $LD_LIBRARY_PATH"\n'


@pytest.fixture
def archive(tmp_path: Path) -> list[str]:
    """Options by which apt sees one archive in a folder, with a gate, its hinge and a C library."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        pytest.skip("only Debian has apt-get and dpkg-deb")
    place = tmp_path / "archive"
    package(place, "gate", "libhinge, libc6", {"usr/sbin/gate": SAYS})
    package(place, "libhinge", "", {"usr/lib/x86_64-linux-gnu/libhinge.so.1": "hinge"})
    package(place, "libc6", "", {"usr/lib/x86_64-linux-gnu/libc.so.6": "not this system's"})
    index(place)
    (tmp_path / "sources").write_text(f"deb [trusted=yes] copy:{place} ./\n")
    (tmp_path / "status").touch()
    folders = {"Etc::sourcelist": "sources", "Etc::sourceparts": "none", "State::status": "status"}
    return [f"--option=Dir::{option}={tmp_path}/{name}" for option, name in folders.items()]


def package(archive: Path, name: str, needs: str, files: dict[str, str]) -> None:
    tree = archive / f"{name}.tree"
    control = CONTROL.format(name=name, needs=needs).replace("Depends: \n", "")
    for path, text in {"DEBIAN/control": control, **files}.items():
        file = tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    tree.chmod(0o755)
    (tree / "DEBIAN").chmod(0o755)
    made = str(archive / f"{name}_1.0_all.deb")
    command = ["dpkg-deb", "--root-owner-group", "--build", str(tree), made]
    subprocess.run(command, check=True, capture_output=True)


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def index(archive: Path) -> None:
    with (archive / "Packages").open("w") as listed:
        for found in sorted(archive.glob("*.deb")):
            control = (
                archive / f"{found.name.split('_')[0]}.tree" / "DEBIAN" / "control"
            ).read_text()
            listed.write(f"{control}Filename: ./{found.name}\n")
            listed.write(f"Size: {found.stat().st_size}\nSHA256: {digest(found)}\n\n")


def test_a_fetched_program_runs_with_its_libraries_wherever_its_folder_is(
    archive: list[str], tmp_path: Path
) -> None:
    debian.fetch(["gate"], ["usr/sbin/gate"], tmp_path / "gate", archive)
    moved = (tmp_path / "gate").rename(tmp_path / "moved")
    said = subprocess.run([moved / "gate", "opens"], capture_output=True, text=True, check=True)
    libraries = moved / "root" / "usr" / "lib" / "x86_64-linux-gnu"
    assert said.stdout == f"opens with {libraries}\n"
    assert [found.name for found in libraries.iterdir()] == ["libhinge.so.1"]


def test_a_package_that_apt_does_not_have_leaves_no_folder(
    archive: list[str], tmp_path: Path
) -> None:
    with pytest.raises(subprocess.CalledProcessError) as error:
        debian.fetch(["fence"], ["usr/sbin/fence"], tmp_path / "fence", archive)
    assert debian.reason(error.value) == "E: Unable to locate package fence"
    assert not (tmp_path / "fence").exists()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_was_named_is_not_replaced_by_another(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PROGRAMS[name].variable, f"/nowhere/{name}")
    assert find(name) is None


def test_getting_programs_changes_nothing_where_they_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in PROGRAMS.values():
        monkeypatch.setenv(program.variable, "/bin/sh")
    assert get_programs.main() == 0
    assert capsys.readouterr() == ("", "")
