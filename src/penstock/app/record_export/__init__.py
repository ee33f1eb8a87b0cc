"""Exports of records: a file with a manifest, whole or not there at all."""
