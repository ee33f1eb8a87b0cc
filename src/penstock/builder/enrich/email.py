"""E-mail addresses: whose mailbox it is, and whether it may be the company's."""

from __future__ import annotations

from typing import Any

from penstock.builder.enrich.dns import DnsAnswer, takes_mail
from penstock.builder.normalize import emails, urls

ROLES = frozenset(
    "accounts admin billing booking careers contact customerservice enquiries feedback hello help hr info "
    "inquiries jobs kontakt mail marketing media office orders post press privacy reception sales secretary "
    "service support team webmaster".split()
)
# Mailboxes that nobody reads, or that are no company's.
_UNREAD = frozenset("abuse donotreply mailer-daemon no-reply noreply nobody postmaster".split())
_FREE = frozenset(
    "aol.com free.fr gmail.com gmx.de gmx.net googlemail.com hotmail.com hotmail.fr icloud.com laposte.net "
    "live.com mail.com mail.ru me.com msn.com orange.fr outlook.com proton.me protonmail.com t-online.de "
    "wanadoo.fr web.de yahoo.com yahoo.fr yandex.ru ymail.com zoho.com".split()
)
_SAMPLES = frozenset(
    "example.com example.org example.net domain.com email.com yourdomain.com sentry.io wixpress.com".split()
)


def is_free(email: str) -> bool:
    """Whether the mailbox is one that anybody can open."""
    return email.rpartition("@")[2] in _FREE


def is_sample(email: str) -> bool:
    """Whether it stands for an address on a page, and is none."""
    domain = email.rpartition("@")[2]
    return domain in _SAMPLES or urls.domain_of(domain) in _SAMPLES


def judge_email(
    email: Any, domain: str | None, mx: DnsAnswer | None = None, address: DnsAnswer | None = None
) -> dict[str, Any]:
    """What is known about an address: is it valid, a role, free, and may it be the company's?

    Plausible is an address below the company's domain, or a free one where the company has none, that takes
    mail or did not say that it takes none.
    """
    found = emails.email(email)
    if found is None:
        return {
            "valid": False,
            "role": False,
            "free": False,
            "takes_mail": None,
            "plausible": False,
            "reason": "syntax",
        }
    local = found.partition("@")[0].lower()
    mail = None if mx is None else takes_mail(mx, address)
    reason = _reason(found, local, domain, mail)
    return {
        "valid": True,
        "role": local in ROLES,
        "free": is_free(found),
        "takes_mail": mail,
        "plausible": reason == "",
        "reason": reason,
    }


def _reason(email: str, local: str, domain: str | None, mail: bool | None) -> str:
    """Why an address is not plausible; empty if it is."""
    if mail is False:
        return "no mail"
    if local in _UNREAD:
        return "unread"
    if is_sample(email):
        return "sample"
    if is_free(email):
        return ""
    if domain is None:
        return ""
    return "" if urls.domain_of(email) == domain else "other domain"


def mail_domain(email: Any) -> str | None:
    """The domain to ask the DNS about; None if the address is none."""
    found = emails.email(email)
    return None if found is None else found.rpartition("@")[2]
