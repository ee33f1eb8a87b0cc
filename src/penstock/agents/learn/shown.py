"""What pages show to people: labels with values, elements named after a field, values of a telling form."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from selectolax.lexbor import LexborNode

from penstock.agents.learn.evidence import Evidence, Targets, best_way, evidence_of
from penstock.agents.learn.labels import Pair, pairs_of
from penstock.agents.learn.page import Page, children, classes_of, own_text, text_of
from penstock.agents.learn.reading import is_same
from penstock.agents.learn.selectors import TELLING
from penstock.agents.learn.values import amounts, shared_start, value_of
from penstock.agents.learn.vocabulary import (
    FIELDS,
    OF_THE_SITE,
    Field,
    field_named,
    labelled,
    name_of_label,
    plain,
    tokened,
    words_of_token,
)

LABEL, KNOWN_LABEL, TOKEN, HEADING, FORM, KNOWN = 0.85, 0.93, 0.86, 0.9, 0.75, 0.9
# A price that is not asked.
_NOT_ASKED = frozenset(
    "was old regular msrp list strike original previous shipping deposit monthly month save savings from "
    "discount fee tax before finance per".split()
)
_MUST_VARY = frozenset({"title", "price", "description", "vin", "sku", "lot"}) | OF_THE_SITE
# So long is a text that nobody has named.
PROSE = 90
# So long is a fact that the vocabulary does not know, and a price that stands alone.
MANY_LABELS = 3
LONGEST_FACT, LONGEST_PRICE = 60, 24
Known = Mapping[str, Any]
Signature = tuple[str, ...]
# A label, and the place in the layout where it stands.
Labelled = tuple[str, Signature]


def labels(
    pages: Sequence[Page], steady: frozenset[str], known: Sequence[Known] = ()
) -> Iterator[Evidence]:
    """Values with a label beside them."""
    found: dict[Labelled, dict[int, list[Pair]]] = defaultdict(lambda: defaultdict(list))
    for at, page in enumerate(pages):
        for pair in pairs_of(page):
            found[plain(pair.label), signature(pair.node, steady)][at].append(pair)
    ways: dict[Labelled, str] = {}
    # In a place with many labels, one of the vocabulary is one also where a single page has it.
    settled = Counter(place for (_, place), by_page in found.items() if len(by_page) >= 2)
    for (label, place), by_page in found.items():
        singles = {at: pairs[0] for at, pairs in by_page.items() if _is_single(pairs)}
        if _is_usual(label, singles, len(pages), settled[place] >= MANY_LABELS):
            targets = {at: pair.node for at, pair in singles.items()}
            way = _label_way(pages, targets, singles, steady, label)
            if way is not None:
                ways[label, place] = way
    together = Counter(way.rpartition("|")[0] for way in ways.values())
    for (label, place), way in ways.items():
        about, trust = _about(label, found[label, place], known)
        if about is None:
            if together[way.rpartition("|")[0]] < 2:
                continue
            about, trust = field_named(name_of_label(label)), LABEL
        yield evidence_of(pages, about, way, trust)


def _about(
    label: str, by_page: Mapping[int, list[Pair]], known: Sequence[Known]
) -> tuple[Field | None, float]:
    """The field that a label means: by its word, or because its values are known."""
    said = labelled(label)
    if said is not None:
        return said, KNOWN_LABEL
    texts = {at: pairs[0].value for at, pairs in by_page.items() if _is_single(pairs)}
    for name in {name for each in known for name in each}:
        if _is_known(field_named(name), texts, known):
            return field_named(name), KNOWN
    return None, 0.0


def _is_known(about: Field, texts: Mapping[int, str], known: Sequence[Known]) -> bool:
    """Whether most of these texts are what was found before on the same pages."""
    both = [
        (value_of(about.kind, text), known[at].get(about.name))
        for at, text in texts.items()
        if at < len(known) and known[at].get(about.name) is not None
    ]
    hits = sum(value is not None and is_same(about, value, before) for value, before in both)
    return hits >= 2 and hits * 10 >= 6 * len(both)


def _is_single(pairs: Sequence[Pair]) -> bool:
    """Whether they say one thing, once or several times."""
    return len({pair.value for pair in pairs}) == 1


def _is_usual(label: str, singles: Mapping[int, Pair], count: int, is_settled: bool) -> bool:
    """Whether a label is one: of the vocabulary, or on many pages with values that differ."""
    if not singles:
        return False
    if labelled(label) is not None:
        return len(singles) >= 2 or is_settled
    if any(pair.is_heading for pair in singles.values()):
        return False
    values = {pair.value for pair in singles.values()}
    lengths = sorted(len(pair.value) for pair in singles.values())
    if label[-1].isdigit() or lengths[len(lengths) // 2] > LONGEST_FACT:
        return False
    return len(singles) * 10 >= 4 * count and len(singles) >= 2 and len(values) > 1


def _label_way(
    pages: Sequence[Page],
    targets: Targets,
    pairs: Mapping[int, Pair],
    steady: frozenset[str],
    label: str,
) -> str | None:
    """A selector of the label's node; its text tells it from the labels beside it."""
    from penstock.agents.learn.selectors import raw_values

    node = next(iter(targets.values()))
    best, best_right = None, 0
    for css in _label_ways(node, steady):
        way = f"label:{css}|{label}"
        right = 0
        for at, page in enumerate(pages):
            values = raw_values(page, way)
            right += at in pairs and set(values) == {pairs[at].value}
        if right == len(pairs):
            return way
        if right > best_right:
            best, best_right = way, right
    return best if best_right * 10 >= 8 * len(pairs) else None


