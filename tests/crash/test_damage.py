"""A damaged file is met with one line, never with a traceback, and never made worse by going on."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.testing.crash.small_run import lay_out, work
from tests.journeys.rig import ENVIRONMENT, PENSTOCK

LOOKS = (
    ("db", "check"),
    ("status",),
    ("sources",),
    ("runs",),
    ("jobs", "--run", "1"),
    ("events",),
    ("records", "word", "--format", "jsonl"),
)
SOUND, DAMAGED = 0, 5


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose run is done and whose log has been written into the database."""
    folder = tmp_path_factory.mktemp("whole")
    lay_out(folder)
    acks = folder / "elsewhere"
    acks.mkdir()
    work(folder, None, acks / "acks", seed=1)
    assert not (folder / "penstock.db-wal").exists()
    return folder


class Damage:
    """Copies of a project with a damaged database, and what each command says about them."""

    def __init__(
        self, whole: Path, folder: Path, capsys: pytest.CaptureFixture[str], rng: random.Random
    ) -> None:
        self._image = (whole / "penstock.db").read_bytes()
        self._whole = whole
        self._folder = folder
        self._capsys = capsys
        self._rng = rng
        self.detected = 0
        self.harmless = 0

    def flip(self) -> None:
        image = bytearray(self._image)
        for _ in range(self._rng.choice([1, 1, 4, 64])):
            image[self._rng.randrange(len(image))] ^= 1 << self._rng.randrange(8)
        self._try(bytes(image))

    def blot(self) -> None:
        """A whole page of noise, as a failing disk leaves it."""
        image = bytearray(self._image)
        at = self._rng.randrange(len(image) // 4096) * 4096
        image[at : at + 4096] = self._rng.randbytes(4096)
        self._try(bytes(image))

    def truncate(self) -> None:
        self._try(self._image[: self._rng.randrange(len(self._image))])

    def _try(self, image: bytes) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._whole, self._folder)
        (self._folder / "penstock.db").write_bytes(image)
        codes = [self._look(words) for words in LOOKS]
        if DAMAGED in codes:
            self.detected += 1
        else:
            self.harmless += 1

    def _look(self, words: tuple[str, ...]) -> int:
        code = main([*words, "--project", str(self._folder)])
        said = self._capsys.readouterr()
        where = f"{words}: {code} {said.err}"
        assert code in (SOUND, DAMAGED), where
        assert "Traceback" not in said.err, where
        assert code == SOUND or 1 <= len(said.err.splitlines()) <= 2 or words[0] == "db", where
        return code


@pytest.mark.parametrize(
    "rounds", [25, pytest.param(600, marks=[pytest.mark.timeout(1800), pytest.mark.torture])]
)
def test_damaged_database_is_met_with_one_line(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], rounds: int
) -> None:
    seed = random.randrange(1 << 32)
    damage = Damage(whole, tmp_path / "copy", capsys, random.Random(seed))
    with capsys.disabled():
        print(f"seed {seed}")
    for _ in range(rounds):
        damage.flip()
        damage.blot()
        damage.truncate()
    print(f"{damage.detected} detected, {damage.harmless} of no consequence to any command")
    # A page of noise and a cut are always seen; single bits may lie in free space or inside a value.
    assert damage.detected >= 1.5 * rounds


def test_work_is_refused_on_a_damaged_database_and_the_file_left_as_it_is(
    whole: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(whole, folder)
    file = folder / "penstock.db"
    image = bytearray(file.read_bytes())
    for at in range(8192, len(image), 8192):
        image[at : at + 4096] = random.Random(at).randbytes(4096)
    file.write_bytes(image)

    done = subprocess.run(
        [*PENSTOCK, "up", "--until-idle"],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == DAMAGED, done.stderr
    assert "Traceback" not in done.stderr
    assert "restore a backup" in done.stderr
    assert file.read_bytes() == image
