"""What is written of a private source: addresses, paths and keys as hashes, which show no content."""

from __future__ import annotations

import re

from penstock.private_words import hashed
from penstock.settings.secrets import Masker

# An address or a path, up to white space or what ends one in a sentence. Linear: nothing repeats inside.
_PLACE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,15}://[^\s'\"<>]+|(?<![\w/])[.~]?/[^\s'\"<>:,;]{2,}")
SHORTEST_KEY = 3


class PrivateMasker(Masker):
    """Masks secrets as another does, then hashes places and the key of the job."""

    def __init__(self, masker: Masker, source: str, key: str) -> None:
        self._masker = masker
        self._source = source
        self._key = key if len(key) >= SHORTEST_KEY else ""
        self.longest = masker.longest

    def mask(self, text: str) -> str:
        return self._hashed(self._masker.mask(text))

    def mask_and_cut(self, text: str, longest: int) -> str:
        # Hashed first: half of a path is not found any more.
        return self._masker.mask_and_cut(self._hashed(text), longest)

    def mask_piece(self, text: str) -> tuple[str, str]:
        shown, rest = self._masker.mask_piece(text)
        return self._hashed(shown), rest

    def _hashed(self, text: str) -> str:
        if self._key:
            text = text.replace(self._key, self._hash(self._key))
        return _PLACE.sub(lambda found: self._hash(found[0]), text)

    def _hash(self, text: str) -> str:
        return hashed(text, self._source)
