"""The browser: pages whose content comes by script, drawn by chromium in a process of its own.

In:    a page, how to wait until it is ready, and the Fetcher that answers every request it makes.
Out:   the page as it stands after that, as HTML, and a picture of it where one is wanted.
Never: a connection of chromium's own, a page that outlives its time, a process that outlives its worker.
"""
