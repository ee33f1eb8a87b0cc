"""Judging: which images of a gallery are not photos of the item, and why. In doubt, an image stays."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal
from urllib.parse import urlsplit

from penstock.agents.gallery.picture import Picture, alike
from penstock.agents.gallery.shown import Gallery, Image, words_around
from penstock.agents.learn.shown import Signature
from penstock.agents.learn.vocabulary import words_of_token

Reason = Literal[
    "not an image", "tracking pixel", "vector graphic", "sprite", "icon", "logo", "banner", "placeholder",
    "repeated across pages", "of another item", "duplicate", "aspect",
]  # fmt: skip
Pictures = Mapping[str, Picture]
# An image on one page: the number of the page, and the address.
Spot = tuple[int, str]

PIXEL, ICON, SMALL, USUAL = 3, 48, 90, 120
# A photo of an item is at most so many times as long as it is wide.
WIDE, TALL = 3.5, 1 / 3
# An image of the site is on so many pages, and on this share of them.
FEWEST_REPEATS, REPEATED = 3, 0.15
FEWEST_IN_PLACE = 4
# More pictures are not compared with each other.
MOST_COMPARED = 600
_WORDS: dict[Reason, frozenset[str]] = {
    "sprite": frozenset({"sprite", "sprites"}),
    "tracking pixel": frozenset({"pixel", "spacer", "tracking", "beacon"}),
    "banner": frozenset({"banner", "banners", "promo", "ad", "ads", "advert", "advertisement"}),
    "placeholder": frozenset({"placeholder"}),
    "logo": frozenset({"logo", "logos", "wordmark", "watermark", "seal", "badge", "badges", "payment"}),
    "icon": frozenset({"icon", "icons", "ico", "avatar", "rating", "social", "button", "emoji"}),
}  # fmt: skip


def judge(gallery: Gallery, pictures: Pictures) -> dict[Spot, Reason]:
    """The images that do not belong, each with its first reason."""
    found: dict[Spot, Reason] = {}
    for rule in (_by_sight, _by_name, _repeated, _of_others, _duplicates):
        left = [image for image in gallery.images if spot_of(image) not in found]
        for image, reason in rule(left, gallery, pictures):
            found.setdefault(spot_of(image), reason)
    return found


def spot_of(image: Image) -> Spot:
    return image.page, image.address


Judged = Iterator[tuple[Image, Reason]]
Rule = Callable[[Sequence[Image], Gallery, Pictures], Judged]


def _by_sight(images: Sequence[Image], gallery: Gallery, pictures: Pictures) -> Judged:
    """By what the bytes show alone."""
    sizes = sorted(p.longest for i in images if (p := pictures.get(i.address)) and p.longest)
    usual = sizes[len(sizes) // 2] if sizes else 0
    for image in images:
        picture = pictures.get(image.address)
        reason = _sight(picture, usual) if picture is not None else _declared(image)
        if reason is not None:
            yield image, reason


def _sight(picture: Picture, usual: int) -> Reason | None:
    if picture.kind == "none":
        return "not an image"
    if picture.kind == "svg":
        return "vector graphic"
    longest, aspect = picture.longest, picture.aspect
    if longest is None or aspect is None or picture.width is None or picture.height is None:
        return None
    if min(picture.width, picture.height) <= PIXEL:
        return "tracking pixel"
    # Where all photos are small, small says nothing.
    if longest < ICON or (longest < SMALL and usual > USUAL):
        return "icon"
    if aspect > WIDE or aspect < TALL:
        if picture.is_drawing and longest < 3 * USUAL:
            return "sprite"
        return "banner" if aspect > WIDE else "aspect"
    return "placeholder" if picture.is_flat else None


def _declared(image: Image) -> Reason | None:
    """By the size that the page gives it, where nobody has its bytes."""
    for node in image.nodes:
        said = [node.attributes.get(name) or "" for name in ("width", "height")]
        sizes = [int(each) for each in said if each.isdecimal() and len(each) < 6]
        if sizes and min(sizes) <= PIXEL:
            return "tracking pixel"
        if len(sizes) == 2 and max(sizes) < ICON:
            return "icon"
    return None


def _by_name(images: Sequence[Image], gallery: Gallery, pictures: Pictures) -> Judged:
    """By what its classes or its file are called; the name of a file alone is not enough."""
    around = {spot_of(image): _words(words_around(image)) for image in images}
    usual = Counter(word for words in around.values() for word in words)
    for image in images:
        # What most images are in is the gallery, however it is called.
        telling = {w for w in around[spot_of(image)] if usual[w] * 2 < len(images)}
        file = _words([urlsplit(image.address).path.rpartition("/")[2].rpartition(".")[0]])
        picture = pictures.get(image.address)
        for reason, words in _WORDS.items():
            if telling & words and not (_is_photo(picture) and reason != "banner"):
                yield image, reason
                break
            if file & words and picture is not None and picture.is_drawing:
                yield image, reason
                break


def _words(tokens: Iterable[str]) -> set[str]:
    return {word for token in tokens for word in words_of_token(token).split()}


def _is_photo(picture: Picture | None) -> bool:
    if picture is None or picture.seen is None:
        return False
    return not picture.is_drawing and (picture.longest or 0) >= USUAL


def _repeated(images: Sequence[Image], gallery: Gallery, pictures: Pictures) -> Judged:
    """The same image at the same place of many pages."""
    same = _identities(images, pictures)
    pages: dict[tuple[str, Signature], set[int]] = defaultdict(set)
    for image in images:
        pages[same[image.address], image.place].add(image.page)
    few = min(FEWEST_REPEATS, max(2, len(gallery.pages) // 2))
    for image in images:
        count = len(pages[same[image.address], image.place])
        if count >= few and count >= REPEATED * len(gallery.pages):
            yield image, "repeated across pages"


def _of_others(images: Sequence[Image], gallery: Gallery, pictures: Pictures) -> Judged:
    """Images at a place where most are those of other pages' items, which stand there at another place."""
    same = _identities(images, pictures)
    at: dict[str, set[tuple[int, Signature]]] = defaultdict(set)
    for image in images:
        at[same[image.address]].add((image.page, image.place))
    total: Counter[Signature] = Counter()
    elsewhere: Counter[Signature] = Counter()
    for image in images:
        total[image.place] += 1
        elsewhere[image.place] += any(
            page != image.page and place != image.place for page, place in at[same[image.address]]
        )
    share = {place: elsewhere[place] / count for place, count in total.items()}
    own = min(share.values(), default=1.0)
    for image in images:
        is_foreign = share[image.place] >= 0.5 and share[image.place] - own >= 0.2
        if is_foreign and total[image.place] >= FEWEST_IN_PLACE:
            yield image, "of another item"


