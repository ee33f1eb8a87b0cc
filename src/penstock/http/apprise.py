"""Apprise: the services that it knows by an address. Needs the extra `alerts`.

Its requests are its own: they go where the address says, and not through the rest of this room.
"""

from __future__ import annotations

import logging

MISSING = "Apprise is not installed: pip install 'penstock[alerts]'"


def send_by_apprise(address: str, title: str, text: str) -> str:
    """Deliver a message; answers with what was wrong, or '' when the service has accepted it."""
    try:
        import apprise
    except ImportError:
        return MISSING
    service = apprise.Apprise()
    if not service.add(address):
        return "Apprise does not know this kind of address, or a part of it is missing"
    with apprise.LogCapture(level=logging.WARNING, fmt="%(message)s") as said:  # type: ignore[no-untyped-call]
        is_accepted = service.notify(title=title, body=text)
        words = said.getvalue().strip().splitlines()
    if is_accepted:
        return ""
    return words[-1] if words else "the service has not accepted it"
