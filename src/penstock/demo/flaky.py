"""The bad neighbour: 45 offers, and every way a site has of not showing them.

What a page does depends on the page and on how often it has been asked, on nothing else: the ones
that recover do so within the tries of the retry class `fast`, the ones that never do are the
reason why this source's run ends `partial`.
"""

from __future__ import annotations

from penstock.demo.catalogue import product_page
from penstock.demo.replies import Answer, Drop, Hang, Page, Pages, Reply, document, robots

OFFERS = 45

# How many visits go wrong before the page is well.
RECOVERS: dict[int, tuple[str, int]] = {
    **{4: ("throttled", 2), 16: ("throttled", 2), 28: ("throttled", 1)},
    **{7: ("overloaded", 1), 19: ("overloaded", 1), 31: ("overloaded", 1)},
    **{9: ("bad gateway", 1), 21: ("bad gateway", 2), 33: ("bad gateway", 1)},
    **{11: ("silent", 1), 23: ("silent", 1), 35: ("silent", 1)},
    **{13: ("dropped", 1), 25: ("dropped", 2), 37: ("dropped", 1)},
}
NEVER_WELL: dict[int, str] = {
    **{14: "cut JSON", 26: "cut JSON", 38: "garbage"},
    **{29: "gone", 41: "broken", 43: "silent"},
}


def pages(origin: str) -> Pages:
    """The list of offers, which is always well, and the offers, which are not."""
    neighbour: Pages = {"/robots.txt": robots("Allow: /"), "/offers": _listing(origin)}
    for number in range(1, OFFERS + 1):
        neighbour[f"/offer/{number}"] = _page(number)
    return neighbour


def _listing(origin: str) -> Page:
    links = "\n".join(
        f'<li><a class=offer href="{origin}/offer/{number}">Offer {number}</a>'
        for number in range(1, OFFERS + 1)
    )
    return (Answer(document("Offers", f"<ul>{links}</ul>")),)


def _page(number: int) -> Page:
    well = _offer(number)
    if number in NEVER_WELL:
        return (_trouble(NEVER_WELL[number], well),)
    if number in RECOVERS:
        kind, visits = RECOVERS[number]
        return (*[_trouble(kind, well)] * visits, Answer(well))
    return (Answer(well),)


def _offer(number: int) -> bytes:
    thing = {"@type": "Product", "sku": f"OFF-{number:03d}", "name": f"Remnant no. {number}"}
    return product_page(thing, f"{1 + number % 9}.50")


def _trouble(kind: str, well: bytes) -> Reply:
    wait = {"Retry-After": "1"}
    replies: dict[str, Reply] = {
        "throttled": Answer(b"slow down\n", status=429, headers=wait),
        "overloaded": Answer(b"back in a second\n", status=503, headers=wait),
        "bad gateway": Answer(b"bad gateway\n", status=502),
        "gone": Answer(b"no such offer\n", status=404),
        "broken": Answer(b"something went wrong\n", status=500),
        "silent": Hang(),
        "dropped": Drop(well),
        "cut JSON": Answer(well.replace(b'"offers"', b'"offers')),
        "garbage": Answer(bytes(byte * 89 % 256 for byte in range(4096))),
    }
    return replies[kind]
