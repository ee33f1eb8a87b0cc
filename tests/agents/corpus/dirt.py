"""What real sites do to their pages: each site does some of it, and after its redesign something else."""

from __future__ import annotations

import random
import re
from dataclasses import replace

from tests.agents.corpus.templates import Facts

KINDS = (
    "broken-json", "placeholder-price", "on-request", "marked-up", "icons", "twice", "synonyms", "comments",
    "notes", "seller-box", "advert", "blanks",
)  # fmt: skip
SYNONYMS = {
    "Mileage": "Odometer",
    "Engine": "Motor",
    "Exterior": "Colour",
    "Stock #": "SKU",
    "Make": "Brand",
}
REMARKS = (
    "Saw it at the show last year and it is even better in person, what a wonderful piece of work it is.",
    "My father had the very same one in his shop for many years. I would take it home at once if I could.",
    "Great! Does anybody know whether the original ones are still made somewhere? I have looked for months.",
)


def kinds_of(name: str) -> frozenset[str]:
    """Four kinds of dirt for a site."""
    return frozenset(random.Random(name).sample(KINDS, 4))


def dirty_facts(facts: Facts, kinds: frozenset[str], chance: random.Random) -> Facts:
    """The rows as such a site writes them."""
    rows = list(facts.rows)
    if "synonyms" in kinds and chance.random() < 0.4:
        rows = [(name, SYNONYMS.get(label, label), text) for name, label, text in rows]
    if "on-request" in kinds and facts.price and chance.random() < 0.25:
        rows = [(n, label, "Price on request" if n == "price" else t) for n, label, t in rows]
        facts.item.truth.pop("price", None)
        facts.item.truth.pop("currency", None)
    if "marked-up" in kinds:
        rows = [(name, label, _marked(text)) for name, label, text in rows]
    if "icons" in kinds:
        rows = [(n, f'<i class="ico ico-{n}"></i>{label}', text) for n, label, text in rows]
    if "blanks" in kinds:
        rows = [(n, f"\n   {label}&nbsp;", f"\n\t{text}\n  ") for n, label, text in rows]
    return replace(facts, rows=tuple(rows))


def _marked(text: str) -> str:
    return re.sub(r"([$£])(?=\d)", r"<sup>\1</sup>", text)


def dirty_page(
    head: str, body: str, facts: Facts, kinds: frozenset[str], chance: random.Random
) -> tuple[str, str]:
    """The page with what stands around the item."""
    if "broken-json" in kinds and chance.random() < 0.2:
        head = head.replace('"@context"', '"@context" "oops"', 1)
    if "placeholder-price" in kinds:
        head = re.sub(r'"price": "[^"]*"', '"price": "0.00"', head)
    if "twice" in kinds and len(facts.rows) > 3:
        glance = "".join(
            f"<li><span>{label}</span> <b>{text}</b></li>" for _, label, text in facts.rows[:3]
        )
        body += f'<ul class="glance">{glance}</ul>'
    if "comments" in kinds:
        said = "".join(
            f'<div class="comment"><b>Visitor {n}</b><p>{chance.choice(REMARKS)}</p></div>'
            for n in range(chance.randint(0, 4))
        )
        body += f'<section class="comments"><h3>Comments</h3>{said}</section>'
    if "notes" in kinds:
        body += f"<p>Please note: we answer within {chance.randint(1, 9)} days. Hours: 9 to 5.</p>"
    if "seller-box" in kinds:
        body += (
            '<div class="seller"><h4>Sold by</h4><p>The Site</p><p>Phone: (555) 010-0000</p>'
            '<a href="mailto:sales@the-site.example">sales@the-site.example</a></div>'
        )
    if "advert" in kinds:
        price = chance.choice((199, 249, 299, 349))
        offer = f"Insurance from ${price} a month"
        body = f'<div class="ad"><a href="https://ads.example/x">{offer}</a></div>{body}'
    return head, body
