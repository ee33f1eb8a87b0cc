"""Sixty sites: ten families of templates, six variants of each, and how each looks after its redesign."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from penstock.agents.learn.vocabulary import FIELDS, name_of_label
from tests.agents.corpus.dirt import dirty_facts, dirty_page, kinds_of
from tests.agents.corpus.shown import label_of
from tests.agents.corpus.templates import FAMILIES, Look, facts_of
from tests.agents.corpus.world import KINDS, Item, items_of

ITEMS = 24
VARIANTS = 6
LOOKS = (
    Look(),
    Look(prefix="x-", is_wrapped=True, currency="GBP"),
    Look(is_shuffled=True, euro=True, currency="EUR", suffix="-box"),
    Look(language="de", euro=True, currency="EUR", prefix="c_"),
    Look(has_traps=True, suffix="--main"),
    Look(language="fr", is_lazy=True, is_wrapped=True, euro=True, currency="EUR", has_traps=True),
)
SITE_TYPES = {
    "vehicle": "dealer_website", "part": "supplier", "lot": "auction_house", "build": "builder",
    "company": "directory",
}  # fmt: skip
WELCOME = {
    "vehicle": "The dealership with our inventory of classic cars. Visit the showroom for a test drive.",
    "part": "Wholesale supplier of parts. Our parts catalog is always in stock.",
    "lot": "Auctions of collector cars. Bidding is open on every lot; the hammer price is final.",
    "build": "Custom builds and restomod work. See our builds or commission a build.",
    "company": "The directory of workshops. Find a company or add your company.",
}
FAMILY_NAMES = tuple(FAMILIES)


@dataclass
class Site:
    """A site at one time: its pages by address, and the truth about the pages of its items."""

    name: str
    family: str
    variant: int
    kind: str
    pages: dict[str, str] = field(default_factory=dict)
    truth: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def home(self) -> str:
        return f"https://{self.name}/"

    @property
    def site_type(self) -> str:
        return SITE_TYPES[self.kind]


def site(family: int, variant: int, *, is_redesigned: bool = False) -> Site:
    """One of the sixty. A redesign has another template, another look, and often other addresses."""
    chance = random.Random(f"{family}/{variant}")
    kind = KINDS[(family + variant) % len(KINDS)]
    first = LOOKS[variant]
    items = items_of(kind, ITEMS, chance, first.currency)
    name = f"site-{family}-{variant}.example"
    if not is_redesigned:
        return _built(Site(name, FAMILY_NAMES[family], variant, kind), items, first, variant == 5)
    other = (family + 4 + variant) % len(FAMILY_NAMES)
    look = LOOKS[(variant + 2) % VARIANTS]
    # The shop changes its clothes, not the language or the money of its goods.
    look = Look(
        **{
            **look.__dict__,
            "language": first.language,
            "currency": first.currency,
            "euro": first.euro,
        }
    )
    is_moved = variant % 2 == 1
    return _built(
        Site(name, FAMILY_NAMES[other], variant, kind), items, look, is_moved and variant != 5
    )


def _built(made: Site, items: list[Item], look: Look, by_query: bool) -> Site:
    addresses = [_address(made, item, by_query) for item in items]
    chance = random.Random(made.name)
    dirt = kinds_of(f"{made.name} {made.family}")
    for at, (item, url) in enumerate(zip(items, addresses, strict=True)):
        order = _order(item, look, chance)
        images = tuple(
            f"https://{made.name}/media/{item.number}/photo{n}.jpg"
            for n in range(item.truth["pictures"])
        )
        facts = dirty_facts(facts_of(item, url, images, look, order), dirt, chance)
        head, body = dirty_page(*FAMILIES[made.family](facts), facts, dirt, chance)
        others = [
            (items[(at + n) % len(items)], addresses[(at + n) % len(items)]) for n in (1, 2, 3)
        ]
        made.pages[url] = _page(
            made, item.title, head, _with_traps(body, others, look, made), look, at
        )
        made.truth[url] = _truth(made, item, look, images)
    _add_lists(made, items, addresses, look)
    return made


def _address(made: Site, item: Item, by_query: bool) -> str:
    if by_query:
        return f"https://{made.name}/view?id={item.number}"
    section = {
        "vehicle": "inventory",
        "part": "parts",
        "lot": "lots",
        "build": "builds",
        "company": "companies",
    }
    return f"https://{made.name}/{section[made.kind]}/{item.slug}"


def _order(item: Item, look: Look, chance: random.Random) -> list[str]:
    order = [
        name for name in item.truth if name not in ("title", "description", "currency", "pictures")
    ]
    if look.is_shuffled:
        chance.shuffle(order)
    return order


def _truth(made: Site, item: Item, look: Look, images: tuple[str, ...]) -> dict[str, Any]:
    truth = {name: value for name, value in item.truth.items() if name != "pictures"}
    # Where nobody has a word for it, a field is called as the site calls it.
    has_labels = made.family != "open-graph"
    if has_labels:
        truth = {
            name if name in FIELDS else name_of_label(label_of(name, look.language)): value
            for name, value in truth.items()
        }
    says_currency = made.family in ("json-ld", "microdata", "open-graph") or look.currency != "USD"
    if not says_currency:
        truth.pop("currency", None)
    return {**truth, "images": list(images)}


def _with_traps(body: str, others: list[tuple[Item, str]], look: Look, made: Site) -> str:
    """What must not be taken for the item's: other items with prices, a banner, icons, a deposit."""
    related = "".join(
        f'<div class="card"><a href="{url}"><img src="https://{made.name}/media/{o.number}/photo0.jpg"></a>'
        f'<h4><a href="{url}">{o.title}</a></h4>'
        f'<span class="price">${int(o.truth.get("price", 500)):,}</span></div>'
        for o, url in others
    )
    after = f'<section class="related"><h3>You may also like</h3>{related}</section>'
    if look.has_traps:
        banner = (
            f'<div class="promo"><img src="https://{made.name}/static/banner-sale.jpg" width="900">'
            "<p>Spring sale ends soon. Call (555) 010-0000.</p></div>"
        )
        icons = "".join(
            f'<img src="/static/icon{n}.png" width="24" class="icon">' for n in range(3)
        )
        body = f'{banner}{after}{body}<div class="share">{icons}</div><p>Deposit: $500</p>'
    else:
        body += after
    return f'<div class="outer"><div class="inner">{body}</div></div>' if look.is_wrapped else body


