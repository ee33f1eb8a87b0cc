"""The counting site in a process of its own, at twenty addresses: to Penstock each is a host of its own.

python counting_server.py        prints its port, serves until its standard input ends
"""

from __future__ import annotations

import asyncio
import sys

from penstock.prove.site import Server


async def serve() -> None:
    server = Server()
    await server.listen(addresses=20)
    print(server.port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
