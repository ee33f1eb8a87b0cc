-- expands
-- locks: worker, for a moment

-- The code and configuration that workers have loaded, by its hash: those of one deployment share a row.
CREATE TABLE penstock.loaded (
  hash text COLLATE "C" PRIMARY KEY,
  code text NOT NULL
);

ALTER TABLE penstock.worker ADD COLUMN loaded text COLLATE "C";
ALTER TABLE penstock.worker ADD COLUMN parent_pid integer;

-- Signals, notes and rejects of a job that does not commit all at once: what a later attempt sends again is known by these.
CREATE TABLE penstock.sent (
  job_id bigint NOT NULL,
  hash text COLLATE "C" NOT NULL,
  PRIMARY KEY (job_id, hash)
);
