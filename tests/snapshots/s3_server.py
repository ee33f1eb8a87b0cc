"""An S3 on loopback, in a process of its own: prints its port, serves until its standard input ends."""

from __future__ import annotations

import logging
import sys

from moto.server import ThreadedMotoServer

if __name__ == "__main__":
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    print(server.get_host_and_port()[1], flush=True)
    sys.stdin.read()
    server.stop()
