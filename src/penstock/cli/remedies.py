"""How the command line phrases a remedy: the command that does what the verb does."""

from __future__ import annotations

from penstock.errors import PenstockError

# By the error's code where one command does not say it all, else by the verb.
BY_CODE: dict[str, str] = {}
BY_VERB: dict[str, str] = {}


def hint_of(error: PenstockError) -> str:
    """The line below the message. Without a phrase of our own, the error's hint."""
    if error.remedy is None:
        return error.hint
    phrase = BY_CODE.get(error.code) or BY_VERB.get(error.remedy.verb)
    if phrase is None:
        return error.hint
    target = "" if error.remedy.target is None else str(error.remedy.target)
    return phrase.replace("{}", target).strip()