def _duplicates(images: Sequence[Image], gallery: Gallery, pictures: Pictures) -> Judged:
    """The smaller one of two that show the same on one page; of two as large, the second."""
    by_page: dict[int, list[Image]] = defaultdict(list)
    for image in images:
        if image.address in pictures:
            by_page[image.page].append(image)
    for those in by_page.values():
        ranked = sorted(those, key=lambda image: -pictures[image.address].area)
        gone: set[str] = set()
        for one, other in combinations(ranked, 2):
            if one.address in gone or other.address in gone:
                continue
            if alike(pictures[one.address], pictures[other.address]):
                gone.add(other.address)
                yield other, "duplicate"


def _identities(images: Sequence[Image], pictures: Pictures) -> dict[str, str]:
    """Each address with the first one that is the same file or shows the same."""
    found: dict[str, str] = {}
    by_digest: dict[str, str] = {}
    seen: list[tuple[str, Picture]] = []
    for address in dict.fromkeys(image.address for image in images):
        picture = pictures.get(address)
        if picture is None:
            found[address] = address
            continue
        first = by_digest.get(picture.digest) or next(
            (known for known, other in seen if alike(picture, other)), address
        )
        found[address] = by_digest[picture.digest] = first
        if first == address and picture.seen is not None and len(seen) < MOST_COMPARED:
            seen.append((address, picture))
    return found
