"""The doctor: is this machine, with this configuration, able to work on the project?

In:    a project folder, which may be broken in any way, or none at all.
Out:   findings: what was looked at, whether it is sound, and the remedy where it is not.
Never: repairing or migrating anything, fetching, showing a secret.
"""

from penstock.app.doctor.checkup import AREAS, check_up

__all__ = ["AREAS", "check_up"]
