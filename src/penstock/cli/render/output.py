"""Everything a command prints passes here: secrets are masked, control characters are gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

from penstock.cli.render.tables import (
    GAP,
    Cell,
    Column,
    Layout,
    column,
    fitted,
    lay_out,
    pages,
    shown_width,
    widened,
)
from penstock.cli.render.wording import (
    HARMFUL,
    Brief,
    Shortened,
    cut,
    cut_inside,
    escaped,
    harmless,
)

# A terminal that says nothing of its width, and one that nobody has.
USUAL_WIDTH, WIDEST = 80, 300
STYLES = {
    "completed": "green",
    "succeeded": "green",
    "running": "cyan",
    "partial": "yellow",
    "paused": "yellow",
    "waiting": "yellow",
    "failed": "red",
    "quarantined": "red",
    "cancelled": "dim",
}
CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}


class Output:
    """What a person or a program reads, on stdout; notes and errors, on stderr.

    `secrets` is filled in when the project's settings are known.
    """

    def __init__(self, stdout: TextIO | None = None, stderr: TextIO | None = None) -> None:
        self.stdout = stdout or sys.stdout
        self.stderr = stderr or sys.stderr
        self.secrets: frozenset[str] = frozenset()
        # Whether stderr is a log that a program reads: every note is an object on a line of its own.
        self.logs_json = False

    def line(self, text: str = "") -> None:
        self.stdout.write(self.tidy(text) + "\n")

    def note(self, text: str) -> None:
        """Something beside the answer: progress, a hint, a warning."""
        if self.logs_json:
            self.log("message", text)
            return
        self.stderr.write(self.tidy(text) + "\n")
        self.stderr.flush()

    def log(self, event: str, message: str, level: str = "info", **about: Any) -> None:
        """One event as one object on stderr: when, how bad, what, in words, and what it is about."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        said = {"at": at, "level": level, "event": event, "message": self.tidy(message), **about}
        self.stderr.write(self.as_json(said) + "\n")
        self.stderr.flush()

    def error(self, message: str, hint: str = "") -> None:
        if self.logs_json:
            self.log("error", message, "error", **({"hint": self.tidy(hint)} if hint else {}))
            return
        self.note(f"penstock: {message}")
        if hint:
            self.note(f"  {hint}")

    def json(self, value: Any) -> None:
        """One JSON value on a line of its own."""
        self.stdout.write(self.as_json(value) + "\n")

    def json_list(self, values: Iterable[Any]) -> None:
        """One JSON array, an element to a line, written as it comes."""
        before = "["
        for value in values:
            self.stdout.write(f"{before}\n{self.as_json(value)}")
            before = ","
        self.stdout.write("[]\n" if before == "[" else "\n]\n")

    def fields(self, pairs: Iterable[tuple[str, object]]) -> None:
        """What is known of one thing, a line each; what is empty is left out."""
        told = [(name, str(value)) for name, value in pairs if value not in (None, "")]
        width = max((len(name) for name, _ in told), default=0)
        for name, value in told:
            self.line(f"{name:<{width}}  {value}")

    def table(self, columns: Sequence[str | Column], rows: Iterable[Sequence[object]]) -> None:
        """Rows under their names; fitted to the terminal, or as wide as they are when piped.

        Rows are written as they come, so a generator of a million needs no more memory than a page of
        them. What a narrow terminal has no room for is named below the table.
        """
        width = self._width()
        known = [column(each) for each in columns]
        cells = ([self._cell(value) for value in row] for row in rows)
        layout: Layout | None = None
        for page in pages(cells):
            if layout is None:
                layout = lay_out(known, page, width)
                self._row([(each.name, "bold") for each in known], layout)
            elif width is None:
                layout = widened(layout, page)
            for row in page:
                shown = ((each.brief if layout.is_brief else each.full) for each in row)
                self._row([(text, STYLES.get(text, "")) for text in shown], layout)
        if layout is not None and layout.hidden:
            self._note_hidden(layout)

    def _row(self, cells: Sequence[tuple[str, str]], layout: Layout) -> None:
        shown = []
        for at, width in layout.widths.items():
            text, style = cells[at]
            cut = fitted(text, width, layout.columns[at].is_cut_in_the_middle)
            space = " " * (width - shown_width(cut))
            painted = self._painted(cut, style)
            shown.append(space + painted if layout.numeric[at] else painted + space)
        self.stdout.write((" " * GAP).join(shown).rstrip() + "\n")

    def _note_hidden(self, layout: Layout) -> None:
        names = ", ".join(layout.hidden)
        wider = "" if layout.wanted > WIDEST else f" or a terminal of {layout.wanted} columns"
        self.note(f"not shown: {names}; --json{wider} shows everything")

    def _painted(self, text: str, style: str) -> str:
        return f"\x1b[{CODES[style]}m{text}\x1b[0m" if style and text and self._has_colour else text

    @property
    def _has_colour(self) -> bool:
        is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in (None, "", "dumb")
        return self.stdout.isatty() and not is_plain

    def _width(self) -> int | None:
        """How wide the terminal is; None where there is none."""
        if not self.stdout.isatty():
            return None
        said = os.environ.get("COLUMNS", "")
        if said.isdecimal() and int(said) > 0:
            return int(said)
        try:
            return os.get_terminal_size(self.stdout.fileno()).columns or USUAL_WIDTH
        except (OSError, ValueError):
            return USUAL_WIDTH

    def tidy(self, text: str) -> str:
        return harmless(self.masked(text))

    def short(self, text: str, longest: int, is_inside: bool = False) -> str:
        """The beginning of the text, or both its ends; cut after secrets are masked in it, because half of
        one is not found."""
        return (cut_inside if is_inside else cut)(self.tidy(text), longest)

    def masked(self, text: str) -> str:
        if not self.secrets:
            return text
        from penstock.app.secrets import redact

        return redact(text, self.secrets)

    def as_json(self, value: Any) -> str:
        import msgspec

        text = msgspec.json.encode(self._masked_within(value), enc_hook=_plain_text).decode()
        # JSON leaves some as they are that a terminal obeys, or that nobody sees.
        return HARMFUL.sub(escaped, text)

    def _cell(self, value: object) -> Cell:
        if isinstance(value, int):
            number = f"{value:,}" if value >= 10_000 else str(value)
            return Cell(number, number, is_number=True)
        if isinstance(value, Shortened):
            short = self.short(value.text, value.longest, value.is_inside)
            return Cell(short, short)
        full = "" if value is None else self.tidy(str(value))
        return Cell(full, self.tidy(value.brief) if isinstance(value, Brief) else full)

    def _masked_within(self, value: Any) -> Any:
        if not self.secrets:
            return value
        from penstock.app.secrets import redact_within

        return redact_within(value, self.secrets)


def _plain_text(value: object) -> str:
    if isinstance(value, Brief):
        return str.__str__(value)
    raise TypeError(f"{type(value).__name__} is no JSON")