def _label_ways(node: LexborNode, steady: frozenset[str]) -> Iterator[str]:
    tag = node.tag or "*"
    classes = [name for name in classes_of(node) if name in steady]
    for name in classes:
        yield f"{tag}.{name}"
    at = node.parent
    for distance in range(3):
        if at is None or at.tag in ("body", "html"):
            break
        for name in [each for each in classes_of(at) if each in steady]:
            yield f"{at.tag}.{name} {'> ' if distance == 0 else ''}{tag}"
        at = at.parent
    if node.parent is not None:
        yield f"{node.parent.tag} > {tag}"
    yield tag


def slots_of(pages: Sequence[Page], steady: frozenset[str]) -> dict[Signature, Targets]:
    """Places in the layout that have one text each, on at least two pages."""
    found: dict[Signature, dict[int, list[LexborNode]]] = defaultdict(lambda: defaultdict(list))
    for at, page in enumerate(pages):
        for node in page.nodes:
            if own_text(node):
                found[signature(node, steady)][at].append(node)
    return {
        key: {at: nodes[0] for at, nodes in by_page.items()}
        for key, by_page in found.items()
        if len(by_page) >= 2 and all(len(nodes) == 1 for nodes in by_page.values())
    }


def signature(node: LexborNode, steady: frozenset[str]) -> Signature:
    """The tags and steady classes from the body down to the node."""
    parts: list[str] = []
    at: LexborNode | None = node
    while at is not None and at.tag not in ("body", "html"):
        parts.append(".".join([at.tag or "", *(n for n in classes_of(at) if n in steady)]))
        at = at.parent
    return tuple(reversed(parts))


def named_slots(
    pages: Sequence[Page], steady: frozenset[str], slots: Mapping[Signature, Targets]
) -> Iterator[Evidence]:
    """Places that are named after a field, and the first heading."""
    for targets in slots.values():
        node = next(iter(targets.values()))
        about, trust = _named(node)
        if about is None or not _fits(about, targets):
            continue
        way = best_way(pages, targets, steady)
        if way is not None:
            yield evidence_of(pages, about, way, trust)


