"""Views: what the reads of a project return, one Struct for each kind of thing.

Each module holds the views of one noun. A field is declared here and nowhere else: tables, `--json` and
every other front end are made from it. Views know neither the store nor the engine.
"""
