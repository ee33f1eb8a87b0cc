-- expands

-- From where a person acted: cli, python, api, dashboard, …; NULL for what workers do.
ALTER TABLE event ADD COLUMN origin TEXT;

-- Seals of the journal: a chain of hashes over its rows. A seal covers the rows behind the one before it up to `last_id`,
-- and stays when retention has dropped them. `gone_through` is the last seal whose rows retention has dropped.
CREATE TABLE seal (
  number INTEGER PRIMARY KEY,
  last_id INTEGER NOT NULL,
  events INTEGER NOT NULL,
  gone_through INTEGER NOT NULL DEFAULT 0,
  newest_at REAL NOT NULL,
  at REAL NOT NULL,
  digest TEXT NOT NULL,
  hash TEXT NOT NULL,
  fingerprints TEXT NOT NULL,
  pruned_at REAL
) STRICT;

CREATE INDEX seal_kept ON seal (number) WHERE pruned_at IS NULL;

-- Rows of the journal out of which personal data was erased: the hash that was sealed, and the hash of what is left.
-- `act_id` is the event that says who erased it and why.
CREATE TABLE tombstone (
  event_id INTEGER NOT NULL,
  act_id INTEGER NOT NULL,
  sealed TEXT NOT NULL,
  erased TEXT NOT NULL,
  PRIMARY KEY (event_id, act_id)
) STRICT;

-- Each time that a person had data erased, by the event that tells of it.
CREATE TABLE erasure (
  act_id INTEGER PRIMARY KEY,
  source_id INTEGER NOT NULL,
  at REAL NOT NULL
) STRICT;
