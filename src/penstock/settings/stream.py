"""`stream:` of a source."""

from typing import Annotated

from msgspec import field

from penstock.settings.declaration import Keys, about, names_of, no_less
from penstock.settings.kinds import Duration


class StreamSettings(Keys, frozen=True):
    """When a stream was away for longer than `gap_s`, what it missed is filled by a backfill."""

    gap_s: Annotated[
        Duration,
        no_less(1.0),
        about(
            "if a stream was interrupted for longer than this, a linked backfill fetches what it "
            "missed"
        ),
    ] = field(default=60.0, name="gap")


STREAM_KEYS = names_of(StreamSettings)
