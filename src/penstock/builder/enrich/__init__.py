"""Enrichment: what addresses, maps, searches, domains and sites say about a company.

In:    a company, and answers of providers or pages that the caller has fetched.
Out:   requests as data, and the company with stronger claims and their evidence.
Never: sending a request, WHOIS, replacing what a better source said.
"""
