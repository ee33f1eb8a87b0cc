"""SQLite through apsw: one file, one writer at a time, durable when a verb returns."""
