-- expands

-- Nobody was there when this tick was due, and it fired late, joined a run, was skipped or denied all the same.
ALTER TABLE tick ADD COLUMN was_missed INTEGER NOT NULL DEFAULT 0 CHECK (was_missed IN (0, 1));
