-- expands
-- locks: run, until its new index is built

-- Since when a run is to be done: it was queued, its draft was started, or it was opened again. A draft has none.
ALTER TABLE penstock.run ADD COLUMN queued_at double precision;

-- When what is known of a source's shape was found to be true, in which run, and since when that is promised.
CREATE TABLE penstock.verification (
  source_id bigint PRIMARY KEY,
  promised_at double precision,
  verified_at double precision,
  run_id bigint
);

-- Runs that were made and not started, which are few.
CREATE INDEX run_draft ON penstock.run (source_id) WHERE state = 'draft';

-- What a replay has extracted: done with when what was made of it is committed.
CREATE TABLE penstock.staged_page (
  run_id bigint NOT NULL,
  url text COLLATE "C" NOT NULL,
  job_id bigint NOT NULL,
  hash text NOT NULL,
  parts bigint NOT NULL,
  PRIMARY KEY (run_id, url, job_id)
);
