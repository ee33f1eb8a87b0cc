"""The folder of the bench: text files of prose-like lines, in folders of a hundred."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

WORDS = [
    hashlib.sha256(str(number).encode()).hexdigest()[: 3 + number % 7] for number in range(4_000)
]


def write(folder: Path, files: int, file_bytes: int) -> None:
    """So many files of about this size, each different; the same ones for every side."""
    for number in range(files):
        file = folder / f"{number // 100:04d}" / name_of(number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text_of(number, file_bytes))


def name_of(number: int) -> str:
    return f"{number:06d}.txt"


def text_of(number: int, file_bytes: int) -> str:
    chance = random.Random(number)
    words = chance.choices(WORDS, k=file_bytes // 7)
    lines = [" ".join(words[at : at + 12]) for at in range(0, len(words), 12)]
    return "\n".join(lines) + "\n"


def check(sizes: dict[str, int], files: int, file_bytes: int) -> None:
    """Every file is there once, whole; a sample is compared with what was written."""
    if len(sizes) != files:
        raise RuntimeError(f"{len(sizes)} of {files} files were saved")
    for number in range(0, files, max(1, files // 50)):
        expected = len(text_of(number, file_bytes).strip())
        if abs(sizes[name_of(number)] - expected) > 1:
            raise RuntimeError(f"{name_of(number)} has {sizes[name_of(number)]} characters")
