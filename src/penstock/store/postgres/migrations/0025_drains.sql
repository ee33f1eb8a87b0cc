-- expands
-- locks: run and worker, for a moment

-- A run that drains perform, and workers leave alone; and which part of which run a worker is for, if it is a drain's.
ALTER TABLE penstock.run ADD COLUMN for_drains boolean NOT NULL DEFAULT false;
ALTER TABLE penstock.worker ADD COLUMN scope text NOT NULL DEFAULT '';
