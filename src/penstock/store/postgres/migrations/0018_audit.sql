-- expands
-- locks: event, for a moment

-- From where a person acted: cli, python, api, dashboard, …; NULL for what workers do.
ALTER TABLE penstock.event ADD COLUMN origin text;

-- Seals of the journal: a chain of hashes over its rows. A seal covers the rows behind the one before it up to `last_id`,
-- and stays when retention has dropped them. `gone_through` is the last seal whose rows retention has dropped.
CREATE TABLE penstock.seal (
  number bigint PRIMARY KEY,
  last_id bigint NOT NULL,
  events bigint NOT NULL,
  gone_through bigint NOT NULL DEFAULT 0,
  newest_at double precision NOT NULL,
  at double precision NOT NULL,
  digest text NOT NULL,
  hash text NOT NULL,
  fingerprints text NOT NULL,
  pruned_at double precision
);

CREATE INDEX seal_kept ON penstock.seal (number) WHERE pruned_at IS NULL;

-- Rows of the journal out of which personal data was erased: the hash that was sealed, and the hash of what is left.
-- `act_id` is the event that says who erased it and why.
CREATE TABLE penstock.tombstone (
  event_id bigint NOT NULL,
  act_id bigint NOT NULL,
  sealed text NOT NULL,
  erased text NOT NULL,
  PRIMARY KEY (event_id, act_id)
);

-- Each time that a person had data erased, by the event that tells of it.
CREATE TABLE penstock.erasure (
  act_id bigint PRIMARY KEY,
  source_id bigint NOT NULL,
  at double precision NOT NULL
);
