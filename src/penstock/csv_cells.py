"""Cells of CSV files: text that a spreadsheet takes for text."""

from __future__ import annotations

import re

# Where a spreadsheet may begin a cell: at the start, and behind what separates cells in some countries. Space
# does not keep it from finding a formula, nor do the wide forms of the characters that begin one.
_FORMULA = re.compile(
    r"(^|[;\t\r\n|])(?=[\s\x00-\x20\x7f-\xa0\u00ad\u200b-\u200f\u2060\ufeff]*"
    r"[=+\-@＝＋－﹣−＠﹫﹢﹦])"
)
BEFORE_FORMULA = ("\t", "\r")


def guarded(text: str) -> str:
    """Text that a spreadsheet runs nothing of, whatever it begins with and wherever it is cut into cells."""
    found = _FORMULA.sub(lambda match: f"{match[0]}'", text)
    return f"'{found}" if text.startswith(BEFORE_FORMULA) and found == text else found