def alike_slots(
    pages: Sequence[Page], steady: frozenset[str], slots: Mapping[Signature, Targets]
) -> Iterator[Evidence]:
    """Places beside those with a known name, whose class is built in the same way: `fact-wheels`."""
    groups: dict[Signature, dict[str, Targets]] = defaultdict(dict)
    for key, targets in slots.items():
        classes = [name for name in classes_of(next(iter(targets.values()))) if name in steady]
        if len(classes) == 1:
            groups[key[:-1]][classes[0]] = targets
    for by_class in groups.values():
        known = [name for name in by_class if tokened(name) is not None]
        before, after = _frame(known)
        if len(known) < 3 or not before + after:
            continue
        for name, targets in by_class.items():
            middle = name[len(before) : len(name) - len(after)]
            is_framed = name.startswith(before) and name.endswith(after) and middle
            if (
                is_framed
                and tokened(name) is None
                and len({text_of(n) for n in targets.values()}) > 1
            ):
                way = best_way(pages, targets, steady)
                if way is not None:
                    about = field_named(words_of_token(middle).replace(" ", "_"))
                    yield evidence_of(pages, about, way, FORM)


def _frame(names: Sequence[str]) -> tuple[str, str]:
    """What all names begin and end with, up to a separator."""
    if len(names) < 2:
        return "", ""
    before = shared_start(names)
    before = before[: max(before.rfind(sign) for sign in "-_") + 1]
    after = shared_start([name[::-1] for name in names])[::-1]
    starts = [after.find(sign) for sign in "-_" if sign in after]
    return before, after[min(starts) :] if starts else ""


def _named(node: LexborNode) -> tuple[Field | None, float]:
    if node.tag == "h1":
        return FIELDS["title"], HEADING
    for each in (node, node.parent):
        if each is None or (each is not node and len(list(children(each))) > 1):
            continue
        for token in _tokens(each):
            about = tokened(token)
            if about is not None and not _is_other(about, node):
                return about, TOKEN
    return None, 0.0


def _tokens(node: LexborNode) -> Iterator[str]:
    for name in TELLING:
        if said := node.attributes.get(name):
            yield said
    if told := node.attributes.get("id"):
        yield told
    yield from classes_of(node)


def _is_other(about: Field, node: LexborNode) -> bool:
    """Whether it is a price that is not asked: struck out, or the one before."""
    if about.kind != "money":
        return False
    words = {word for each in (node, node.parent) if each is not None for word in _words(each)}
    at: LexborNode | None = node
    while at is not None:
        if at.tag in ("s", "del", "strike"):
            return True
        at = at.parent
    return bool(words & _NOT_ASKED)


def _words(node: LexborNode) -> list[str]:
    return " ".join(words_of_token(token) for token in _tokens(node)).split()


