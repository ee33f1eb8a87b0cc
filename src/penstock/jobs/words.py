"""Words: what somebody's code says, as text that a process can send and a database can keep."""

from __future__ import annotations

from typing import Any


def words_of(said: Any, most: int) -> str:
    """Text of whatever was given as a reason: an exception, a number, an object that can't be shown.

    Lone surrogates and NULs are written out, because no database takes them.
    """
    try:
        text = str(said)
        if isinstance(said, BaseException):
            text = f"{type(said).__name__}: {text}" if text else type(said).__name__
    except Exception:
        text = f"(a {type(said).__name__} that can't be shown)"
    # Character by character: what is no plain text, or a subclass of it, is plain afterwards.
    text = "".join(text[:most]).replace("\x00", "\\x00")
    return text.encode("utf-8", "backslashreplace").decode()[:most]
