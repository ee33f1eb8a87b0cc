"""`log:` how services and runs in the foreground say what they do."""

from typing import Annotated, Literal

from penstock.settings.declaration import Keys, about


class LogSettings(Keys, frozen=True):
    """How `up`, `worker`, `scheduler` and `run` say what they do, on stderr."""

    format: Annotated[
        Literal["text", "json"],
        about(
            "`json`: one object per line on stderr for each event, secrets masked, for a log "
            "collector; `--log-format` overrides it; see [operating](operating.md#logs)"
        ),
    ] = "text"
