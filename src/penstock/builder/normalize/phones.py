"""Telephone numbers, by the plans of their countries."""

from __future__ import annotations

from typing import Any

import phonenumbers

from penstock.builder.normalize.text import clean

LONGEST = 60


def phone(value: Any, of_country: str | None = None) -> str | None:
    """The number in E.164; None if it is no number of its country's plan, or if that can't be told.

    A number without its country's code is only read where the country is given.
    """
    text = clean(value, LONGEST)
    if text is None:
        return None
    try:
        number = phonenumbers.parse(text.removeprefix("tel:"), of_country)
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_valid_number(number):
        return None
    return str(phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164))


def country_of(number: str) -> str | None:
    """The country of a number in E.164, where its plan tells it."""
    try:
        return phonenumbers.region_code_for_number(phonenumbers.parse(number))
    except phonenumbers.NumberParseException:
        return None
