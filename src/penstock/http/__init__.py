"""HTTP: the one way out to the network, and what is read there.

In:    a URL and the fetch policy of its source.
Out:   a Response, or a FetchError that says whether trying again can help.
Never: the store, following a redirect unchecked, an address that was not checked, keeping a cookie.
"""
