"""Telephone numbers: what kind of line it is, and whether it may be the company's."""

from __future__ import annotations

from typing import Any

import phonenumbers

from penstock.builder.normalize import phones

_KINDS = {
    phonenumbers.PhoneNumberType.FIXED_LINE: "fixed",
    phonenumbers.PhoneNumberType.MOBILE: "mobile",
    phonenumbers.PhoneNumberType.FIXED_LINE_OR_MOBILE: "fixed or mobile",
    phonenumbers.PhoneNumberType.TOLL_FREE: "toll-free",
    phonenumbers.PhoneNumberType.PREMIUM_RATE: "premium",
    phonenumbers.PhoneNumberType.SHARED_COST: "shared cost",
    phonenumbers.PhoneNumberType.VOIP: "voip",
}


def judge_phone(phone: Any, country: str | None) -> dict[str, Any]:
    """What is known about a number: is it valid, what line, of which country, and may it be the company's?

    A number of another country is not plausible; one that belongs to no country (800) is.
    """
    found = phones.phone(phone, country)
    if found is None:
        return {
            "valid": False,
            "kind": None,
            "country": None,
            "plausible": False,
            "reason": "syntax",
        }
    number = phonenumbers.parse(found)
    kind = _KINDS.get(phonenumbers.number_type(number), "other")
    home = phones.country_of(found)
    is_abroad = home is not None and country is not None and not _same_plan(home, country)
    reason = "premium" if kind == "premium" else "other country" if is_abroad else ""
    return {"valid": True, "kind": kind, "country": home, "plausible": not reason, "reason": reason}


def _same_plan(home: str, country: str) -> bool:
    codes = phonenumbers.country_code_for_region
    return home == country or codes(home) == codes(country)
