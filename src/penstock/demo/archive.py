"""The archive that is being restarted: 24 entries, and the first that are asked for find nobody at home."""

from __future__ import annotations

from penstock.demo.catalogue import product_page
from penstock.demo.replies import Answer, Page, Pages, document, robots

ENTRIES = 24
# Each of these answers an error when it is asked for the first time.
AWAY_AT_FIRST = 4


def pages(origin: str) -> Pages:
    """The list of entries, and the entries."""
    links = "\n".join(
        f'<li><a class=entry href="{origin}/entry/{number}">Entry {number}</a>'
        for number in range(1, ENTRIES + 1)
    )
    archive: Pages = {
        "/robots.txt": robots("Allow: /"),
        "/entries": (Answer(document("Entries", f"<ul>{links}</ul>")),),
    }
    for number in range(1, ENTRIES + 1):
        archive[f"/entry/{number}"] = _entry(number)
    return archive


def _entry(number: int) -> Page:
    thing = {"@type": "Product", "sku": f"ARC-{number:03d}", "name": f"Print no. {number}"}
    well = Answer(product_page(thing, f"{3 + number % 5}.00"))
    away = Answer(b"the database is being restarted\n", status=502)
    return (away, well) if number <= AWAY_AT_FIRST else (well,)
