-- expands

-- Nothing changes here: a row that moves keeps its place in the index of keys. On Postgres they have a table of their own.
SELECT 1;
