-- expands
-- locks: tick, for a moment

-- Nobody was there when this tick was due, and it fired late, joined a run, was skipped or denied all the same.
ALTER TABLE penstock.tick ADD COLUMN was_missed boolean NOT NULL DEFAULT false;