def _fits(about: Field, targets: Targets) -> bool:
    """Whether most texts are values of the kind, and not the same on all pages where that says nothing."""
    values = [value_of(about.kind, text_of(node)) for node in targets.values()]
    good = [str(value) for value in values if value is not None]
    if len(good) < 2 or len(good) * 10 < 7 * len(values):
        return False
    if about.kind == "text" and sorted(map(len, good))[len(good) // 2] > PROSE:
        return False
    return about.name not in _MUST_VARY or len(set(good)) > 1


def formed(
    pages: Sequence[Page], steady: frozenset[str], slots: Mapping[Signature, Targets]
) -> Iterator[Evidence]:
    """Values that show what they are: links to write or call, a VIN, the only price on the page."""
    for name, scheme in (("email", "mailto:"), ("phone", "tel:")):
        yield from _linked(pages, steady, FIELDS[name], scheme)
    priced: list[Targets] = []
    labelled_texts = [{pair.value for pair in pairs_of(page)} for page in pages]
    for targets in slots.values():
        texts = [text_of(node) for node in targets.values()]
        if all(value_of("vin", text) for text in texts):
            yield from _of_form(pages, steady, FIELDS["vin"], targets)
        elif _are_prices(texts) and _is_nameless(targets, labelled_texts):
            priced.append(targets)
    if len(priced) == 1:
        yield from _of_form(pages, steady, FIELDS["price"], priced[0])


def _is_nameless(targets: Targets, labelled_texts: Sequence[frozenset[str] | set[str]]) -> bool:
    """Whether neither a label nor a class says that it is something else than a price."""
    for at, node in targets.items():
        about, _ = _named(node)
        if _is_other(FIELDS["price"], node) or (about is not None and about.name != "price"):
            return False
        text = text_of(node)
        if any(value in text for value in labelled_texts[at]):
            return False
    return True


def _are_prices(texts: Sequence[str]) -> bool:
    if len(set(texts)) < 2 or max(map(len, texts)) > LONGEST_PRICE:
        return False
    found = [amounts(text) for text in texts if value_of("money", text) is not None]
    named = [each for each in found if any(is_named for _, _, is_named in each)]
    return len(named) * 10 >= 8 * len(texts)


def _of_form(
    pages: Sequence[Page], steady: frozenset[str], about: Field, targets: Targets
) -> Iterator[Evidence]:
    way = best_way(pages, targets, steady)
    if way is not None:
        yield evidence_of(pages, about, way, FORM)


def _linked(
    pages: Sequence[Page], steady: frozenset[str], about: Field, scheme: str
) -> Iterator[Evidence]:
    targets: Targets = {}
    for at, page in enumerate(pages):
        found = page.css(f'a[href^="{scheme}"]')
        if len({node.attributes.get("href") for node in found}) == 1:
            targets[at] = found[0]
    said = {node.attributes.get("href") for node in targets.values()}
    if len(targets) >= 2 and len(said) > 1:
        selector = f'css:a[href^="{scheme}"]@href'
        yield evidence_of(pages, about, selector, KNOWN_LABEL)


def prose(pages: Sequence[Page], steady: frozenset[str]) -> Iterator[Evidence]:
    """The longest text of each page, where it always stands at the same place."""
    targets: Targets = {}
    for at, page in enumerate(pages):
        longest = max(page.nodes, key=_prose_length, default=None)
        if longest is not None and _prose_length(longest) >= PROSE:
            targets[at] = longest
    texts = {text_of(node) for node in targets.values()}
    if len(targets) * 10 >= 5 * len(pages) and len(texts) > 1:
        way = best_way(pages, targets, steady)
        if way is not None:
            yield evidence_of(pages, FIELDS["description"], way, FORM)


_SENTENCE = re.compile(r"[.!?](\s|$)")


def _prose_length(node: LexborNode) -> int:
    """How long the text of a node is, if it has paragraphs or is one; else 0."""
    inner = list(children(node))
    has_paragraphs = inner and all(child.tag == "p" for child in inner)
    if has_paragraphs or (own_text(node) and all(child.tag in _IN_LINE for child in inner)):
        text = text_of(node)
    else:
        return 0
    return len(text) if _SENTENCE.search(text) else 0


_IN_LINE = frozenset("b strong i em a br span small sup sub u".split())


def known_before(
    pages: Sequence[Page], steady: frozenset[str], known: Sequence[Known]
) -> Iterator[Evidence]:
    """Values that were found before on the same pages, wherever they stand now."""
    for name in sorted({name for each in known for name in each}):
        about = field_named(name)
        if about.kind in ("images", "currency"):
            continue
        targets: Targets = {}
        for at, page in enumerate(pages):
            before = known[at].get(name) if at < len(known) else None
            node = None if before is None else _only_with(page, about, before)
            if node is not None:
                targets[at] = node
        if len(targets) >= 3 and len({text_of(node) for node in targets.values()}) > 1:
            way = best_way(pages, targets, steady)
            if way is not None:
                found = evidence_of(pages, about, way, KNOWN)
                if _repeats(found, known):
                    yield found


def _only_with(page: Page, about: Field, before: Any) -> LexborNode | None:
    found = []
    for node in page.nodes:
        if own_text(node) or about.kind == "long":
            value = value_of(about.kind, text_of(node))
            if value is not None and is_same(about, value, before):
                found.append(node)
    if about.kind == "long" and found:
        return min(found, key=lambda node: abs(len(text_of(node)) - len(str(before))))
    return found[0] if len(found) == 1 else None


def _repeats(found: Evidence, known: Sequence[Known]) -> bool:
    pairs = [
        (value, known[at].get(found.field.name))
        for at, value in enumerate(found.values)
        if value is not None and at < len(known) and known[at].get(found.field.name) is not None
    ]
    hits = sum(is_same(found.field, value, before) for value, before in pairs)
    return hits >= 2 and hits * 10 >= 6 * len(pairs)
