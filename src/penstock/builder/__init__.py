"""Builder: from dumps, APIs and sites to an enriched, scored and packaged dataset of companies.

In:    rows and pages as connectors bring them, and answers of providers (search, maps, geocoders, DNS).
Out:   companies as plain dicts, clusters of the same company, issues, scores, and a folder with the dataset.
Never: a way to the network of its own (a request is data, and the caller's fetch sends it), SQL, a clock,
       a guess: what is not known is left out.
"""
