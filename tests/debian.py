"""Programs out of Debian's packages, without installing them.

A package, and the libraries it needs that the system lacks, are downloaded and unpacked into one folder. That
needs no root, changes nothing outside that folder, and starts no service. apt keeps its lists in a folder of
its own meanwhile, because those of the system may be old, or missing, or not ours to write.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

OPTIONS = [
    "--quiet=2",
    "--assume-yes",
    "--no-install-recommends",
    "--option=Debug::NoLocking=1",
    "--option=APT::Sandbox::User=",
    "--option=Acquire::Retries=1",
    "--option=Acquire::http::Timeout=20",
]
# The system's loader works only with the system's C library.
NEVER_UNPACKED = ("libc6_", "libc-bin_")
UNPACKED = "root"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
# A command that works wherever its folder is moved. The system's fonts are better, where it has any.
LAUNCHER = """\
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH={libraries}
export LD_LIBRARY_PATH
if [ ! -e /etc/fonts/fonts.conf ]; then
  FONTCONFIG_FILE="$here/fonts.conf"
  export FONTCONFIG_FILE
fi
exec "$here/{program}" "$@"
"""
FONTS = """\
<?xml version="1.0"?>
<fontconfig>
  <dir prefix="relative">root/usr/share/fonts</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir prefix="relative">font-cache</cachedir>
</fontconfig>
"""


def fetch(
    packages: Sequence[str], programs: Sequence[str], into: Path, apt: Sequence[str] = ()
) -> None:
    """Unpack the packages into a folder, with a command at its top for each of the programs.

    A program is given as its path in the package, `usr/sbin/pgbouncer`; `apt` are more options for apt-get.
    """
    with tempfile.TemporaryDirectory(dir=into.parent) as folder:
        made = Path(folder) / "made"
        made.mkdir()
        for package in download(packages, Path(folder), apt):
            _run("dpkg-deb", "--extract", package, made / UNPACKED)
        for program in programs:
            _write_launcher(made, program)
        (made / "fonts.conf").write_text(FONTS)
        shutil.rmtree(into, ignore_errors=True)
        made.rename(into)


def fetch_of(release: str, packages: Sequence[str], into: Path) -> None:
    """Unpack these packages of another release, and nothing that they need beside.

    Its C library may be among them: a program of that release runs by the loader that lies beside it.
    """
    with tempfile.TemporaryDirectory(dir=into.parent) as folder:
        made = Path(folder) / "made"
        made.mkdir()
        options = _update(Path(folder), _sources_of(release, Path(folder)))
        _run("apt-get", *options, "download", *packages, folder=made)
        for package in made.glob("*.deb"):
            _run("dpkg-deb", "--extract", package, made / UNPACKED)
            package.unlink()
        shutil.rmtree(into, ignore_errors=True)
        made.rename(into)


def _sources_of(release: str, folder: Path) -> list[str]:
    """Options by which apt sees this release, in the archives that it has its own release from."""
    release_file = Path("/etc/os-release").read_text()
    [own] = re.findall(r"^VERSION_CODENAME=(\w+)", release_file, re.MULTILINE)
    listed = _run("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)")
    lines = {
        f"deb [signed-by={KEYS}] {uri} {release} main\n"
        for uri, its, part in map(str.split, listed.splitlines())
        if (its, part) == (own, "main")
    }
    (folder / "sources.list").write_text("".join(sorted(lines)))
    (folder / "status").touch()
    places = {
        "Etc::sourcelist": "sources.list",
        "Etc::sourceparts": "no",
        "State::status": "status",
    }
    return [f"--option=Dir::{option}={folder}/{name}" for option, name in places.items()]


def download(packages: Sequence[str], folder: Path, apt: Sequence[str] = ()) -> list[Path]:
    """The archives of the packages and of what they need that the system does not have."""
    options = _update(folder, apt)
    _run("apt-get", *options, "install", "--download-only", *packages)
    archives = (folder / "cache" / "archives").glob("*.deb")
    return [found for found in archives if not found.name.startswith(NEVER_UNPACKED)]


def install(packages: Sequence[str]) -> None:
    """Install the packages on this machine, without starting their services: only root may."""
    with tempfile.TemporaryDirectory() as folder, _no_services():
        _run("apt-get", *_update(Path(folder)), "install", *packages)


@contextmanager
def _no_services(policy: Path = Path("/usr/sbin/policy-rc.d")) -> Iterator[None]:
    """Debian asks this program before it starts a service; 101 is no."""
    if policy.exists():  # of a container: it says no already, or somebody wants services
        yield
        return
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    try:
        yield
    finally:
        policy.unlink()


def reason(error: OSError | subprocess.SubprocessError) -> str:
    """The last line that a command said before it failed."""
    said = getattr(error, "stderr", None) or str(error)
    return str(said).strip().splitlines()[-1]


def _update(folder: Path, apt: Sequence[str] = ()) -> list[str]:
    for inside in ("lists/partial", "cache/archives/partial"):
        (folder / inside).mkdir(parents=True)
    places = [f"--option=Dir::State::lists={folder}/lists", f"--option=Dir::Cache={folder}/cache"]
    options = [*OPTIONS, *places, *apt]
    _run("apt-get", *options, "update")
    return options


def _write_launcher(folder: Path, program: str) -> None:
    unpacked = Path(UNPACKED) / program
    if not os.access(folder / unpacked, os.X_OK):
        raise FileNotFoundError(f"no package has {program}")
    libraries = ":".join(f'"$here/{place}"' for place in _libraries(folder))
    launcher = folder / unpacked.name
    launcher.write_text(LAUNCHER.format(libraries=libraries, program=unpacked))
    launcher.chmod(0o755)


def _libraries(folder: Path) -> Iterator[Path]:
    # usr/lib/x86_64-linux-gnu, and folders in it such as nss, whose libraries are opened by name alone.
    for pattern in ("usr/lib/*-linux-*", "lib/*-linux-*", "usr/lib/*-linux-*/nss"):
        yield from (found.relative_to(folder) for found in (folder / UNPACKED).glob(pattern))


def _run(*command: str | Path, folder: Path | None = None) -> str:
    done = subprocess.run(
        command, cwd=folder, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    return done.stdout
