"""What MkDocs asks while it builds the site: state diagrams become tables, marks of the tests are dropped.

A diagram needs a script of three megabytes to be drawn in a browser. The site shows the same moves as a
table, which can be searched and read aloud; GitHub draws the diagram.
"""

from __future__ import annotations

import re
from typing import Any

DIAGRAM = re.compile(r"```mermaid\nstateDiagram-v2\n(.*?)```", re.DOTALL)
MOVE = re.compile(r"\s*(\S+) --> (\w+)(?:: (.*))?")


MARK = re.compile(r'^( *```\w*.*?) not-run="[^"]*"', re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    return DIAGRAM.sub(lambda found: moves_as_table(found.group(1)), MARK.sub(r"\1", markdown))


def moves_as_table(diagram: str) -> str:
    moves = [MOVE.fullmatch(line) for line in diagram.splitlines()]
    rows = [
        f"| {'start' if move[1] == '[*]' else f'`{move[1]}`'} | `{move[2]}` | {move[3] or ''} |"
        for move in moves
        if move
    ]
    return "\n".join(["| from | to | when |", "|---|---|---|", *rows, ""])
