"""A folder as a site: a page to begin with may be a file, and its folder is the site then."""

from __future__ import annotations

import mimetypes
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from penstock.connectors.contract import Gone
from penstock.connectors.files.file_reader import read_file
from penstock.jobs.failures import Permanent
from penstock.pipeline.context import Captured
from penstock.settings.document import Entry
from penstock.settings.section import read_text

if TYPE_CHECKING:
    from penstock.http.response import Response
    from penstock.pipeline.context import Context

LARGEST_FILE = 16_000_000
PATHS = ("./", "../", "/", "~/")
PAGES = (".html", ".htm", ".xhtml")


def is_address(url: str) -> bool:
    return url.lower().startswith(("http://", "https://"))


def read_url(entry: Entry, path: str) -> str:
    url = read_text(entry, path)
    if not is_address(url):
        raise entry.error(path, "must be an address such as https://example.com/")
    return url


def read_page(entry: Entry, path: str) -> str:
    """An address, or the path of a file."""
    text = read_text(entry, path)
    if is_address(text):
        return text
    if "://" in text or not (text.startswith(PATHS) or text.lower().endswith(PAGES)):
        words = (
            "must be an address such as https://example.com/, or a file such as ./site/index.html"
        )
        raise entry.error(path, words)
    return text


async def page_in(folder: Path, ctx: Context, address: str) -> Response:
    """The file that an address of the folder's site stands for; of a folder in it, index.html."""
    path = unquote(urlsplit(address).path).lstrip("/")
    path = f"{path}index.html" if path.endswith("/") or not path else path
    if ".." in PurePosixPath(path).parts:
        raise Gone(path)
    kind = mimetypes.guess_type(path)[0] or ""

    async def bring() -> Captured:
        return Captured(await ctx.in_thread(lambda: read_file(folder, path, LARGEST_FILE, "skip")))

    try:
        return await ctx.capture(address, bring, kind)
    except Gone:
        if await ctx.in_thread(folder.is_dir):
            raise
        # A folder that is away has lost none of its pages.
        raise Permanent(f"there is no folder {folder}", cause="no folder") from None


DEMO = {
    "index.html": """<!doctype html>
<html lang="en">
<head><title>Teas of the mill</title></head>
<body><main><h1>Teas of the mill</h1><p>We sell two teas, and both are good.</p>
<ul><li><a href="assam.html">Assam</a></li><li><a href="sencha.html">Sencha</a></li></ul></main></body>
</html>
""",
    "assam.html": """<!doctype html>
<html lang="en">
<head><title>Assam</title><script type="application/ld+json">
{"@context": "https://schema.org", "@type": "Product", "name": "Assam",
 "offers": {"@type": "Offer", "price": "2.50", "priceCurrency": "EUR"}}
</script></head>
<body><main><h1>Assam</h1><p>A strong black tea.</p><a href="index.html">All teas</a></main></body>
</html>
""",
    "sencha.html": """<!doctype html>
<html lang="en">
<head><title>Sencha</title><script type="application/ld+json">
{"@context": "https://schema.org", "@type": "Product", "name": "Sencha",
 "offers": {"@type": "Offer", "price": "3.20", "priceCurrency": "EUR"}}
</script></head>
<body><main><h1>Sencha</h1><p>A mild green tea.</p><a href="index.html">All teas</a></main></body>
</html>
""",
}
