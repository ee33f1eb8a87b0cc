"""MCP: the project as tools, resources and prompts for a language model's client.

In:    requests of the Model Context Protocol, over stdin and stdout or over HTTP, with a role.
Out:   answers in an envelope that marks them as untrusted data, of bounded size; acts in two calls.
Never: the content of private sources, an act without a dry run and a reason, tokens, erasure, the shell.

Everything is made from the tables of `app/verbs`; `left_out.py` lists what no tool does, and why. Only
`server.py`, `stdio.py` and `over_http.py` import the SDK (extra `mcp`).
"""
