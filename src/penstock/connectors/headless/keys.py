"""The keys of the connector `headless`: those of `web`, and how a page is drawn."""

from __future__ import annotations

import re
from typing import Annotated, get_args

from penstock.connectors.web.connector import WebKeys
from penstock.connectors.web.folder import read_page
from penstock.errors import ConfigError
from penstock.http.browser.options import IDLE, LOAD, SELECTOR, Blocked, Screenshot
from penstock.settings.declaration import Reads, Schema, TextForm, Usual, about, between, no_more
from penstock.settings.document import Entry
from penstock.settings.kinds import Duration, Ref, Size, read_names
from penstock.settings.section import Section, describe, read_choice, read_text

_VIEWPORT = re.compile(r"([0-9]{2,4})x([0-9]{2,4})")


def _read_wait(entry: Entry, path: str) -> str:
    """`load`, `idle`, or `{selector: …}`."""
    if isinstance(entry.value, dict):
        found = Section(entry, path, ("selector",)).get("selector")
        if found is None:
            raise entry.error(path, 'needs a selector: {selector: ".price"}')
        return SELECTOR + read_text(found, f"{path}.selector")
    if entry.value not in (LOAD, IDLE):
        words = 'must be load, idle or {selector: ".price"}'
        raise entry.error(path, f"{words}, not {describe(entry)}")
    return str(entry.value)


def _wait_schema(_: Ref) -> Schema:
    selector: Schema = {
        "type": "object",
        "properties": {"selector": {"type": "string", "minLength": 1}},
        "required": ["selector"],
        "additionalProperties": False,
    }
    return {"anyOf": [{"enum": [LOAD, IDLE]}, selector]}


def _shown_wait(wait: str) -> object:
    return {"selector": wait.removeprefix(SELECTOR)} if wait.startswith(SELECTOR) else wait


def _parse_viewport(text: str) -> tuple[int, int]:
    found = _VIEWPORT.fullmatch(text.strip())
    if found is None:
        raise ConfigError("must be a width and a height in pixels, such as 1280x800")
    return int(found[1]), int(found[2])


def _read_blocked(entry: Entry, path: str) -> tuple[Blocked, ...]:
    known = get_args(Blocked)
    found: tuple[Blocked, ...] = read_names(
        entry, path, "kinds", lambda inner, at: read_choice(inner, at, known)
    )
    return found


def _blocked_schema(_: Ref) -> Schema:
    return {"type": "array", "items": {"enum": list(get_args(Blocked))}}


class HeadlessKeys(WebKeys, frozen=True, kw_only=True):
    """The pages of a site as a browser shows them: by a sitemap, by links from a page, or from a list."""

    url: Annotated[
        str | None,
        Reads(read_page, lambda _: {"type": "string", "minLength": 1}),
        about(
            "a page to begin with; its links are followed. It may be a file, relative to penstock.yaml, "
            "such as ./site/index.html: its folder is the site then, and pages have no network"
        ),
        Usual("none"),
    ] = None
    wait: Annotated[
        str,
        Reads(_read_wait, _wait_schema, _shown_wait),
        about(
            "when a page is ready: `idle`, when it has loaded nothing for half a second; `load`, when it "
            'has loaded; or `{selector: ".price"}`, when something on it matches a CSS selector'
        ),
    ] = IDLE
    wait_timeout: Annotated[
        Duration,
        no_more(600),
        about("a page that is not ready after this time fails; waits for limits do not count"),
    ] = 20.0
    screenshot: Annotated[
        Screenshot, about("keep a picture of pages: `never`, of those that `failed`, or `always`")
    ] = "failed"
    viewport: Annotated[
        tuple[int, int],
        TextForm(
            _parse_viewport, "1280x800", r"^[0-9]{2,4}x[0-9]{2,4}$", lambda v: f"{v[0]}x{v[1]}"
        ),
        about("width and height of the window, in pixels"),
    ] = (1280, 800)
    block: Annotated[
        tuple[Blocked, ...],
        Reads(_read_blocked, _blocked_schema),
        about("what pages do not load: `image`, `font`, `media`; `[]` to load everything"),
    ] = ("image", "font", "media")
    scripts: Annotated[bool, about("run the scripts of pages")] = True
    memory: Annotated[Size, about("memory of one page; one that takes more is ended")] = 512_000_000
    pages_per_browser: Annotated[
        int, between(1, 100_000), about("pages after which the browser is replaced by a new one")
    ] = 100
    browser: Annotated[
        str,
        about("the path of chromium"),
        Usual("found in `$PATH`, else Playwright's own"),
    ] = ""