def _page(made: Site, title: str, head: str, body: str, look: Look, at: int) -> str:
    logo = '<img src="/static/logo.png" alt="The Site">'
    return (
        f'<!doctype html><html lang="{look.language}"><head><title>{title} | The Site</title>{head}</head>'
        f'<body class="page-{at} theme"><header>{logo}<nav><a href="/">Home</a><a href="/about">About</a>'
        '<a href="/contact">Contact</a></nav></header>'
        f"<main>{body}</main><footer>Phone: (555) 010-0000. E-mail: info@the-site.example</footer>"
        "</body></html>"
    )


def _add_lists(made: Site, items: list[Item], addresses: list[str], look: Look) -> None:
    per_page, count = 8, 0
    for start in range(0, len(items), per_page):
        rows = "".join(
            f'<div class="row"><a href="{url}"><h3>{item.title}</h3></a>'
            f"<p>{item.truth['description'][:40]}</p></div>"
            for item, url in list(zip(items, addresses, strict=True))[start : start + per_page]
        )
        count += 1
        url = f"https://{made.name}/list?page={count}"
        made.pages[url] = _page(
            made, f"All, page {count}", "", f"<h1>All items</h1>{rows}", look, 100 + count
        )
    lists = "".join(f'<a href="/list?page={n + 1}">Page {n + 1}</a>' for n in range(count))
    welcome = f"<h1>Welcome</h1><p>{WELCOME[made.kind]}</p>{lists}"
    made.pages[made.home] = _page(made, "Welcome", "", welcome, look, 200)
    for name in ("about", "contact"):
        text = f"<h1>{name.capitalize()}</h1><p>Write to us. {WELCOME[made.kind]}</p>"
        made.pages[f"https://{made.name}/{name}"] = _page(made, name, "", text, look, 300)
