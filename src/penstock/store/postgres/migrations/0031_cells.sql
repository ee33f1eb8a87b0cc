-- expands
-- locks: onboarding and project, for a moment

-- Which cell of a project this database is, and the number that its ids begin with; empty for a project in one database.
ALTER TABLE penstock.project ADD COLUMN cell text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE penstock.project ADD COLUMN cell_number bigint NOT NULL DEFAULT 0;

-- Where a source is: '' in the cell `main` only, `here`, on its way out or gone (to `cell`), or arriving (from `cell`).
-- `cell_token` is the hand-over's own: of two that move a source at once, one goes on.
ALTER TABLE penstock.onboarding ADD COLUMN cell_state text COLLATE "C" NOT NULL DEFAULT ''
  CHECK (cell_state IN ('', 'here', 'leaving', 'left', 'arriving'));
ALTER TABLE penstock.onboarding ADD COLUMN cell text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE penstock.onboarding ADD COLUMN cell_token text COLLATE "C" NOT NULL DEFAULT '';
