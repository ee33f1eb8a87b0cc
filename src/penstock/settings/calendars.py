"""Calendars: the exchanges whose sessions schedules may go by."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from penstock.errors import ConfigError, nearest

LIBRARY = "exchange_calendars"
# Those that the library knew when this was written: it takes half a second and 60 MB to ask it, which every
# command and every worker of a project with sessions would pay. It is asked about all other names.
NAMES = frozenset(
    (
        "24/5 24/7 AIXK ARCX ASEX ASX BATS BMF BSE BVB BVMF CBOT CFE CME CMES COMEX FWB HKEX ICE ICEUS "
        "IEPA JKT JPX LSE LUXSE NASDAQ NYFE NYMEX NYSE OOTC OSE SIX SSE TASE TSX XAMS XASE XASX XBDA "
        "XBEL XBKK XBOG XBOM XBRA XBRU XBSE XBUD XBUE XCBF XCSE XCYS XDUB XDUS XEEE XETR XEUR XFRA "
        "XHAM XHEL XHKG XICE XIDX XIST XJSE XKAR XKLS XKRX XLIM XLIS XLIT XLJU XLON XLUX XMAD XMEX "
        "XMIL XMOS XNAS XNYS XNZE XOSL XPAR XPHS XPRA XRIS XSAU XSES XSGO XSHG XSTO XSTU XSWX XTAE "
        "XTAI XTAL XTKS XTSE XTSX XWAR XWBO XZAG us_futures"
    ).split()
)


def parse_calendar(text: str) -> str:
    """The name, if there is such a calendar and what knows its sessions is installed."""
    if find_spec(LIBRARY) is None:
        raise ConfigError(
            "sessions of an exchange need the extra `markets`: pip install 'penstock[markets]'"
        )
    if text in NAMES:
        return text
    known = import_module(LIBRARY).get_calendar_names(include_aliases=True)
    if text in known:
        return text
    near = nearest(text.upper(), known)
    tail = near if near.startswith("did") else "write it as XNYS, XLON or 24/7"
    raise ConfigError(f"{text!r} is not a calendar of an exchange, {tail}")
