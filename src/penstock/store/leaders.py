"""Leading: one of many hosts acts for all of them, for a term that runs out by itself."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.journal.service_events import LeaderElected, LeaderResigned
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.rows import LeaderRow


@dataclass(frozen=True, slots=True)
class Term:
    """A leader's time in office; it ends so long after it was asked for, by any clock that runs evenly."""

    number: int
    expires_in_s: float


class Leaders(Noun):
    """The verbs of leadership. Who holds a term, and which, is named in everything that is done with it."""

    def lead(self, name: str, holder: str, ttl_s: float, term: int = 0) -> Term | None:
        """Stay leader in this term, or become leader in a new one; None while somebody else is.

        A holder that does not know its term (the answer that told it was lost) begins another one:
        nobody ever lengthens a term that it was not given.
        """
        about = {"matter": name, "holder": holder}
        with self._db.writing() as now:
            expires_at = now + ttl_s
            if term and self._db.do("renew_term", term=term, expires_at=expires_at, **about):
                return Term(term, ttl_s)
            number = self._db.value("elect_if_vacant", now=now, expires_at=expires_at, **about)
            if number is None:
                return None
            ledger = Ledger(self._db, now)
            ledger.journal(LeaderElected(name, int(number)), actor=holder)
            ledger.write()
            return Term(int(number), ttl_s)

    def resign(self, name: str, holder: str, term: int) -> bool:
        """End this term now; False if it is another's by now, which is then left alone."""
        with self._db.writing() as now:
            if not self._db.do("end_term", matter=name, holder=holder, term=term, now=now):
                return False
            ledger = Ledger(self._db, now)
            ledger.journal(LeaderResigned(name, term), actor=holder)
            ledger.write()
            return True

    def all(self) -> list[LeaderRow]:
        """Who leads what, or led it last: a term that has run out is listed too."""
        return self._db.decoded("leaders", list[LeaderRow])
