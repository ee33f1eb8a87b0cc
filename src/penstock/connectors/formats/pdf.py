"""PDF, by pypdf: the text of its pages."""

from __future__ import annotations

import io
import logging

from penstock.connectors.formats.parsed import MOST_TEXT, Parsed, tidy

MOST_PAGES = 5_000


def read_pdf(body: bytes, name: str, url: str, content_type: str) -> Parsed:
    from pypdf import PdfReader

    # It says on its own log what is wrong with a file; what matters is raised.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    reader = PdfReader(io.BytesIO(body), strict=False)
    parts: list[str] = []
    for number, page in enumerate(reader.pages):
        if number >= MOST_PAGES or sum(map(len, parts)) > MOST_TEXT:
            break
        parts.append(page.extract_text())
    about = reader.metadata
    title = (about.title if about is not None else None) or name
    return Parsed(
        kind="pdf", title=title, text=tidy("\n".join(parts)), meta={"pages": len(reader.pages)}
    )
