"""Everything a command prints passes here: secrets are masked, control characters are gone."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from penstock.cli.wording import Shortened, cut, harmless

# What a table is drawn in when nobody's terminal limits it.
WIDE = 1000
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
# JSON leaves these as they are, and some terminals obey them.
_C1 = re.compile("[\x7f-\x9f]")


class Output:
    """What a person or a program reads, on stdout; notes and errors, on stderr.

    `secrets` is filled in when the project's settings are known.
    """

    def __init__(self, stdout: TextIO | None = None, stderr: TextIO | None = None) -> None:
        self.stdout = stdout or sys.stdout
        self.stderr = stderr or sys.stderr
        self.secrets: frozenset[str] = frozenset()

    def line(self, text: str = "") -> None:
        self.stdout.write(self.tidy(text) + "\n")

    def note(self, text: str) -> None:
        """Something beside the answer: progress, a hint, a warning."""
        self.stderr.write(self.tidy(text) + "\n")
        self.stderr.flush()

    def error(self, message: str, hint: str = "") -> None:
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

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Rows under their names; fitted to the terminal, or as wide as they are when piped."""
        tidied = [[self._cell(value) for value in row] for row in rows]
        numeric = [
            all(isinstance(row[index], int) for row in rows) for index in range(len(columns))
        ]
        self.stdout.write(_drawn(columns, tidied, numeric, self.stdout.isatty()))

    def tidy(self, text: str) -> str:
        return harmless(self.masked(text))

    def short(self, text: str, longest: int) -> str:
        """The beginning of the text; cut after secrets are masked in it, because half of one is not found."""
        return cut(self.tidy(text), longest)

    def masked(self, text: str) -> str:
        if not self.secrets:
            return text
        from penstock.settings import redact

        return redact(text, self.secrets)

    def as_json(self, value: Any) -> str:
        import msgspec

        text = msgspec.json.encode(self._masked_within(value)).decode()
        return _C1.sub(lambda found: f"\\u{ord(found[0]):04x}", text)

    def _cell(self, value: object) -> str:
        if isinstance(value, int):
            return f"{value:,}" if value >= 10_000 else str(value)
        if isinstance(value, Shortened):
            return self.short(value.text, value.longest)
        return "" if value is None else self.tidy(str(value))

    def _masked_within(self, value: Any) -> Any:
        # Before it is encoded: an escaped character would hide a secret from the search for it.
        if not self.secrets:
            return value
        if isinstance(value, str):
            return self.masked(value)
        if isinstance(value, dict):
            return {self.masked(name): self._masked_within(each) for name, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._masked_within(each) for each in value]
        return value


def _drawn(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: Sequence[bool],
    is_terminal: bool,
) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Drawn into memory and written by us, because rich ends the process when a pipe is closed.
    console = Console(force_terminal=is_terminal, width=None if is_terminal else WIDE)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name, is_number in zip(columns, numeric, strict=True):
        table.add_column(
            name, justify="right" if is_number else "left", no_wrap=True, overflow="ellipsis"
        )
    for row in rows:
        table.add_row(*(Text(cell, STYLES.get(cell, "")) for cell in row))
    with console.capture() as captured:
        console.print(table)
    return "".join(line.rstrip() + "\n" for line in captured.get().splitlines())
