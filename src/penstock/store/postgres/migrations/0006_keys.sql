-- contracts: 6
-- locks: job, until the keys of all jobs were copied

-- Nobody adds a job between the copy and the end of the old constraint.
LOCK TABLE penstock.job IN ACCESS EXCLUSIVE MODE;

ALTER TABLE penstock.job DROP CONSTRAINT job_key;

-- A run has each key once. Apart from the job: a claim or settle writes a new version of the job's row, and every
-- index of that table gets an entry for it; this one, the longest, cost more than the move itself.
CREATE TABLE penstock.job_key (
  run_id bigint NOT NULL,
  job_id bigint NOT NULL,
  stage text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL
);

INSERT INTO penstock.job_key (run_id, job_id, stage, key)
SELECT run_id, id, stage, key FROM penstock.job ORDER BY run_id, stage, key;

ALTER TABLE penstock.job_key ADD PRIMARY KEY (run_id, stage, key);
