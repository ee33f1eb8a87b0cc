"""The rules of a robots.txt that concern one user agent: pure, and of bounded cost.

Protego gives every agent of a group a copy of every rule of it, and a file of 60 KB may have thousands
of both. So the groups that do not concern us are dropped before it sees the file, and what is left is one
group: the cost is the number of its rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from protego import Protego

from penstock.http.addresses import MAX_URL

# A file with more for us than this counts as closing the site: to follow half of it would be impolite.
MAX_RULES = 10_000
MAX_STARS = 10_000
# No URL has a path that is longer than this, however it is escaped: such a rule concerns nothing.
MAX_RULE = 3 * MAX_URL
# Rules with an asterisk, times the letters of a URL: each may have to look through all of it.
MAX_MATCHING = 2_000_000

_STARS = re.compile(r"\*{2,}")
_AGENT, _ALLOW, _DISALLOW, _OTHER = "User-agent", "Allow", "Disallow", ""
# As Protego reads them, with what is often misspelt.
_FIELDS = {
    **dict.fromkeys(("user-agent", "useragent", "user agent"), _AGENT),
    "allow": _ALLOW,
    **dict.fromkeys(
        ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"), _DISALLOW
    ),
    **dict.fromkeys(("crawl-delay", "crawl delay", "request-rate", "request rate"), _OTHER),
    **dict.fromkeys(("visit-time", "visit time"), _OTHER),
}
# About the whole site: they do not end a list of agents.
_SITE_WIDE = frozenset({"sitemap", "sitemaps", "site-map", "host"})

Directive = tuple[str, str]


@dataclass(frozen=True, slots=True)
class AgentRules:
    """What one robots.txt says to one user agent. `too_many`: more than can be followed."""

    parsed: Protego
    patterns: int
    size: int
    too_many: str = ""

    def allows(self, url: str) -> bool:
        return bool(self.parsed.can_fetch(url, "*"))

    def can_match(self, url: str) -> bool:
        """Whether it can be told for this URL at a reasonable cost."""
        return self.patterns * len(url) <= MAX_MATCHING


def rules_for(body: bytes, user_agent: str) -> AgentRules:
    """The rules of this file for this agent, in memory and time that grow with the file's length only."""
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    directives = list(_directives(text))
    # A rule that is repeated is one rule.
    rules = list(dict.fromkeys(_of_agent(directives, _closest(directives, user_agent))))
    stars = sum(value.count("*") for _, value in rules)
    if len(rules) > MAX_RULES or stars > MAX_STARS:
        what = f"{len(rules)} rules with {stars} asterisks"
        return AgentRules(Protego.parse("User-agent: *\nDisallow: /"), 0, 4_000, what)
    lines = [f"{_AGENT}: *", *(f"{field}: {value}" for field, value in rules)]
    selected = "\n".join(lines)
    size = 4_000 + 800 * len(rules) + 100 * stars + 16 * len(selected)
    patterns = sum("*" in value for _, value in rules)
    return AgentRules(Protego.parse(selected), patterns, size)


def _directives(text: str) -> Iterator[Directive]:
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        directive = _directive(line) if line else None
        if directive is not None:
            yield directive


def _directive(line: str) -> Directive | None:
    """A line's field and value; None for one that means nothing here."""
    name, colon, value = line.partition(":")
    name = name.strip().lower()
    if name in _FIELDS:
        return _FIELDS[name], value.strip()
    if name in _SITE_WIDE:
        return None
    if colon and (not value or value[0].isspace()):
        return _OTHER, ""
    return _without_colon(line, bool(colon))


def _without_colon(line: str, has_colon: bool) -> Directive | None:
    words = line.split(None, 2)
    for count in (1, 2):
        name = " ".join(words[:count]).lower()
        if name in _SITE_WIDE:
            return None
        if name in _FIELDS:
            return _FIELDS[name], " ".join(" ".join(words[count:]).split())
    return (_OTHER, "") if has_colon else None


def _closest(directives: list[Directive], user_agent: str) -> str | None:
    """The agent of the file that names ours most exactly; `*` names everybody, least exactly."""
    ours = user_agent.strip().lower()
    best, best_score = None, 0
    for field, value in directives:
        if field is _AGENT:
            for agent in _spellings(value):
                score = _score(agent, ours)
                if score > best_score:
                    best, best_score = agent, score
    return best


def _of_agent(directives: list[Directive], agent: str | None) -> Iterator[Directive]:
    is_list_of_agents = is_ours = False
    for field, value in directives:
        if field is _AGENT:
            is_ours = (is_ours and is_list_of_agents) or agent in _spellings(value)
            is_list_of_agents = True
        else:
            is_list_of_agents = False
            if is_ours and value and field and not _is_too_long(value):
                yield field, value


def _is_too_long(rule: str) -> bool:
    return len(rule) > MAX_RULE and len(_STARS.sub("*", rule)) > MAX_RULE


def _spellings(value: str) -> tuple[str, ...]:
    """An agent as it is written and, as Protego has it, without the asterisks that do not belong there."""
    agent = value.lower()
    if "*" not in agent or agent == "*":
        return (agent,) if agent else ()
    return tuple(spelled for spelled in (agent, agent.replace("*", "")) if spelled)


def _score(agent: str, ours: str) -> int:
    """How exactly this agent names us: its length where it begins a word of our name, else nothing."""
    if agent == "*":
        return 1
    at = ours.find(agent)
    while at != -1:
        if at == 0 or not (ours[at - 1].isalnum() or ours[at - 1] in "-_"):
            return len(agent)
        at = ours.find(agent, at + 1)
    return 0
