-- expands
-- locks: event and delivery, for a moment

-- Events are data: a JSON object with the fields of their kind. Sentences that older versions have written stay in
-- `detail` until upkeep has turned them into data. The worker is stored where the actor need not be one.
ALTER TABLE penstock.event ADD COLUMN data text;
ALTER TABLE penstock.event ADD COLUMN worker text;

-- The run that a queued delivery waits for.
ALTER TABLE penstock.delivery ADD COLUMN waits_for_run_id bigint;
UPDATE penstock.delivery SET waits_for_run_id = substring(reason FROM 'run ([0-9]+)')::bigint WHERE state = 'queued' AND reason LIKE 'run %';
