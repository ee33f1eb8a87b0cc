-- expands

-- Whether no job of an ended run is left, and the run itself may go when it is old enough. Retention goes along these
-- indexes and meets each run a bounded number of times, however many have ended.
ALTER TABLE run ADD COLUMN is_emptied INTEGER NOT NULL DEFAULT 0;

CREATE INDEX run_with_jobs ON run (finished_at, id) WHERE finished_at IS NOT NULL AND is_emptied = 0;
CREATE INDEX run_emptied ON run (finished_at, id) WHERE is_emptied = 1;
-- Commits and undos that were cut short, which are few.
CREATE INDEX replay_committing ON replay (run_id) WHERE state = 'committing';
