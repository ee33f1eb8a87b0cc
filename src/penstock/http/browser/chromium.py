"""Chromium: where it is, and the switches that leave it no way to the network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "no chromium was found: install it (Debian: apt-get install chromium), or name its path: browser:"

# Every request of a page is answered by us before it leaves the browser. What does not ask us ends here: no
# name resolves, whatever is not answered goes to a proxy that is not there, loopback included, and nothing
# goes around the proxy by UDP.
NO_WAY_OUT = (
    "--proxy-server=http://127.0.0.1:1",
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--dns-prefetch-disable",
    "--disable-background-networking",
    "--disable-domain-reliability",
    "--disable-component-update",
    "--no-pings",
)
QUIET = (
    "--block-new-web-contents",
    "--disable-gpu",
    "--mute-audio",
    "--disable-notifications",
    "--disable-speech-api",
    "--disable-breakpad",
)
# What chromium leaves out. It goes by its last list alone, so what Playwright leaves out is named again. It
# keeps one process at hand for the next page of one context: where tabs of two contexts take turns, each page
# would end the other's and start its own.
LEFT_OUT = (
    "SpareRendererForSitePerProcess",
    "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "TcpPortRandomizationWin",
    "ThirdPartyStoragePartitioning",
    "msEdgeUpdateLaunchServicesPreferredVersion",
    "msForceBrowserSignIn",
)
# Run in every frame before its own scripts: what would only fail is not there to be tried.
INIT_SCRIPT = """(() => {
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "WebTransport", "EventSource"])
    try { delete window[name]; } catch {}
  window.open = () => null;
  window.print = () => {};
})();"""


def arguments() -> list[str]:
    return [*NO_WAY_OUT, *QUIET, "--disable-features=" + ",".join(LEFT_OUT)]


def has_sandbox() -> bool:
    """Chromium does not start with its sandbox as root."""
    return os.geteuid() != 0


def find_chromium(named: str, others: Sequence[str] = ()) -> str | None:
    """The program that is named, else the first in $PATH, else one of the others."""
    if named:
        return shutil.which(os.path.expanduser(named))
    in_path = (shutil.which(name) for name in NAMES)
    theirs = (path for path in others if os.access(path, os.X_OK))
    return next((found for found in (*in_path, *theirs) if found), None)
