"""Pictures: what the bytes of an image show, as far as galleries are judged by it."""

from __future__ import annotations

import hashlib
import io
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

import msgspec

from penstock.agents.gallery.essentials import MOST_BYTES, Essentials, essentials_of
from penstock.jobs.failures import Permanent

if TYPE_CHECKING:
    import PIL.Image

MOST_MEMORY = 48_000_000
# Of 128 signs, so few differ where two images show the same.
SAME = 6
# Between the darkest and the lightest point of what shows nothing.
FLAT = 12
# A drawing has no more colors than this, of 4,096.
FEW_COLORS = 24
_SIDE, _COLORS_SIDE = 9, 32
_NOT_IMAGES = re.compile(rb"\s*(<!doctype|<html|<head|<\?php|\{|\[|$)", re.IGNORECASE)
_SVG = re.compile(rb"\s*(<\?xml|<!--|<!DOCTYPE svg|<svg)", re.IGNORECASE)

Kind = Literal["jpeg", "png", "gif", "webp", "svg", "none", "unknown"]


class Picture(msgspec.Struct, frozen=True):
    """What is known of an image: `none` is no image at all, `unknown` one that nobody looked into."""

    kind: Kind
    digest: str
    width: int | None = None
    height: int | None = None
    # 128 signs of light and dark, the same for any size of the same photo; None where it shows nothing.
    seen: str | None = None
    is_flat: bool = False
    is_drawing: bool = False

    @property
    def longest(self) -> int | None:
        return max(self.width, self.height) if self.width and self.height else None

    @property
    def area(self) -> int:
        return (self.width or 0) * (self.height or 0)

    @property
    def aspect(self) -> float | None:
        return self.width / self.height if self.width and self.height else None


def look(body: bytes) -> Picture:
    """What an image shows. Takes at most 48 MB and some tenths of a second: call it in a thread.

    An image that would take more has a size and no more; one that is cut off or broken is `unknown`.
    """
    need_pillow()
    digest = hashlib.sha256(body[:MOST_BYTES]).hexdigest()[:32]
    if len(body) > MOST_BYTES:
        return Picture("unknown", f"{digest} of {len(body)}")
    essentials = essentials_of(body)
    if essentials is None:
        return Picture(_kind(body), digest)
    kind: Kind = essentials.kind  # type: ignore[assignment]
    about = Picture(kind, digest, essentials.width, essentials.height)
    return about if essentials.memory > MOST_MEMORY else _seen(about, essentials)


def alike(one: Picture, other: Picture) -> bool:
    """Whether two images are the same file, or show the same."""
    if one.digest == other.digest:
        return True
    if one.seen is None or other.seen is None:
        return False
    return (int(one.seen, 16) ^ int(other.seen, 16)).bit_count() <= SAME


def _kind(body: bytes) -> Kind:
    start = body[:1000]
    if _SVG.match(start) and b"<svg" in body[:10_000].lower():
        return "svg"
    return "none" if _NOT_IMAGES.match(start) else "unknown"


def _seen(about: Picture, essentials: Essentials) -> Picture:
    import PIL.Image

    try:
        with PIL.Image.open(
            io.BytesIO(essentials.body), formats=[essentials.kind.upper()]
        ) as image:
            if image.size != (essentials.width, essentials.height):
                return msgspec.structs.replace(about, kind="unknown")
            image.draft("RGB", (72, 72))
            small, light = _reduced(image)
    except (
        Exception
    ):  # strangers write images, and a decoder that is given anything raises anything
        return Picture("unknown", about.digest)
    is_flat = max(light) - min(light) < FLAT
    return msgspec.structs.replace(
        about,
        seen=None if is_flat else f"{_signs(light):032x}",
        is_flat=is_flat,
        is_drawing=not is_flat and _is_drawing(small),
    )


def _reduced(image: PIL.Image.Image) -> tuple[list[tuple[int, ...]], bytes]:
    """Some points of the picture as they are, and its light in a square of 9 by 9."""
    import PIL.Image

    whole = image.convert("RGBA") if image.mode not in ("L", "RGB", "RGBA") else image
    nearest = whole.resize((_COLORS_SIDE, _COLORS_SIDE), PIL.Image.Resampling.NEAREST)
    square = whole.resize((_SIDE, _SIDE), PIL.Image.Resampling.BOX).convert("RGBA")
    on_white = PIL.Image.new("RGBA", square.size, (255, 255, 255, 255))
    on_white.alpha_composite(square)
    points = nearest.convert("RGBA").tobytes()
    return [tuple(points[at : at + 4]) for at in range(0, len(points), 4)], on_white.convert(
        "L"
    ).tobytes()


def _is_drawing(points: list[tuple[int, ...]]) -> bool:
    """Whether much of it is transparent, or it has few colors."""
    clear = sum(point[3] < 32 for point in points)
    colors = {tuple(part >> 4 for part in point[:3]) for point in points if point[3] >= 32}
    return clear * 20 > len(points) or len(colors) <= FEW_COLORS


def _signs(light: bytes) -> int:
    """Whether each point is lighter than the next one to the right, and than the one below."""
    signs = 0
    for row in range(_SIDE - 1):
        for column in range(_SIDE - 1):
            at = row * _SIDE + column
            signs = signs << 2 | (light[at] > light[at + 1]) << 1 | (light[at] > light[at + _SIDE])
    return signs


def need_pillow() -> None:
    """Raise Permanent where images can't be looked at."""
    if find_spec("PIL") is None:
        raise Permanent(
            "image QA needs Pillow: pip install 'penstock[agents]', then retry",
            cause="Pillow is not installed",
        )
