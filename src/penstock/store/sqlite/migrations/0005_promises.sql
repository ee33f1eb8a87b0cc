-- expands

-- Since when a run is to be done: it was queued, its draft was started, or it was opened again. A draft has none.
ALTER TABLE run ADD COLUMN queued_at REAL;

-- When what is known of a source's shape was found to be true, in which run, and since when that is promised.
CREATE TABLE verification (
  source_id INTEGER PRIMARY KEY,
  promised_at REAL,
  verified_at REAL,
  run_id INTEGER
) STRICT;

-- Runs that were made and not started, which are few.
CREATE INDEX run_draft ON run (source_id) WHERE state = 'draft';

-- What a replay has extracted: done with when what was made of it is committed.
CREATE TABLE staged_page (
  run_id INTEGER NOT NULL,
  url TEXT NOT NULL,
  job_id INTEGER NOT NULL,
  hash TEXT NOT NULL,
  parts INTEGER NOT NULL,
  PRIMARY KEY (run_id, url, job_id)
) STRICT, WITHOUT ROWID;
