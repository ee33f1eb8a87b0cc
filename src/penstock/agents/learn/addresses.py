"""Addresses: which pages are of one type, by how their URLs are built."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from urllib.parse import parse_qsl, urlsplit

# So many children of one place in a path are instances of something.
MANY = 6
_NUMBER = re.compile(r"\d")
ANY = "[^/?]+"


def path_of(url: str) -> str:
    """Path and query: what a pattern is compared with."""
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def matches(pattern: str, url: str) -> bool:
    return re.fullmatch(pattern, path_of(url)) is not None


def is_instance(segment: str) -> bool:
    """Whether a part of a path looks like the name of one thing: `1969-camaro`, `12345`, `a-b-c`."""
    return bool(_NUMBER.search(segment)) or segment.count("-") >= 2 or segment.count("_") >= 2


def patterns_of(urls: Iterable[str]) -> dict[str, list[str]]:
    """The patterns that tell the types of pages apart, each with its addresses."""
    found: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for url in dict.fromkeys(urls):
        found[_shape(url)].append(url)
    groups: dict[str, list[str]] = {}
    for (count, *keys), members in found.items():
        for segments, those in _split([_segments(url) for url in members], members, int(count)):
            groups.setdefault(_pattern(segments, tuple(keys), those), []).extend(those)
    return groups


def _shape(url: str) -> tuple[str, ...]:
    """How many parts the path has, and which keys the query."""
    keys = sorted({key for key, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)})
    return (str(len(_segments(url))), *keys)


def _segments(url: str) -> tuple[str, ...]:
    return tuple(each for each in urlsplit(url).path.split("/") if each)


def _split(
    paths: list[tuple[str, ...]], urls: list[str], count: int
) -> list[tuple[tuple[str, ...], list[str]]]:
    """Groups of addresses, each with its parts: words as they are, instances as a wildcard."""
    groups: list[tuple[tuple[str, ...], list[int]]] = [((), list(range(len(urls))))]
    for depth in range(count):
        groups = [
            branch for head, members in groups for branch in _branches(head, members, paths, depth)
        ]
    return [(head, [urls[at] for at in members]) for head, members in groups]


def _branches(
    head: tuple[str, ...], members: list[int], paths: list[tuple[str, ...]], depth: int
) -> list[tuple[tuple[str, ...], list[int]]]:
    by_word: dict[str, list[int]] = defaultdict(list)
    for at in members:
        by_word[paths[at][depth]].append(at)
    instances = [word for word in by_word if is_instance(word)]
    plain = [word for word in by_word if not is_instance(word)]
    single = [word for word in plain if len(by_word[word]) == 1]
    # At the top, single words are pages of their own: /about, /contact.
    if depth > 0 and len(single) + len(instances) >= MANY and len(single) * 2 >= len(plain):
        instances, plain = instances + single, [word for word in plain if word not in single]
    branches = [((*head, re.escape(word)), by_word[word]) for word in plain]
    if instances:
        together = [at for word in instances for at in by_word[word]]
        suffix = _suffix(instances)
        branches.append(((*head, ANY + suffix), sorted(together)))
    return branches


def _suffix(words: list[str]) -> str:
    """The ending that all have, as `.html`."""
    endings = {word[word.rfind(".") :] if "." in word else "" for word in words}
    ending = endings.pop() if len(endings) == 1 else ""
    return re.escape(ending) if re.fullmatch(r"\.[a-z]{2,5}", ending) else ""


def _pattern(segments: tuple[str, ...], keys: tuple[str, ...], urls: list[str]) -> str:
    path = "/" + "/".join(segments)
    slash = "/?" if segments else ""
    if not keys:
        return path + slash
    values = [dict(parse_qsl(urlsplit(url).query, keep_blank_values=True)) for url in urls]
    order = [key for key, _ in parse_qsl(urlsplit(urls[0]).query, keep_blank_values=True)]
    parts = []
    for key in dict.fromkeys(order):
        seen = {each.get(key, "") for each in values}
        steady = len(seen) == 1 and len(urls) > 1 and not is_instance(next(iter(seen)))
        parts.append(f"{re.escape(key)}={re.escape(next(iter(seen))) if steady else '[^&]*'}")
    return rf"{path}{slash}\?{'&'.join(parts)}"
