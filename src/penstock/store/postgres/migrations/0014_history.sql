-- expands
-- locks: run and replay, until their new indexes are built

-- Whether no job of an ended run is left, and the run itself may go when it is old enough. Retention goes along these
-- indexes and meets each run a bounded number of times, however many have ended.
ALTER TABLE penstock.run ADD COLUMN is_emptied boolean NOT NULL DEFAULT false;

CREATE INDEX run_with_jobs ON penstock.run (finished_at, id) WHERE finished_at IS NOT NULL AND NOT is_emptied;
CREATE INDEX run_emptied ON penstock.run (finished_at, id) WHERE is_emptied;
-- Commits and undos that were cut short, which are few.
CREATE INDEX replay_committing ON penstock.replay (run_id) WHERE state = 'committing';
