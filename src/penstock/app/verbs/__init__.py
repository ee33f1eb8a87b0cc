"""The surface of the application: every verb and view that a front end can offer, as tables.

In:    the verbs of the nouns, by their signatures.
Out:   acts and reads with their roles, parameters, schemas, previews and words; answers and refusals as JSON.
Never: a protocol, a policy of its own, anything about one front end alone.

`acts.py` is the one table of everything that can be done, `reads.py` of everything that can be read. The HTTP
API, its OpenAPI document, the dashboard's buttons and the MCP tools are made from them.
"""
