"""Checking a source's compliance at once, for whoever asks: see `penstock.project.compliance`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.app.run_performer import in_own_loop
from penstock.errors import Refused, UsageError
from penstock.http.failures import FetchError
from penstock.project.compliance import Seen, read

if TYPE_CHECKING:
    from penstock.http.network import Network
    from penstock.settings import SourceSettings
    from penstock.store.onboardings import OnboardingRow


def look(
    source: SourceSettings,
    known: OnboardingRow | None,
    terms_url: str,
    network: Network | None = None,
) -> Seen:
    """Read robots.txt and the terms of a source: those at this address, or where they were before."""
    url = terms_url or (known.terms_url if known is not None else "")
    if terms_url and not terms_url.startswith(("http://", "https://")):
        raise UsageError(f"{terms_url!r:.80} is no address of a page", "https://acme.com/terms")
    try:
        return in_own_loop(lambda: asyncio.run(read(source, url, network)))
    except FetchError as error:
        raise Refused(f"{source.key} can't be checked: {error.message}") from None
