-- How many flushes of its present attempt are written: one that was sent twice is written once.
ALTER TABLE job ADD COLUMN flushes INTEGER NOT NULL DEFAULT 0;

ALTER TABLE worker ADD COLUMN slots INTEGER NOT NULL DEFAULT 0;
ALTER TABLE worker ADD COLUMN admits TEXT NOT NULL DEFAULT 'all';

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
