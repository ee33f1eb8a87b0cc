-- expands

-- A run that drains perform, and workers leave alone; and which part of which run a worker is for, if it is a drain's.
ALTER TABLE run ADD COLUMN for_drains INTEGER NOT NULL DEFAULT 0;
ALTER TABLE worker ADD COLUMN scope TEXT NOT NULL DEFAULT '';
