-- expands

-- How far exports of records have read. A record remembers the newest cursor there was when it was written: all that were
-- written before a cursor was made have a smaller one. Ids are never given twice.
CREATE TABLE export_cursor (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  token TEXT NOT NULL UNIQUE,
  at REAL NOT NULL
) STRICT;

ALTER TABLE record ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE record_version ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
