-- expands

-- Which cell of a project this database is, and the number that its ids begin with; empty for a project in one database.
ALTER TABLE project ADD COLUMN cell TEXT NOT NULL DEFAULT '';
ALTER TABLE project ADD COLUMN cell_number INTEGER NOT NULL DEFAULT 0;

-- Where a source is: '' in the cell `main` only, `here`, on its way out or gone (to `cell`), or arriving (from `cell`).
-- `cell_token` is the hand-over's own: of two that move a source at once, one goes on.
ALTER TABLE onboarding ADD COLUMN cell_state TEXT NOT NULL DEFAULT ''
  CHECK (cell_state IN ('', 'here', 'leaving', 'left', 'arriving'));
ALTER TABLE onboarding ADD COLUMN cell TEXT NOT NULL DEFAULT '';
ALTER TABLE onboarding ADD COLUMN cell_token TEXT NOT NULL DEFAULT '';
