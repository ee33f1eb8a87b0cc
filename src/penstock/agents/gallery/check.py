"""Checking: the images of a domain's pages, and what is wrong with them, selector by selector."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec

from penstock.agents.gallery.judge import Pictures, Reason, judge, spot_of
from penstock.agents.gallery.mend import excludes
from penstock.agents.gallery.shown import Image, gallery_of
from penstock.agents.learn.learn import Sample
from penstock.agents.schema import Note, SiteSchema

# A note names so many images and pages.
MOST_NAMED = 20


class Finding(msgspec.Struct, frozen=True):
    """Images that one selector finds and that are not photos of the item, all for one reason.

    `exclude` are selectors that find them and none of the images that are right; empty where there is no
    such selector. `shown` is how many images the selector finds in all.
    """

    selector: str
    reason: Reason
    images: tuple[str, ...]
    pages: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    shown: int = 0

    def note(self, at: str) -> Note:
        """As the schema of the site keeps it. The same selector and reason have the same id again."""
        name = hashlib.sha256(f"{self.selector}\n{self.reason}".encode()).hexdigest()[:12]
        images, pages = self.images[:MOST_NAMED], self.pages[:MOST_NAMED]
        return Note(name, at, self.selector, self.reason, images, pages, exclude=self.exclude)


def check(schema: SiteSchema, samples: Sequence[Sample], pictures: Pictures) -> list[Finding]:
    """What is wrong with the images on these pages, most images first.

    `pictures` has what `look` said about the bytes of those that were fetched, by address; the others are
    judged by the page alone. Takes time: call it in a thread.
    """
    gallery = gallery_of(schema, samples)
    flagged = judge(gallery, pictures)
    groups: dict[tuple[str, Reason], list[Image]] = defaultdict(list)
    for image in gallery.images:
        if (reason := flagged.get(spot_of(image))) is not None:
            groups[image.selector, reason].append(image)
    shown = Counter(image.selector for image in gallery.images)
    found = [
        Finding(
            selector,
            reason,
            tuple(dict.fromkeys(image.address for image in images)),
            tuple(dict.fromkeys(gallery.pages[image.page].url for image in images)),
            excludes(gallery, images, flagged),
            shown[selector],
        )
        for (selector, reason), images in groups.items()
    ]
    return sorted(found, key=lambda each: (-len(each.images), each.selector, each.reason))
