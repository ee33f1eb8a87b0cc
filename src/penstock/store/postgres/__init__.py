"""Postgres through psycopg: many hosts, row locks in one order, the database's clock."""
