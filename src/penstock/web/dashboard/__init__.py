"""The dashboard: the pages an operator reads and acts from.

In:    a request of somebody who is signed in.
Out:   HTML, made by the server; JavaScript only makes it livelier.
Never: SQL, policy of its own, markup from data, a request to another host.
"""

from penstock.web.dashboard.routes import ROUTES

__all__ = ["ROUTES"]
