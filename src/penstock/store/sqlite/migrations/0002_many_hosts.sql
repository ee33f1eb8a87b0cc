-- expands

-- How many flushes of its present attempt are written: one that was sent twice is written once.
ALTER TABLE job ADD COLUMN flushes INTEGER NOT NULL DEFAULT 0;

ALTER TABLE worker ADD COLUMN slots INTEGER NOT NULL DEFAULT 0;
ALTER TABLE worker ADD COLUMN admits TEXT NOT NULL DEFAULT 'all';
-- The newest schema that its code knows.
ALTER TABLE worker ADD COLUMN schema INTEGER NOT NULL DEFAULT 0;

-- Who may act for all hosts until when, and for the how manieth time somebody does.
CREATE TABLE leader (
  name TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  term INTEGER NOT NULL,
  expires_at REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- When the next request of a source (or of a host that belongs to none) may go out.
CREATE TABLE pace (
  key TEXT PRIMARY KEY,
  next_at REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- How far the copy that was put into this database has come; nobody may work here before it is done.
CREATE TABLE copy (
  origin TEXT NOT NULL,
  digest TEXT NOT NULL,
  table_name TEXT NOT NULL,
  last_key TEXT NOT NULL,
  began_at REAL NOT NULL
) STRICT;
