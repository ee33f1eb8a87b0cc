"""The project as every front end and every program has it."""

from __future__ import annotations

from penstock.app.old_verbs import OldVerbs


class Project(OldVerbs):
    """One penstock.yaml and everything that belongs to it, with the verbs of the product.

    Verbs are found under their noun: `project.runs.start("acme.com")`. Any number of threads may use one
    project at once; `close` closes the connections of all of them.
    """
