-- expands

-- Events are data: a JSON object with the fields of their kind. Sentences that older versions have written stay in
-- `detail` until upkeep has turned them into data. The worker is stored where the actor need not be one.
ALTER TABLE event ADD COLUMN data TEXT;
ALTER TABLE event ADD COLUMN worker TEXT;

-- The run that a queued delivery waits for.
ALTER TABLE delivery ADD COLUMN waits_for_run_id INTEGER;
UPDATE delivery SET waits_for_run_id = CAST(substr(reason, 5) AS INTEGER) WHERE state = 'queued' AND reason LIKE 'run %';
