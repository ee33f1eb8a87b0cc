"""Text files that other programs read: replaced at once, and readable by them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from penstock.errors import UsageError

MODE = 0o644


def replace_text(file: Path, text: str, mode: int = MODE) -> None:
    """Put the text in the file's place. Its folder must be there; a link is replaced, not followed.

    The name of what is not whole yet ends in `.tmp`: collectors pass over it.
    """
    beside = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        beside.unlink(missing_ok=True)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with open(descriptor, "w", encoding="utf-8") as made:
                made.write(text)
            os.replace(beside, file)
        except BaseException:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(
            f"{file} can't be written ({error.strerror})",
            "name a file in a folder that exists and that you may write to",
            code="not_written",
        ) from None
