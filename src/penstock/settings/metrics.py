"""`metrics:` what `/metrics` and `penstock metrics` show."""

from typing import Annotated

from penstock.settings.declaration import Keys, about, between


class MetricsSettings(Keys, frozen=True):
    """How many series there are."""

    max_sources: Annotated[
        int,
        between(1, 10_000),
        about(
            "sources that have series of their own, the oldest first; all others share the label "
            "`other`"
        ),
    ] = 200
