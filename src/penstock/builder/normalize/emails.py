"""E-mail addresses: their syntax alone. Whether mail arrives is asked elsewhere."""

from __future__ import annotations

from typing import Any

from email_validator import EmailNotValidError, validate_email

from penstock.builder.normalize.text import clean
from penstock.builder.normalize.urls import is_domain

LONGEST = 254
# Names of this machine, which nobody else resolves; the library refuses them.
_LOCAL = ".localhost"
_STANDS_IN = ".example-of-a-domain.com"


def email(value: Any) -> str | None:
    """The address with its domain in lower case; None if it breaks the rules of addresses."""
    text = clean(value, LONGEST + 20)
    if text is None or " " in text:
        return None
    text = text.removeprefix("mailto:").partition("?")[0].strip("<>.,;")
    local, _, domain = text.rpartition("@")
    domain = domain.lower()
    if not is_domain(domain) or len(text) > LONGEST:
        return None
    asked = domain.removesuffix(_LOCAL) + _STANDS_IN if domain.endswith(_LOCAL) else domain
    try:
        found = validate_email(f"{local}@{asked}", check_deliverability=False)
    except EmailNotValidError:
        return None
    return f"{found.local_part}@{domain}" if asked != domain else str(found.normalized)
