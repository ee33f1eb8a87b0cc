"""Pictures for tests: photos that differ, drawings, and what looks the same in another size."""

from __future__ import annotations

import io
import random
from functools import lru_cache
from typing import Any

import PIL.Image

Image = PIL.Image.Image


@lru_cache(maxsize=512)
def photo(seed: str, width: int = 200, height: int = 150) -> Image:
    """Light and color that change slowly, as in a photo, with some grain."""
    chance = random.Random(seed)
    coarse = PIL.Image.frombytes("RGB", (8, 6), chance.randbytes(8 * 6 * 3))
    smooth = coarse.resize((width, height), PIL.Image.Resampling.BICUBIC)
    grain = PIL.Image.frombytes(
        "L", (width // 2, height // 2), chance.randbytes(width * height // 4)
    )
    grain = grain.resize((width, height)).convert("RGB")
    return PIL.Image.blend(smooth, grain, 0.06)


def drawing(seed: str, width: int = 200, height: int = 80) -> Image:
    """A few shapes of one color on a clear ground: a logo, a badge, an icon."""
    chance = random.Random(seed)
    made = PIL.Image.new("RGBA", (width, height), (0, 0, 0, 0))
    color = (*chance.randbytes(3), 255)
    for _ in range(5):
        left, top = chance.randrange(width), chance.randrange(height)
        right, low = left + 1 + width // chance.randint(2, 6), top + 1 + height // 2
        made.paste(color, (left, top, min(right, width), min(low, height)))
    return made


def saved(image: Image, kind: str = "JPEG", **options: Any) -> bytes:
    body = io.BytesIO()
    image.save(body, kind, **options)
    return body.getvalue()


@lru_cache(maxsize=1024)
def photo_bytes(seed: str, width: int = 200, height: int = 150) -> bytes:
    return saved(photo(seed, width, height), quality=70)


@lru_cache(maxsize=256)
def drawing_bytes(seed: str, width: int = 200, height: int = 80) -> bytes:
    return saved(drawing(seed, width, height), "PNG")
