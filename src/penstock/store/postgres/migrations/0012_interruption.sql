-- expands
-- locks: nothing

-- Attempts that were taken from a worker which had died unseen: since when nobody worked on them.
CREATE TABLE penstock.interruption (
  job_id bigint NOT NULL,
  attempt integer NOT NULL,
  since double precision NOT NULL,
  PRIMARY KEY (job_id, attempt)
);
